"""The word vectors of a dataset: word2vec on its training text, or a file of vectors."""

import functools
from typing import Literal

from colloquy.base.config import Config, Positive
from colloquy.data.vocabulary import SPECIALS
from colloquy.data.word_vectors import (
    append_vectors,
    default_epochs,
    default_workers,
    load_text_vectors,
    train_word2vec,
)

NEGATIVE = 25
"""Word2vec: negative samples per word, as in the DAM paper."""
SAMPLE = 1e-4
"""Word2vec: words above this frequency, a fraction of all words, are subsampled."""


class VectorSettings(Config):
    """Settings of word vectors."""

    vectors: str | None = None
    """Text file of word2vec or GloVe vectors to use instead of training them."""
    general_vectors: str | None = None
    """File of word2vec or GloVe vectors, also .npz, appended to those of the corpus."""
    dimension: Positive = 200
    """Dimension of the word vectors; a file of `vectors` has its own."""
    window: Positive = 10
    """Word2vec: context words to each side."""
    word2vec_text: Literal["utterances", "conversations"] = "utterances"
    """Word2vec: text within which windows stay. With conversations, questions and answers share
    windows.
    """
    word2vec_epochs: Positive | None = None
    """Word2vec: passes over the text. Default: 20; fewer above 2.5 million words, at least one."""


def make_vectors(text, vocabulary, settings, seed, progress):
    """Trains or reads the vectors of a vocabulary.

    Args:
        text: `counting.TrainingText`.
        vocabulary: `data.vocabulary.Vocabulary`.
        settings: `VectorSettings`.
        seed: Seed of word2vec and of missing vectors.
        progress: `rich.progress.Progress`.

    Returns:
        The settings with `word2vec_epochs` filled in, if word2vec was trained.
        The vectors, float32 `(len(vocabulary) + 1, dimension)`.
    """
    found_by_file = {}
    if settings.vectors:
        vectors, found = load_text_vectors(settings.vectors, vocabulary, seed)
        found_by_file[settings.vectors] = found
    else:
        num_known = sum(text.counts[word] for word in vocabulary.words[len(SPECIALS) :])
        epochs = settings.word2vec_epochs or default_epochs(num_known)
        settings = settings.replace(word2vec_epochs=epochs)
        task = progress.add_task("word vectors", total=epochs)
        vectors = train_word2vec(
            text.read_sentences(),
            vocabulary,
            dimension=settings.dimension,
            window=settings.window,
            negative=NEGATIVE,
            sample=SAMPLE,
            seed=seed,
            epochs=epochs,
            workers=default_workers(num_known),
            after_epoch=functools.partial(progress.advance, task),
            directory=text.sentences.parent,
        )
    if settings.general_vectors:
        vectors, found = append_vectors(vectors, settings.general_vectors, vocabulary)
        found_by_file[settings.general_vectors] = found
    num_words = len(vocabulary) - len(SPECIALS)
    for file, found in found_by_file.items():
        print(f"{file}: vectors of {found:,} of {num_words:,} words")
    return settings, vectors
