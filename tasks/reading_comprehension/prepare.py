"""Prepares SQuAD files: from JSON to a prepared dataset.

    reading.pkl     {"tokens": distinct tokens as texts,
                     "contexts": [{"text", "tokens", "offsets", "article"}],
                     "splits": {split: [{"id", "context", "question", "tokens", "answers",
                                         "spans"}]}}
    characters.txt  line n is the character with id n

and the files of `data.prepared`; words are in lower case.

`tokens` of contexts and questions are numbers of the distinct tokens, counted from 1. `offsets` has
the start of the first token in the text, its end, the start of the second token, and so on.
`answers` are the reference texts, `spans` their first and last tokens.
"""

import collections
import itertools
import pathlib
from typing import NamedTuple

import numpy as np

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.mojibake import note_unrepaired
from colloquy.data.prepared import VECTORS, VOCABULARY, CommonSettings, write
from colloquy.data.report import Report, choose_examples, print_summary
from colloquy.data.vocabulary import Vocabulary
from colloquy.data.word_vectors import complete, read_vectors
from colloquy.engine.vocabularies import Words
from colloquy.metrics.reading_comprehension import exact_match
from colloquy.tasks.reading_comprehension.data import CHARACTERS, READING
from colloquy.tasks.reading_comprehension.encoder import Encoder


class Settings(CommonSettings):
    """Settings of preparing a corpus."""

    vectors: str | None = None
    """File of word vectors, text or .npz; default: the first `*.npz` or `glove*.txt` beside the
    data."""
    min_count: Positive = 2
    """Characters that occur less often in the training files are unknown."""
    trained_words: NonNegative = 0
    """Words of train without a vector that occur this often get one, which --set train_unknown=true
    trains; 0: none."""


def prepare(corpus, source, out, settings):
    """Prepares a corpus for reading comprehension, see `data.prepared`."""
    reader = CORPORA[corpus].reader
    source = pathlib.Path(source)
    files = reader.find_splits(source)
    report = Report()
    # Missing words or vectors are found before the corpus is read, which takes longer.
    if settings.vocabulary_of:
        known_words = Words.open(settings.vocabulary_of, "reading_comprehension")
    else:
        vectors = _read_vectors(settings.vectors or _vectors_beside(source), report)

    with atomic_directory(out) as directory:
        encoder = Encoder()
        train = _read_split(files["train"], "train", reader, encoder, report)
        # Vocabularies are made of train: words are counted before the encoder has those of dev.
        word_counts = _count_words(encoder.tokens, [*encoder.contexts, *train])
        letter_counts = _count_letters(encoder.contexts)
        dev = _read_split(files["dev"], "dev", reader, encoder, report)

        if settings.vocabulary_of:
            vocabularies = _known_vocabularies(known_words)
        else:
            vocabularies = _new_vocabularies(vectors, word_counts, letter_counts, settings)
            _note_unknown_words(word_counts, vocabularies.words, report)

        statistics = {
            "train": _statistics(files["train"], train, encoder.contexts),
            "dev": _statistics(files["dev"], dev, encoder.contexts),
        }
        vocabulary_size = len(vocabularies.words)
        num_characters = len(vocabularies.characters)
        contents = {
            READING: {
                "tokens": list(encoder.tokens),
                "contexts": encoder.contexts,
                "splits": {"train": train, "dev": dev},
            },
            VECTORS: vocabularies.vectors,
            VOCABULARY: vocabularies.words,
            CHARACTERS: vocabularies.characters,
        }
        write(
            directory,
            contents,
            corpus,
            source,
            settings,
            {"vocabulary": vocabulary_size, "characters": num_characters, **statistics},
            trained_words=vocabularies.num_trained_words,
        )
    report.note_unread(source)
    report.print(_show_examples(train, encoder, vocabularies.words))
    print_summary(statistics)
    print(f"{out}: {vocabulary_size:,} words, {num_characters:,} characters")


def _read_split(file, split, reader, encoder, report):
    """Reads and encodes the questions of a split that have an answer."""
    questions = reader.read(file, split, report)
    answered = [question for question in questions if question.answers]
    if not answered:
        received = f"{len(questions):,} unanswerable questions"
        raise UserError(f"{file}: expected questions with answers. Received: {received}")
    report.leave_out("questions without an answer", len(questions) - len(answered))
    texts = {question.context for question in answered}
    note_unrepaired(texts, file.name, "the offsets of answers count its characters", report)
    encoded = [encoder.encode(question) for question in answered]
    kept = [question for question in encoded if question["spans"]]
    report.leave_out("questions whose answers have no words", len(encoded) - len(kept))
    if not kept:
        raise UserError(f"{file}: expected answers with words. Received: none")
    report.counts["questions"] += len(kept)
    return kept


