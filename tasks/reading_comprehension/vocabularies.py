"""The words, word vectors and characters of a prepared dataset."""

import collections
from typing import NamedTuple

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.vector_files import read_vectors
from colloquy.data.vocabulary import Vocabulary
from colloquy.data.word_vectors import complete
from colloquy.tasks.reading_comprehension.data import CHARACTERS


class Vocabularies(NamedTuple):
    """The words and characters that a model knows."""

    words: Vocabulary
    vectors: np.ndarray
    """The word vectors, float32 `(words + 1, D)`; row 0 is padding."""
    characters: Vocabulary
    num_trained_words: int
    """Number of words, the last ones, that the file of vectors lacks. They have random vectors."""


def known_vocabularies(known_words):
    """The `Vocabularies` of another dataset or run."""
    return Vocabularies(
        words=known_words.vocabulary,
        vectors=known_words.read_vectors(),
        characters=Vocabulary.load(known_words.path / CHARACTERS),
        num_trained_words=known_words.metadata.get("trained_words", 0),
    )


def new_vocabularies(vectors, word_counts, letter_counts, settings, report):
    """Makes `Vocabularies` from word vectors and the counts of train."""
    trained_words = []
    if settings.trained_words:
        for word, count in word_counts.most_common():
            if count >= settings.trained_words and word not in vectors:
                trained_words.append(word)
    words = Vocabulary.of([*vectors, *trained_words])
    # Counted in this way, since `Vocabulary.of` leaves out words with white space.
    num_trained_words = len(words) - len(Vocabulary.of(vectors))
    _note_unknown_words(word_counts, words, report)

    letters = []
    for letter, count in letter_counts.most_common():
        if count >= settings.min_count:
            letters.append(letter)
    dimension = len(next(iter(vectors.values())))
    return Vocabularies(
        words=words,
        vectors=complete(vectors, words, dimension),
        characters=Vocabulary.of(letters),
        num_trained_words=num_trained_words,
    )


def _note_unknown_words(words, vocabulary, report):
    """Notes how many words of train are unknown: many are if the vectors are of other texts."""
    known_words = set(vocabulary.words)
    missing = sum(count for word, count in words.items() if word not in known_words)
    if missing:
        percent = 100 * missing / words.total()
        report.note(f"{percent:.1f} % of the words of train have no word vector: they are unknown")


def count_words(tokens, texts):
    """Counts the lower-case words of texts, dicts with `tokens`."""
    lower = ["", *[token.lower() for token in tokens]]  # they are numbered from 1
    counts = collections.Counter()
    for text in texts:
        counts.update(lower[number] for number in text["tokens"])
    return counts


def count_letters(contexts):
    """Counts the characters of contexts, without white space."""
    counts = collections.Counter()
    for context in contexts:
        counts.update("".join(context["text"].split()))
    return counts


def read_word_vectors(path, report):
    """Reads word vectors, `{lower-case word: vector}`."""
    vectors = _lower_case(read_vectors(path))
    if not vectors:
        raise UserError(f"{path}: expected word vectors. Received: none")
    dimension = len(next(iter(vectors.values())))
    report.add_file(path, f"{len(vectors):,} word vectors of dimension {dimension}")
    num_lost = sum("\ufffd" in word for word in vectors)
    if num_lost:
        report.note(f"{path}: {num_lost:,} words have U+FFFD, or bytes that are not UTF-8")
    return vectors


def _lower_case(vectors):
    """The vectors of lower-case words.

    A word that the file has only with capitals gets the vector of its first spelling there: `rome`
    gets that of `Rome`, or of `ROME` if that is first.
    """
    lower_case = {word: vector for word, vector in vectors.items() if word == word.lower()}
    for word, vector in vectors.items():
        lower_case.setdefault(word.lower(), vector)
    return lower_case


def vectors_beside(source):
    """Finds a file of word vectors in the corpus's directory."""
    files = [*sorted(source.glob("*.npz")), *sorted(source.glob("glove*.txt"))]
    if not files:
        raise UserError(
            f"{source}: expected a file of word vectors, *.npz or glove*.txt, or --vectors=FILE"
        )
    return files[0]
