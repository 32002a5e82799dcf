"""Prepares SQuAD files: from JSON to a prepared dataset.

    reading.pkl     {"tokens": distinct tokens as texts,
                     "contexts": [{"text", "tokens", "offsets", "article"}],
                     "splits": {split: [{"id", "context", "question", "tokens", "answers",
                                         "spans"}]}}
    characters.txt  line n is the character with id n

and the files of `data.prepared`; words are in lower case.

`tokens` of contexts and questions are indices of distinct tokens, counted from 1; `offsets` is the
flat list of their starts and ends in the text; `answers` are the reference texts, `spans` their
first and last tokens.
"""

import collections
import itertools
import pathlib

import numpy as np

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.mojibake import note_unrepaired
from colloquy.data.offsets import read_text, tokens_of_span
from colloquy.data.prepared import VECTORS, VOCABULARY, CommonSettings, write
from colloquy.data.report import Report, choose_examples, print_summary
from colloquy.data.vector_files import read_vectors
from colloquy.data.vocabulary import Vocabulary
from colloquy.data.word_vectors import complete
from colloquy.engine.vocabularies import Words
from colloquy.metrics.reading_comprehension import exact_match
from colloquy.tasks.reading_comprehension.data import CHARACTERS, READING
from colloquy.tasks.reading_comprehension.questions import number_words


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
    known_words = None
    vectors = None
    if settings.vocabulary_of:
        known_words = Words.open(settings.vocabulary_of, "reading_comprehension")
    else:
        path = settings.vectors or _vectors_beside(source)
        vectors = _lower_case(read_vectors(path))
        if not vectors:
            raise UserError(f"{path}: expected word vectors. Received: none")

    report = Report()
    if vectors:
        dimension = len(next(iter(vectors.values())))
        report.add_file(path, f"{len(vectors):,} word vectors of dimension {dimension}")
        num_lost = sum("\ufffd" in word for word in vectors)
        if num_lost:
            report.note(f"{path}: {num_lost:,} words have U+FFFD, or bytes that are not UTF-8")
    with atomic_directory(out) as directory:
        encoder = Encoder()
        splits = {"train": _read_split(files["train"], "train", reader, encoder, report)}
        # Counted before the encoder has the words of dev.
        words = encoder.count_words(splits["train"])
        letters = encoder.count_letters()
        splits["dev"] = _read_split(files["dev"], "dev", reader, encoder, report)
        if known_words:
            vocabulary = known_words.vocabulary
            characters = Vocabulary.load(known_words.path / CHARACTERS)
            table = known_words.read_vectors()
            trained_words = known_words.metadata.get("trained_words", 0)
        else:
            vocabulary, table, trained_words = _make_vocabulary(words, vectors, settings)
            _note_unknown_words(words, vocabulary, report)
            characters = Vocabulary.of(
                char for char, count in letters.most_common() if count >= settings.min_count
            )

        statistics = {}
        for split, questions in splits.items():
            statistics[split] = {
                "file": files[split].name,
                **_statistics(questions, encoder.contexts),
            }
        contents = {
            READING: {
                "tokens": list(encoder.tokens),
                "contexts": encoder.contexts,
                "splits": splits,
            },
            VECTORS: table,
            VOCABULARY: vocabulary,
            CHARACTERS: characters,
        }
        counts = {"vocabulary": len(vocabulary), "characters": len(characters), **statistics}
        write(directory, contents, corpus, source, settings, counts, trained_words=trained_words)
    report.note_unread(source)
    report.print(_show_examples(splits["train"], encoder, vocabulary))
    print_summary(statistics)
    print(f"{out}: {len(vocabulary):,} words, {len(characters):,} characters")


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


def _note_unknown_words(words, vocabulary, report):
    """Notes how many of train's words are unknown: the vectors may be of other texts."""
    known_words = set(vocabulary.words)
    missing = sum(count for word, count in words.items() if word not in known_words)
    if missing:
        percent = 100 * missing / words.total()
        report.note(f"{percent:.1f} % of the words of train have no word vector: they are unknown")


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


