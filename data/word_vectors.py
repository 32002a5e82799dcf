"""Word vectors: trained on the corpus by word2vec (Mikolov et al. 2013), or read from a file."""

import collections
import logging
import tempfile

import numpy as np

from base.files import UserError
from base.runtime import available_cpus
from data.vector_files import read_vectors
from data.vocabulary import EOS_ID, PADDING_ID, SPECIALS, UNK_ID

WORDS_READ = 50_000_000
"""Words that word2vec reads, over all passes, where the corpus decides how many these are."""
REPEATABLE = 10_000_000
"""Words of a text whose vectors repeat exactly with their seed, unless told otherwise."""


def passes(words):
    """Passes of word2vec over a text: 20 of a small one, fewer of a larger one, 1 at least.

    Word2vec's own default of 5 suits texts of ten million words; those we have are of a million or less.

    Args:
        words: Words of the text.

    >>> [passes(10**n) for n in (6, 7, 8)]
    [20, 5, 1]
    """
    return min(20, max(1, WORDS_READ // max(1, words)))


def threads(words):
    """Threads of word2vec for a text: one, which repeats exactly, up to `REPEATABLE` words, else one for each core."""
    return 1 if words <= REPEATABLE else available_cpus()


def train_word2vec(
    sentences,
    vocabulary,
    *,
    dimension=200,
    window=10,
    negative=25,
    sample=1e-4,
    sg=0,
    epochs=5,
    seed=1,
    workers=1,
    after_epoch=None,
    directory=None,
):
    """Trains vectors for the words of a vocabulary by gensim; with one worker they repeat exactly.

    The sentences are written to a file, from which gensim's threads read without Python's lock. Words that are not in
    the vocabulary are left out. What words without a vector get is said in `complete`.

    Args:
        sentences: Iterable of lists of words, gone through once.
        vocabulary: A `data.vocabulary.Vocabulary`.
        dimension: Length of the vectors.
        window: Context words to each side.
        negative: Negative samples per word.
        sample: Words above this frequency, a fraction of all words, are subsampled.
        sg: 0: CBOW, 1: skip-gram.
        epochs: Passes over the sentences.
        seed: Seed for every random number generator.
        workers: Threads; with more than one, no two results are the same.
        after_epoch: Function without arguments, called after each pass.
        directory: Where the file is for a while; `None`: where the system keeps such files.

    Returns:
        float32 `(len(vocabulary) + 1, dimension)`; row 0, padding, is zeros.
    """
    logging.getLogger("gensim").setLevel(logging.WARNING)  # absl would show what it says as INFO
    from gensim.models import Word2Vec  # takes a second: `scale_to_norm` need not wait for it
    from gensim.models.callbacks import CallbackAny2Vec

    class AfterEpoch(CallbackAny2Vec):
        def on_epoch_end(self, model):
            if after_epoch is not None:
                after_epoch()

    with tempfile.NamedTemporaryFile("w", dir=directory, prefix=".sentences.", encoding="ascii") as file:
        counts, written = _write_known(sentences, vocabulary, file)
        file.flush()
        if not counts:
            return complete({}, vocabulary, dimension, seed)
        model = Word2Vec(
            vector_size=dimension,
            window=window,
            min_count=1,
            negative=negative,
            sample=sample,
            sg=sg,
            seed=seed,
            workers=workers,
        )
        model.build_vocab_from_freq(counts, corpus_count=written)
        words = sum(counts.values())
        model.train(
            corpus_file=file.name,
            total_examples=written,
            total_words=words,
            epochs=epochs,
            callbacks=[AfterEpoch()],
        )
    found = {vocabulary.words[int(id) - 1]: model.wv[id] for id in model.wv.index_to_key}
    return complete(found, vocabulary, dimension, seed)


def _write_known(sentences, vocabulary, file):
    """Writes sentences, one per line, as the ids of their words; how often each id occurs, and the number of lines."""
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
    """Puts vectors in the order of a vocabulary and makes up those that are missing.

    Padding is zeros. `_UNK_` and `_EOS_` are the mean of the vectors found: an unknown word is an
    average one, as in DeepPavlov's DAM (`_EOS_` only parts turns, no model looks it up). Any other
    word without a vector is drawn from the normal distribution with the mean and standard deviation
    of the vectors found, so that different words stay different; from `N(0, 0.1)`, as in DAM's
    release, where none is found.

    Args:
        found: `{word: vector}`.
        vocabulary: A `data.vocabulary.Vocabulary`.
        dimension: Length of the vectors.
        seed: Of the vectors drawn.

    Returns:
        float32 `(len(vocabulary) + 1, dimension)`.

    >>> from data.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary(("_EOS_", "_UNK_", "a", "b"))
    >>> complete({"b": [1.0, 2.0], "a": [3.0, 4.0]}, vocabulary, 2).tolist()
    [[0.0, 0.0], [2.0, 3.0], [2.0, 3.0], [3.0, 4.0], [1.0, 2.0]]
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
    """Scales each row to the Euclidean length `norm`; rows of zeros stay.

    Args:
        vectors: Float `(rows, dimension)`.
        norm: Float above 0.

    Returns:
        Array of the same shape and dtype.

    >>> scale_to_norm(np.array([[0.0, 0.0], [3.0, 4.0]]), 10).tolist()
    [[0.0, 0.0], [6.0, 8.0]]
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors * (norm / np.where(length == 0, 1, length))).astype(vectors.dtype)


def load_text_vectors(path, vocabulary, seed=1):
    """The vectors of a vocabulary's words from a file, see `data.vector_files.read_vectors`.

    Args:
        path: The file.
        vocabulary: A `data.vocabulary.Vocabulary`.
        seed: Of the words without a vector, see `complete`.

    Returns:
        float32 `(len(vocabulary) + 1, dimension)` and the number of words found.

    Raises:
        UserError: as `read_vectors`, and where no word of the vocabulary is in it.
    """
    found = _found_vectors(path, vocabulary)
    return complete(found, vocabulary, len(next(iter(found.values()))), seed), len(found)


def append_vectors(vectors, path, vocabulary):
    """Gives each word a second vector, out of a file: its own of the corpus and a general one (Dong and Huang 2018).

    The file's vectors are scaled so that, on average, they are as far from their mean as the others from theirs. A word
    that the file lacks has their mean.

    Args:
        vectors: float32 `(len(vocabulary) + 1, dimension)`; row 0 is padding.
        path: See `read_vectors`.
        vocabulary: A `data.vocabulary.Vocabulary`.

    Returns:
        float32 `(len(vocabulary) + 1, dimension + dimension of the file)`, and how many words the file has.

    Raises:
        UserError: as `load_text_vectors`.
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
