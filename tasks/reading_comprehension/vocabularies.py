"""The words, word vectors and characters of a prepared dataset."""

import collections

from colloquy.base.files import UserError
from colloquy.data.prepared import VECTORS, VOCABULARY
from colloquy.data.vector_files import read_vectors
from colloquy.data.vocabulary import Vocabulary
from colloquy.data.word_vectors import complete
from colloquy.tasks.reading_comprehension.data import CHARACTERS


def known_vocabularies(known_words):
    """The words, vectors and characters of another dataset or run.

    Returns:
        Their files in a dataset, `{name: content}`.
        The number of words that the file of vectors lacked: the last ones, with random vectors.
    """
    files = {
        VOCABULARY: known_words.vocabulary,
        VECTORS: known_words.read_vectors(),
        CHARACTERS: Vocabulary.load(known_words.path / CHARACTERS),
    }
    return files, known_words.metadata.get("trained_words", 0)


def new_vocabularies(vectors, word_counts, letter_counts, settings, report):
    """As `known_vocabularies`, made from word vectors and the counts of train."""
    trained_words = []
    if settings.trained_words:
        for word, count in word_counts.most_common():
            if count >= settings.trained_words and word not in vectors:
                trained_words.append(word)
    words = Vocabulary.of([*vectors, *trained_words])
    _note_unknown_words(word_counts, words, report)
    letters = [char for char, count in letter_counts.most_common() if count >= settings.min_count]
    files = {
        VOCABULARY: words,
        VECTORS: complete(vectors, words, _dimension(vectors)),
        CHARACTERS: Vocabulary.of(letters),
    }
    # Counted in this way, since `Vocabulary.of` leaves out words with white space.
    return files, len(words) - len(Vocabulary.of(vectors))


def _dimension(vectors):
    return len(next(iter(vectors.values())))


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
    """Reads word vectors, `{lower-case word: vector}`.

    A word that the file has only with capitals gets the vector of its first spelling there: `rome`
    gets that of `Rome`, or of `ROME` if that is first.
    """
    as_written = read_vectors(path)
    vectors = {word: vector for word, vector in as_written.items() if word == word.lower()}
    for word, vector in as_written.items():
        vectors.setdefault(word.lower(), vector)
    if not vectors:
        raise UserError(f"{path}: expected word vectors. Received: none")
    report.add_file(path, f"{len(vectors):,} word vectors of dimension {_dimension(vectors)}")
    num_lost = sum("\ufffd" in word for word in vectors)
    if num_lost:
        report.note(f"{path}: {num_lost:,} words have U+FFFD, or bytes that are not UTF-8")
    return vectors


def vectors_beside(source):
    """Finds a file of word vectors in the corpus's directory."""
    files = [*sorted(source.glob("*.npz")), *sorted(source.glob("glove*.txt"))]
    if not files:
        raise UserError(
            f"{source}: expected a file of word vectors, *.npz or glove*.txt, or --vectors=FILE"
        )
    return files[0]
