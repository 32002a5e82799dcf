"""Word vectors: trained on the corpus by word2vec (Mikolov et al. 2013), or read from a file."""

import collections
import logging
import math
import pathlib
import tempfile
import zipfile

import numpy as np

from colloquy.base.files import UserError, in_one_line
from colloquy.base.runtime import available_cpus
from colloquy.data.text_files import largest_content, read_lines, readable
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, SPECIALS, UNK_ID

WORDS_READ = 50_000_000
"""Words that word2vec reads, over all passes, by default."""
REPEATABLE = 10_000_000
"""Words of the longest text whose vectors repeat exactly with their seed by default."""

HEADER = 2**16
"""Bytes of a file of vectors that show whether it is binary."""


def default_epochs(num_words):
    """Passes of word2vec over a text, 20 to 1; its own default of 5 suits ten million words."""
    return min(20, max(1, WORDS_READ // max(1, num_words)))


def default_workers(num_words):
    """Threads of word2vec for a text: one per core, but a single one up to `REPEATABLE` words.

    A single thread gives the same vectors each time.
    """
    if num_words <= REPEATABLE:
        return 1
    return available_cpus()


def train_word2vec(
    sentences,
    vocabulary,
    *,
    dimension,
    epochs=5,
    seed=1,
    workers=1,
    after_epoch=lambda: None,
    directory=None,
    **settings,
):
    """Trains word vectors by gensim's CBOW. With one worker they repeat exactly.

    Args:
        sentences: Iterable of lists of words. It is read once and written to a file, which gensim's
            threads read without Python's lock. Unknown words are left out.
        vocabulary: The `Vocabulary`; `complete` adds the vectors that are missing.
        after_epoch: Called without arguments after each pass.
        directory: Where the file is written; `None`: the system's directory for such files.
        settings: Further arguments of `gensim.models.Word2Vec`, such as `window`.

    Returns:
        Vectors, float32 `(len(vocabulary) + 1, dimension)`.
    """
    logging.getLogger("gensim").setLevel(logging.WARNING)  # absl would show its messages as INFO
    from gensim.models import Word2Vec  # takes a second
    from gensim.models.callbacks import CallbackAny2Vec

    class AfterEpoch(CallbackAny2Vec):
        def on_epoch_end(self, model):
            after_epoch()

    with tempfile.NamedTemporaryFile(
        "w", dir=directory, prefix=".sentences.", encoding="ascii"
    ) as file:
        counts, num_lines = _write_known(sentences, vocabulary, file)
        file.flush()
        if not counts:
            return complete({}, vocabulary, dimension, seed)
        model = Word2Vec(vector_size=dimension, min_count=1, seed=seed, workers=workers, **settings)
        model.build_vocab_from_freq(counts, corpus_count=num_lines)
        model.train(
            corpus_file=file.name,
            total_examples=num_lines,
            total_words=sum(counts.values()),
            epochs=epochs,
            callbacks=[AfterEpoch()],
        )
    vectors = {vocabulary.words[int(id) - 1]: model.wv[id] for id in model.wv.index_to_key}
    return complete(vectors, vocabulary, dimension, seed)


def _write_known(sentences, vocabulary, file):
    """Writes each sentence as a line of the ids of its known words.

    Returns:
        The count of each id, `{id: count}`, and the number of lines.
    """
    ids = {word: str(id) for id, word in enumerate(vocabulary.words, 1) if word not in SPECIALS}
    counts = collections.Counter()
    num_lines = 0
    for sentence in sentences:
        known = [ids[word] for word in sentence if word in ids]
        if known:
            counts.update(known)
            file.write(" ".join(known) + "\n")
            num_lines += 1

    # In the order of the vocabulary: gensim's draws depend on it.
    ordered_counts = {id: counts[id] for id in ids.values() if id in counts}
    return ordered_counts, num_lines


def complete(vectors_by_word, vocabulary, dimension, seed=1):
    """Puts vectors in the order of a vocabulary and adds those that are missing.

    Padding is zeros. `_UNK_` and `_EOS_` are the mean of the known vectors, as in DeepPavlov's DAM
    (`_EOS_` only separates turns, no model looks it up). Any other missing word is drawn from the
    normal distribution with the mean and standard deviation of the known vectors; if there are
    none, from `N(0, 0.1)`, as in DAM's release.

    Returns:
        Vectors, float32 `(len(vocabulary) + 1, dimension)`.
    """
    vectors = np.full((len(vocabulary) + 1, dimension), np.nan, np.float32)
    for id, word in enumerate(vocabulary.words, 1):
        if word in vectors_by_word and word not in SPECIALS:
            vectors[id] = vectors_by_word[word]

    is_missing = np.isnan(vectors[:, 0])
    if is_missing.all():
        mean = np.zeros(dimension)
        deviation = np.full(dimension, 0.1)
    else:
        known = vectors[~is_missing]
        mean = known.mean(axis=0)
        deviation = known.std(axis=0)

    rng = np.random.default_rng(seed)
    vectors[is_missing] = rng.normal(mean, deviation, (is_missing.sum(), dimension))
    vectors[[EOS_ID, UNK_ID]] = mean
    vectors[PADDING_ID] = 0
    return vectors


def scale_to_norm(vectors, norm):
    """Scales vectors, float `(n, dimension)`, to the Euclidean length `norm`; zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    scale = norm / np.where(length == 0, 1, length)
    return (vectors * scale).astype(vectors.dtype)


def load_text_vectors(path, vocabulary, seed=1):
    """Reads the vectors of a vocabulary from a file of `read_vectors`.

    Returns:
        Vectors, made `complete`, and the number of words that the file has.
    """
    vectors_by_word = _read_known_vectors(path, vocabulary)
    dimension = len(next(iter(vectors_by_word.values())))
    vectors = complete(vectors_by_word, vocabulary, dimension, seed)
    return vectors, len(vectors_by_word)


def append_vectors(vectors, path, vocabulary):
    """Appends a general vector from a file to each word's vector (Dong and Huang 2018).

    The file's vectors are scaled so that their average distance from their mean equals that of
    `vectors`, float32 `(len(vocabulary) + 1, dimension)` with padding in row 0. A word missing from
    the file gets their mean.

    Returns:
        The longer vectors, and the number of words that the file has.
    """
    vectors_by_word = _read_known_vectors(path, vocabulary)
    mean = np.mean(list(vectors_by_word.values()), axis=0)
    distances = [np.linalg.norm(vector - mean) for vector in vectors_by_word.values()]
    distance = np.mean(distances)
    own_mean = vectors[1:].mean(axis=0)
    own_distance = np.linalg.norm(vectors[1:] - own_mean, axis=1).mean()
    scale = own_distance / distance if distance else 1.0

    general = np.tile(mean, (len(vectors), 1))
    for id, word in enumerate(vocabulary.words, 1):
        general[id] = vectors_by_word.get(word, mean)
    general[PADDING_ID] = 0
    longer = np.concatenate([vectors, general * scale], axis=1, dtype=np.float32)
    return longer, len(vectors_by_word)


def _read_known_vectors(path, vocabulary):
    vectors_by_word = read_vectors(path, set(vocabulary.words) - set(SPECIALS))
    if not vectors_by_word:
        raise UserError(f"{path}: expected vectors of the corpus's words. Received: none of them")
    return vectors_by_word


def read_vectors(path, words=None):
    """Reads word vectors, `{word: float32 vector}`, in the file's order.

    The file is text of word2vec (line 1: count and dimension) or GloVe: a word and its vector per
    line, separated by single spaces or tabs, UTF-8. Or `.npz`: the arrays `words` and `vectors`. Of
    a word that comes twice the first vector counts, as in gensim.

    Args:
        words: The words to read; `None`: all.
    """
    path = pathlib.Path(path)
    with readable(path, "word vectors"):
        path.stat()
    if path.suffix == ".npz":
        return _read_arrays(path, words)
    if path.suffix == ".zip":
        raise UserError(
            f"{path}: expected vectors as text, .gz or .npz. Received: .zip; "
            f"unpack it: unzip {path}"
        )
    _refuse_binary(path)

    vectors_by_word = {}
    announced = 0
    announced_dimension = None
    dimension = None
    number = 0
    for number, line in read_lines(path, None, fallback="utf-8"):
        # From the right: GloVe 840B has words with spaces. -1 splits at every space.
        max_splits = -1 if dimension is None else dimension
        spaced = line.replace("\t", " ").rstrip(" \r")
        word, *values = spaced.rsplit(" ", max_splits)
        is_header = number == 1 and len(values) == 1
        if is_header:
            announced = int(word) if word.isdecimal() and len(word) < 19 else 0
            if word.isdecimal():
                announced_dimension = values[0]
            continue
        if dimension is None and values:
            dimension = len(values)
            if announced_dimension not in (None, str(dimension)):
                raise UserError(
                    f"{path}: expected vectors of dimension {announced_dimension}, as line 1 says. "
                    f"Received: {dimension} values on line {number}"
                )
        if not values or len(values) != dimension:
            expected = f"a word and {dimension or 'its'} values"
            raise UserError(
                f"{path}, line {number}: expected {expected}. Received: {len(values)} values"
            )
        if (words is None or word in words) and word not in vectors_by_word:
            vectors_by_word[word] = _parse_vector(path, number, values)
    if number <= announced:
        raise UserError(
            f"{path}: expected {announced:,} words, as line 1 says. Received: {number - 1:,}; the "
            "file may be incomplete"
        )
    return vectors_by_word


def _refuse_binary(path):
    """Refuses the binary format of word2vec: its first line alone is text."""
    if path.suffix == ".gz":
        return  # A .gz file is compressed; the check below is for plain bytes.
    with readable(path, "word vectors"), path.open("rb") as file:
        first_line = file.readline(HEADER)
        vectors = file.read(HEADER)
    has_header = len(first_line.split()) == 2 and first_line.replace(b" ", b"").strip().isdigit()
    if has_header and b"\0" in vectors:
        raise UserError(
            f"{path}: expected vectors as text or .npz. Received: the binary format of word2vec; "
            "gensim reads it (KeyedVectors.load_word2vec_format with binary=True) and writes text "
            "(save_word2vec_format)"
        )


def _parse_vector(path, number, values):
    try:
        with np.errstate(over="ignore"):
            vector = np.array(values, np.float32)
        _require_finite(vector)
        return vector
    except ValueError as error:
        reason = in_one_line(error, 200)
        raise UserError(
            f"{path}, line {number}: expected a word and numbers. Received: {reason}"
        ) from error


def _require_finite(vectors):
    if not np.isfinite(vectors).all():
        raise ValueError("a value that is not finite")


def _read_arrays(path, words):
    try:
        file_words, vectors = _load_arrays(path)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{path}: expected word vectors. Received: {reason}") from error
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive can make its readers raise anything
        raise UserError(
            f"{path}: expected the arrays words and vectors, texts (n,) and finite numbers "
            f"(n, dimension). Received: {in_one_line(error, 200)}"
        ) from error

    vectors_by_word = {}
    for word, vector in zip(file_words, vectors, strict=True):
        if (words is None or word in words) and word not in vectors_by_word:
            vectors_by_word[word] = vector
    return vectors_by_word


def _load_arrays(path):
    """Returns the words and the vectors, float32; raises anything if the archive is damaged."""
    _check_sizes(path)
    with np.load(path, allow_pickle=False) as arrays, np.errstate(over="ignore"):
        words = arrays["words"]
        vectors = arrays["vectors"].astype(np.float32)
    is_list_of_texts = words.dtype.kind == "U" and words.ndim == 1
    if not is_list_of_texts or vectors.ndim != 2 or len(words) != len(vectors):
        raise ValueError(f"{words.dtype} {words.shape}, {vectors.shape}")
    _require_finite(vectors)
    words = words.tolist()
    "".join(words).encode()  # raises for half of a surrogate pair
    return words, vectors


def _check_sizes(path):
    """Refuses arrays that would be far larger than their archive, before they are created."""
    with zipfile.ZipFile(path) as archive:
        for name in ("words", "vectors"):
            member = archive.getinfo(f"{name}.npy")
            with archive.open(member) as file:
                shape, dtype = _read_header(file)
            size = max(math.prod(shape) * dtype.itemsize, 1)
            if size > min(member.file_size, largest_content(path)):
                file_size = path.stat().st_size
                raise ValueError(f"{name} of shape {shape!s:.60} in a file of {file_size:,} bytes")


def _read_header(file):
    """Shape and dtype of the array in an open `.npy` file; raises anything on others."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    read_header = readers[np.lib.format.read_magic(file)]
    shape, _, dtype = read_header(file)
    return shape, dtype
