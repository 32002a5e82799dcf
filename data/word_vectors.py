"""Word vectors of a vocabulary: trained on the corpus by word2vec (Mikolov et al. 2013), or taken
from a file.
"""

import collections
import logging
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from colloquy.base.files import PathLike, UserError
from colloquy.base.machine import available_cpus
from colloquy.data.vector_files import read_vectors
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, SPECIALS, UNK_ID, Vocabulary

WORDS_READ = 50_000_000
"""Words that word2vec reads, over all passes, by default."""
REPEATABLE = 10_000_000
"""Words of the longest text whose vectors repeat exactly with their seed by default."""


def default_epochs(num_words: int) -> int:
    """Passes of word2vec over a text, 20 to 1; its own default of 5 suits ten million words."""
    return min(20, max(1, WORDS_READ // max(1, num_words)))


def default_workers(num_words: int) -> int:
    """Threads of word2vec for a text: one per core, but a single one up to `REPEATABLE` words.

    A single thread gives the same vectors each time.
    """
    if num_words <= REPEATABLE:
        return 1
    return available_cpus()


def train_word2vec(
    sentences: Iterable[list[str]],
    vocabulary: Vocabulary,
    *,
    dimension: int,
    epochs: int = 5,
    seed: int = 1,
    workers: int = 1,
    directory: pathlib.Path | None = None,
    **settings: Any,
) -> np.ndarray:
    """Trains word vectors by gensim's CBOW. With one worker they repeat exactly.

    Args:
        sentences: Iterable of lists of words. It is read once and written to a file, which gensim's
            threads read without Python's lock. Unknown words are left out.
        vocabulary: The `Vocabulary`; `complete` adds the vectors that are missing.
        directory: Where the file is written; `None`: the system's directory for such files.
        settings: Further arguments of `gensim.models.Word2Vec`, such as `window`.

    Returns:
        Vectors, float32 `(len(vocabulary) + 1, dimension)`.
    """
    logging.getLogger("gensim").setLevel(logging.WARNING)  # absl would show its messages as INFO
    from gensim.models import Word2Vec  # takes a second

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
        )
    # The words of the file are ids as text, such as "3".
    vectors = {vocabulary.word(int(id)): model.wv[id] for id in model.wv.index_to_key}
    return complete(vectors, vocabulary, dimension, seed)


def _write_known(sentences, vocabulary, file):
    """Writes each sentence as a line of the ids of its known words.

    Returns:
        The count of each id, `{id: count}`, and the number of lines.
    """
    ids = {word: str(id) for word, id in vocabulary.ids.items()}
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


def complete(
    vectors_by_word: Mapping[str, np.ndarray],
    vocabulary: Vocabulary,
    dimension: int,
    seed: int = 1,
) -> np.ndarray:
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


def scale_to_norm(vectors: np.ndarray, norm: float) -> np.ndarray:
    """Scales vectors, float `(n, dimension)`, to the Euclidean length `norm`; zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    scale = norm / np.where(length == 0, 1, length)
    return (vectors * scale).astype(vectors.dtype)


def load_text_vectors(
    path: PathLike, vocabulary: Vocabulary, seed: int = 1
) -> tuple[np.ndarray, int]:
    """Reads the vectors of a vocabulary from a file of `read_vectors`.

    Returns:
        Vectors, made `complete`, and the number of words that the file has.
    """
    vectors_by_word = _read_known_vectors(path, vocabulary)
    dimension = len(next(iter(vectors_by_word.values())))
    vectors = complete(vectors_by_word, vocabulary, dimension, seed)
    return vectors, len(vectors_by_word)


def append_vectors(
    vectors: np.ndarray, path: PathLike, vocabulary: Vocabulary
) -> tuple[np.ndarray, int]:
    """Appends a general vector from a file to each word's vector (Dong and Huang 2018).

    The file's vectors are scaled to spread as far around their mean as `vectors` do around theirs.
    A word missing from the file gets the mean of the file's vectors.

    Args:
        vectors: Float32 `(len(vocabulary) + 1, dimension)` with padding in row 0.

    Returns:
        The longer vectors, and the number of words that the file has.
    """
    vectors_by_word = _read_known_vectors(path, vocabulary)
    file_vectors = np.array(list(vectors_by_word.values()))
    mean = file_vectors.mean(axis=0)
    file_spread = _spread(file_vectors)
    # A single vector has no spread; it keeps its length.
    scale = _spread(vectors[1:]) / file_spread if file_spread else 1.0

    general = [np.zeros_like(mean)]  # padding
    general += [vectors_by_word.get(word, mean) for word in vocabulary.words]
    longer = np.concatenate([vectors, np.array(general) * scale], axis=1, dtype=np.float32)
    return longer, len(vectors_by_word)


def _spread(vectors):
    """The average distance of some vectors from their mean."""
    return np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean()


def _read_known_vectors(path, vocabulary):
    vectors_by_word = read_vectors(path, set(vocabulary.words) - set(SPECIALS))
    if not vectors_by_word:
        raise UserError(f"{path}: expected vectors of the corpus's words. Received: none of them")
    return vectors_by_word