# === Vocabularies ===


class Vocabularies(NamedTuple):
    """The words and characters that a model knows."""

    words: Vocabulary
    vectors: np.ndarray
    """The word vectors, float32 `(words + 1, D)`; row 0 is padding."""
    characters: Vocabulary
    num_trained_words: int
    """Number of words, the last ones, that the file of vectors lacks. They have random vectors."""


def _known_vocabularies(known_words):
    """The `Vocabularies` of another dataset or run."""
    return Vocabularies(
        words=known_words.vocabulary,
        vectors=known_words.read_vectors(),
        characters=Vocabulary.load(known_words.path / CHARACTERS),
        num_trained_words=known_words.metadata.get("trained_words", 0),
    )


def _new_vocabularies(vectors, word_counts, letter_counts, settings):
    """Makes `Vocabularies` from word vectors and the counts of train."""
    trained_words = []
    if settings.trained_words:
        for word, count in word_counts.most_common():
            if count >= settings.trained_words and word not in vectors:
                trained_words.append(word)
    words = Vocabulary.of([*vectors, *trained_words])
    # `Vocabulary.of` leaves out words with white space, so its words are fewer than it is given.
    num_trained_words = len(words) - len(Vocabulary.of(vectors))

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


def _count_words(tokens, texts):
    """Counts the lower-case words of texts, dicts with `tokens`."""
    lower = [token.lower() for token in tokens]
    counts = collections.Counter()
    for text in texts:
        counts.update(lower[number - 1] for number in text["tokens"])
    return counts


def _count_letters(contexts):
    """Counts the characters of contexts, without white space."""
    counts = collections.Counter()
    for context in contexts:
        counts.update("".join(context["text"].split()))
    return counts


def _note_unknown_words(words, vocabulary, report):
    """Notes how many of train's words are unknown: the vectors may be of other texts."""
    known_words = set(vocabulary.words)
    missing = sum(count for word, count in words.items() if word not in known_words)
    if missing:
        percent = 100 * missing / words.total()
        report.note(f"{percent:.1f} % of the words of train have no word vector: they are unknown")


def _read_vectors(path, report):
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


def _vectors_beside(source):
    files = [*sorted(source.glob("*.npz")), *sorted(source.glob("glove*.txt"))]
    if not files:
        raise UserError(
            f"{source}: expected a file of word vectors, *.npz or glove*.txt, or --vectors=FILE"
        )
    return files[0]


# === Report ===


def _statistics(file, questions, contexts):
    numbers = {question["context"] for question in questions}
    context_lengths = [len(contexts[number]["tokens"]) for number in numbers]
    return {
        "file": file.name,
        "questions": len(questions),
        "contexts": len(numbers),
        "context_words_95": int(np.percentile(context_lengths, 95)),
        "inexact_answers": _count_inexact(questions, contexts),
    }


def _count_inexact(questions, contexts):
    """Counts questions whose answers are not whole tokens, so that even a perfect model fails.

    For example, the answer "3" in the token "3rd".
    """
    inexact = 0
    for question in questions:
        context = contexts[question["context"]]
        offsets = context["offsets"]
        texts_of_spans = []
        for first, last in question["spans"]:
            start = offsets[2 * first]
            end = offsets[2 * last + 1]
            texts_of_spans.append(context["text"][start:end])
        pairs = itertools.product(texts_of_spans, question["answers"])
        if not any(exact_match(text, answer) for text, answer in pairs):
            inexact += 1
    return inexact


def _show_examples(questions, encoder, vocabulary):
    """The examples of the report: context and question; unknown words are in brackets."""
    tokens = list(encoder.tokens)

    def text(numbers):
        return vocabulary.in_brackets([tokens[number - 1].lower() for number in numbers])

    def show(place):
        question = questions[place]
        context = encoder.contexts[question["context"]]
        source = f"{text(context['tokens'])} / {text(question['tokens'])}"
        return source, question["answers"][0]

    return choose_examples(len(questions), show)
