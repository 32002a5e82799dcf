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

import itertools
import pathlib

import numpy as np

from colloquy.base.config import NonNegative, Positive
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.mojibake import note_unrepaired
from colloquy.data.prepared import VOCABULARY, CommonSettings, write
from colloquy.data.report import Report, choose_examples, print_summary
from colloquy.engine.vocabularies import Words
from colloquy.metrics.reading_comprehension import exact_match
from colloquy.tasks.reading_comprehension.data import CHARACTERS, READING
from colloquy.tasks.reading_comprehension.encoder import Encoder
from colloquy.tasks.reading_comprehension.vocabularies import (
    count_letters,
    count_words,
    known_vocabularies,
    new_vocabularies,
    read_word_vectors,
    vectors_beside,
)


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
        vectors = read_word_vectors(settings.vectors or vectors_beside(source), report)

    with atomic_directory(out) as directory:
        encoder = Encoder()
        splits = {"train": _read_split(files["train"], "train", reader, encoder, report)}
        # Vocabularies are made of train alone, so words are counted before dev is encoded.
        word_counts = count_words(encoder.tokens, [*encoder.contexts, *splits["train"]])
        letter_counts = count_letters(encoder.contexts)
        splits["dev"] = _read_split(files["dev"], "dev", reader, encoder, report)

        if settings.vocabulary_of:
            contents, num_trained = known_vocabularies(known_words)
        else:
            contents, num_trained = new_vocabularies(
                vectors, word_counts, letter_counts, settings, report
            )
        contents[READING] = {
            "tokens": list(encoder.tokens),
            "contexts": encoder.contexts,
            "splits": splits,
        }
        sizes = {
            "vocabulary": len(contents[VOCABULARY]),
            "characters": len(contents[CHARACTERS]),
        }
        statistics = {}
        for split, questions in splits.items():
            statistics[split] = _statistics(files[split], questions, encoder.contexts)
        counts = {**sizes, **statistics}
        write(directory, contents, corpus, source, settings, counts, trained_words=num_trained)
    report.note_unread(source)
    report.print(_show_examples(splits["train"], encoder, contents[VOCABULARY]))
    print_summary(statistics)
    print(f"{out}: {sizes['vocabulary']:,} words, {sizes['characters']:,} characters")


def _read_split(file, split, reader, encoder, report):
    """Reads and encodes the questions of a split that have an answer."""
    questions = reader.read(file, split, report)
    answered = [question for question in questions if question.answers]
    if not answered:
        raise UserError(
            f"{file}: expected questions with answers. Received: {len(questions):,} unanswerable "
            "questions"
        )
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
        # `offsets` alternates between the start and the end of a token.
        starts = context["offsets"][0::2]
        ends = context["offsets"][1::2]
        spans = question["spans"]
        texts = [context["text"][starts[first] : ends[last]] for first, last in spans]
        pairs = itertools.product(texts, question["answers"])
        if not any(exact_match(text, answer) for text, answer in pairs):
            inexact += 1
    return inexact


def _show_examples(questions, encoder, vocabulary):
    """The examples of the report: context and question; unknown words are in brackets."""
    tokens = ["", *encoder.tokens]  # they are numbered from 1

    def text(numbers):
        return vocabulary.in_brackets([tokens[number].lower() for number in numbers])

    def show(place):
        question = questions[place]
        context = encoder.contexts[question["context"]]
        source = f"{text(context['tokens'])} / {text(question['tokens'])}"
        return source, question["answers"][0]

    return choose_examples(len(questions), show)
