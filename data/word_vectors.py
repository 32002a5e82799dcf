"""Word vectors: trained on the corpus by word2vec (Mikolov et al. 2013), or read from a file."""

import collections
import logging
import math
import pathlib
import tempfile
import zipfile

import numpy as np

from colloquy.base.files import UserError
from colloquy.base.runtime import available_cpus
from colloquy.data.text_files import in_one_line, largest_content, read_lines, readable
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, SPECIALS, UNK_ID

WORDS_READ = 50_000_000
"""Words that word2vec reads, over all passes, by default."""
REPEATABLE = 10_000_000
"""Words of the longest text whose vectors repeat exactly with their seed by default."""


def passes(words):
    """Passes of word2vec over a text of `words` words, 20 to 1; its own default of 5 suits ten
    million words.
    """
    return min(20, max(1, WORDS_READ // max(1, words)))


def threads(words):
    """Threads of word2vec for a text: one, which repeats exactly, up to `REPEATABLE` words, else
    one per core.
    """
    return 1 if words <= REPEATABLE else available_cpus()


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
    """Trains vectors by gensim's CBOW, float32 `(len(vocabulary) + 1, dimension)`; with one worker
    they repeat exactly.

    The `sentences`, lists of words, are read once and written to a file in `directory`, which
    gensim's threads read without Python's lock. Unknown words are left out; `complete` makes up
    missing vectors. `after_epoch()` is called after each pass; `settings` are others of
    `gensim.models.Word2Vec`, such as `window`, and `workers` if not one.
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
        counts, written = _write_known(sentences, vocabulary, file)
        file.flush()
        if not counts:
            return complete({}, vocabulary, dimension, seed)
        model = Word2Vec(vector_size=dimension, min_count=1, seed=seed, workers=workers, **settings)
        model.build_vocab_from_freq(counts, corpus_count=written)
        model.train(
            corpus_file=file.name,
            total_examples=written,
            total_words=sum(counts.values()),
            epochs=epochs,
            callbacks=[AfterEpoch()],
        )
    found = {vocabulary.words[int(id) - 1]: model.wv[id] for id in model.wv.index_to_key}
    return complete(found, vocabulary, dimension, seed)


def _write_known(sentences, vocabulary, file):
    """Writes each sentence as a line of the ids of its known words; returns the count of each id
    and of the lines.
    """
    ids = {word: str(id) for id, word in enumerate(vocabulary.words, 1) if word not in SPECIALS}
    counts, written = collections.Counter(), 0
    for sentence in sentences:
        known = [ids[word] for word in sentence if word in ids]
        if known:
            counts.update(known)
            file.write(" ".join(known) + "\n")
            written += 1
    return {id: counts[id] for id in ids.values() if id in counts}, written


def complete(found, vocabulary, dimension, seed=1):
    """Puts vectors, `{word: vector}`, in the order of a vocabulary, float32 `(len(vocabulary) + 1,
    dimension)`.

    Padding is zeros. `_UNK_` and `_EOS_` are the mean of the vectors found, as in DeepPavlov's DAM
    (`_EOS_` only separates turns, no model looks it up). Any other missing word is drawn from the
    normal distribution with the mean and standard deviation of the vectors found; if none is found,
    from `N(0, 0.1)`, as in DAM's release.
    """
    vectors = np.full((len(vocabulary) + 1, dimension), np.nan, np.float32)
    for id, word in enumerate(vocabulary.words, 1):
        if word in found and word not in SPECIALS:
            vectors[id] = found[word]
    missing = np.isnan(vectors[:, 0])
    mean, deviation = np.zeros(dimension), np.full(dimension, 0.1)
    if not missing.all():
        mean, deviation = vectors[~missing].mean(axis=0), vectors[~missing].std(axis=0)
    rng = np.random.default_rng(seed)
    vectors[missing] = rng.normal(mean, deviation, (missing.sum(), dimension))
    vectors[[EOS_ID, UNK_ID]] = mean
    vectors[PADDING_ID] = 0
    return vectors


def scale_to_norm(vectors, norm):
    """Scales each row, float `(rows, dimension)`, to the Euclidean length `norm`; rows of zeros
    stay.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors * (norm / np.where(length == 0, 1, length))).astype(vectors.dtype)


def load_text_vectors(path, vocabulary, seed=1):
    """Vectors of a vocabulary from a file of `read_vectors`, made `complete`, and the number of
    words found.
    """
    found = _found_vectors(path, vocabulary)
    return complete(found, vocabulary, len(next(iter(found.values()))), seed), len(found)


def append_vectors(vectors, path, vocabulary):
    """Appends a general vector from a file to each word's vector of the corpus (Dong and Huang
    2018).

    The file's vectors are scaled so that their average distance from their mean equals that of
    `vectors`, float32 `(len(vocabulary) + 1, dimension)` with padding in row 0. A word missing from
    the file gets their mean. Also returns the number of words found.
    """
    found = _found_vectors(path, vocabulary)
    mean = np.mean(list(found.values()), axis=0)
    distance = np.mean([np.linalg.norm(vector - mean) for vector in found.values()])
    own = np.linalg.norm(vectors[1:] - vectors[1:].mean(axis=0), axis=1).mean()
    general = np.tile(mean, (len(vectors), 1))
    for id, word in enumerate(vocabulary.words, 1):
        general[id] = found.get(word, mean)
    general[PADDING_ID] = 0
    scale = own / distance if distance else 1.0
    return np.concatenate([vectors, general * scale], axis=1, dtype=np.float32), len(found)


def _found_vectors(path, vocabulary):
    found = read_vectors(path, set(vocabulary.words) - set(SPECIALS))
    if not found:
        raise UserError(f"{path}: expected vectors of the corpus's words. Received: none of them")
    return found


def read_vectors(path, words=None):
    """Reads word vectors, `{word: float32 vector}` in the file's order; of all `words`, or only
    these.

    The file is text of word2vec (line 1: count and dimension) or GloVe: a word and its vector per
    line, separated by single spaces, UTF-8. Or `.npz`: the arrays `words` and `vectors`.
    """
    path = pathlib.Path(path)
    with readable(path, "word vectors"):
        path.stat()
    if path.suffix == ".npz":
        return _read_arrays(path, words)
    found, dimension = {}, None
    for number, line in read_lines(path, None, fallback="utf-8"):
        # From the right: GloVe 840B has words with spaces.
        word, *values = line.rstrip(" \r").rsplit(" ", dimension or -1)
        if number == 1 and len(values) == 1:
            continue
        dimension = dimension or len(values)
        if not values or len(values) != dimension:
            expected = f"a word and {dimension or 'its'} values"
            raise UserError(
                f"{path}, line {number}: expected {expected}. Received: {len(values)} values"
            )
        if words is None or word in words:
            found[word] = _numbers(path, number, values)
    return found


def _numbers(path, number, values):
    try:
        with np.errstate(over="ignore"):
            vector = np.array(values, np.float32)
        if np.isfinite(vector).all():
            return vector
        reason = "a value that is not finite"
    except ValueError as error:
        reason = error
    raise UserError(
        f"{path}, line {number}: expected a word and numbers. Received: {in_one_line(reason)}"
    )


def _read_arrays(path, words):
    try:
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as arrays, np.errstate(over="ignore"):
            names, vectors = arrays["words"], arrays["vectors"].astype(np.float32)
        if (
            names.dtype.kind != "U"
            or names.ndim != 1
            or vectors.ndim != 2
            or len(names) != len(vectors)
        ):
            raise ValueError(f"{names.dtype} {names.shape}, {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise ValueError("a value that is not finite")
        names = names.tolist()
        "".join(names).encode()  # no half of a surrogate pair
    except OSError as error:
        raise UserError(
            f"{path}: expected word vectors. Received: {error.strerror or error}"
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive can make its readers raise anything
        raise UserError(
            f"{path}: expected the arrays words and vectors, texts (n,) and finite numbers (n, dimension). "
            f"Received: {in_one_line(error)}"
        ) from error
    return {
        word: vector
        for word, vector in zip(names, vectors, strict=True)
        if words is None or word in words
    }


def _check_sizes(path):
    """Raises a `ValueError` if the arrays of an archive are far larger than itself, before they are
    created.
    """
    with zipfile.ZipFile(path) as archive:
        for name in ("words", "vectors"):
            member = archive.getinfo(f"{name}.npy")
            with archive.open(member) as file:
                shape, dtype = _read_header(file)
            if max(math.prod(shape) * dtype.itemsize, 1) > min(
                member.file_size, largest_content(path)
            ):
                raise ValueError(
                    f"{name} of shape {shape!s:.60} in a file of {path.stat().st_size:,} bytes"
                )


def _read_header(file):
    """Shape and dtype of the array in an open `.npy` file; raises anything on others."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = readers[np.lib.format.read_magic(file)](file)
    return shape, dtype