class Encoder:
    """Encodes questions for `reading.pkl`, and collects the distinct tokens and contexts."""

    def __init__(self):
        self.tokens = {}
        """`{token: number}`, from 1, in the order of their first occurrence."""
        self.contexts = []
        self.context_numbers = {}

    def encode(self, question):
        number = self._number_context(question)
        flat = self.contexts[number]["offsets"]
        offsets = list(zip(flat[::2], flat[1::2], strict=True))

        # Dicts keep the order and drop repetitions.
        spans = {}
        answers = {}
        for answer in question.answers:
            answers[question.context[answer.start : answer.end]] = None
            span = tokens_of_span(offsets, answer.start, answer.end)
            if span:
                spans[span] = None
        return {
            "id": question.id,
            "context": number,
            "question": question.text,
            "tokens": number_words(read_text(question.text).words, self.tokens),
            "answers": list(answers),
            "spans": [list(span) for span in spans],
        }

    def count_words(self, questions):
        """Counts the lower-case words of all contexts and of `questions`."""
        lower = [token.lower() for token in self.tokens]
        counts = collections.Counter()
        for text in (*self.contexts, *questions):
            counts.update(lower[number - 1] for number in text["tokens"])
        return counts

    def count_letters(self):
        """Counts the characters of all contexts, without white space."""
        counts = collections.Counter()
        for context in self.contexts:
            counts.update("".join(context["text"].split()))
        return counts

    def _number_context(self, question):
        text = question.context
        if text in self.context_numbers:
            return self.context_numbers[text]

        context = read_text(text)
        if not context.words:
            raise UserError(
                f"question {question.id}: expected words in its context. Received: {text!r:.60}"
            )
        number = len(self.contexts)
        self.context_numbers[text] = number
        self.contexts.append(
            {
                "text": text,
                "tokens": number_words(context.words, self.tokens),
                "offsets": list(itertools.chain(*context.offsets)),
                "article": question.article,
            }
        )
        return number


def _lower_case(vectors):
    """The vectors of lower-case words; a word that a file has with capitals alone takes the first
    of these, as `rome` that of `Rome`.
    """
    lower_case = {word: vector for word, vector in vectors.items() if word == word.lower()}
    for word, vector in vectors.items():
        lower_case.setdefault(word.lower(), vector)
    return lower_case


def _count_inexact(questions, contexts):
    """The number of questions whose answers no tokens give: a perfect reader would miss them."""
    inexact = 0
    for question in questions:
        context = contexts[question["context"]]
        offsets = context["offsets"]
        texts = []
        for first, last in question["spans"]:
            texts.append(context["text"][offsets[2 * first] : offsets[2 * last + 1]])
        pairs = itertools.product(texts, question["answers"])
        inexact += not any(exact_match(text, answer) for text, answer in pairs)
    return inexact


def _make_vocabulary(words, vectors, settings):
    """Makes a vocabulary from the word vectors and the counts of train's words.

    Returns it, its word vectors, and the number of its words without a vector in the file.
    """
    frequent = []
    if settings.trained_words:
        for word, count in words.most_common():
            if count >= settings.trained_words and word not in vectors:
                frequent.append(word)
    vocabulary = Vocabulary.of([*vectors, *frequent])
    dimension = len(next(iter(vectors.values())))
    table = complete(vectors, vocabulary, dimension)
    trained_words = len(vocabulary) - len(Vocabulary.of(vectors))
    return vocabulary, table, trained_words


def _vectors_beside(source):
    files = [*sorted(source.glob("*.npz")), *sorted(source.glob("glove*.txt"))]
    if not files:
        raise UserError(
            f"{source}: expected a file of word vectors, *.npz or glove*.txt, or --vectors=FILE"
        )
    return files[0]


def _statistics(questions, contexts):
    numbers = {question["context"] for question in questions}
    context_lengths = [len(contexts[number]["tokens"]) for number in numbers]
    return {
        "questions": len(questions),
        "contexts": len(numbers),
        "context_words_95": int(np.percentile(context_lengths, 95)),
        "inexact_answers": _count_inexact(questions, contexts),
    }
