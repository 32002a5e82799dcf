"""Prepared datasets of questions on contexts: read from their files, and checked."""

import dataclasses
import functools
import pathlib

import numpy as np

from colloquy.base.files import UserError
from colloquy.data import pickles, prepared
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.reading_comprehension.misleading import MisleadingSentences
from colloquy.tasks.reading_comprehension.questions import Questions, Tokens
from colloquy.tasks.reading_comprehension.second_contexts import (
    contexts_of_same_article,
    sentences_to_add,
)

READING = "reading.pkl"
CHARACTERS = "characters.txt"
SPLITS = ("train", "dev")


@dataclasses.dataclass(frozen=True)
class ReadingSplit(Questions):
    """The questions of a split. The contexts are those of all splits."""

    texts: list[str]
    """The contexts as texts."""
    offsets: Sequences
    """Start and end of each token of a context, in characters."""
    articles: np.ndarray
    """Article of each context, int `(contexts,)`; a negative number of its own, where the dataset
    names none.
    """
    ids: list[str]
    answers: list[list[str]]
    """Reference answers of each question."""
    question_texts: list[str]
    """The questions as they were asked."""

    @property
    def references(self):
        """`{question id: reference answers}`."""
        return dict(zip(self.ids, self.answers, strict=True))

    second_contexts = functools.cached_property(contexts_of_same_article)
    """Contexts that do not answer the questions."""
    other_sentences = functools.cached_property(sentences_to_add)
    """Sentences of these contexts."""
    misleading_sentences = functools.cached_property(MisleadingSentences)
    """Draws sentences with the words of a question."""

    def asked_of(self, rows, context):
        """Returns question `rows[i]`, asked of context `context[i]`, for each `i`.

        The spans are those of the question's own context, also if it is asked of another.
        """
        return dataclasses.replace(
            self,
            context=context,
            questions=self.questions.take(rows),
            ids=[self.ids[row] for row in rows],
            answers=[self.answers[row] for row in rows],
            spans=[self.spans[row] for row in rows],
            question_texts=[self.question_texts[row] for row in rows],
        )

    def answer(self, row, first, last):
        """The text of a span of words of a question's context."""
        context = self.context[row]
        offsets = self.offsets.ids[self.offsets.starts[context] :]
        return self.texts[context][offsets[2 * first] : offsets[2 * last + 1]]


@dataclasses.dataclass(frozen=True)
class ReadingDataset(prepared.Dataset):
    """A prepared dataset: `splits` of `ReadingSplit`."""

    vectors: np.ndarray
    """Word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding."""
    vocabulary: Vocabulary
    """Lower-case words."""
    characters: Vocabulary
    trained_words: int
    """So many words at the end of the vocabulary have random vectors, which can be trained."""


def load_dataset(path):
    """Reads a prepared dataset; a missing or malformed file is a `UserError`."""
    path = pathlib.Path(path)
    metadata = prepared.read_metadata(path, "reading_comprehension")
    vocabulary = prepared.read_vocabulary(path / prepared.VOCABULARY)
    characters = prepared.read_vocabulary(path / CHARACTERS)
    vectors = prepared.read_embedding(path / prepared.VECTORS, vocabulary)
    data = pickles.load(path / READING)
    with prepared.checked(path / READING):
        splits = _make_splits(data, vocabulary, characters)

    trained_words = metadata.get("trained_words", 0)
    if type(trained_words) is not int or not 0 <= trained_words < len(vocabulary):
        raise UserError(
            f"{path / prepared.METADATA}: expected trained_words to be a whole number from 0 to "
            f"{len(vocabulary) - 1}. Received: {trained_words!r:.60}"
        )
    return ReadingDataset(
        path=path,
        name=metadata["name"],
        splits=splits,
        vectors=vectors,
        vocabulary=vocabulary,
        characters=characters,
        trained_words=trained_words,
    )


def _make_splits(data, vocabulary, characters):
    contexts = data["contexts"]
    # Corpora without articles have none, or 0: then each context is an article of its own.
    articles = []
    for number, context in enumerate(contexts, 1):
        articles.append(context.get("article") or -number)
    # `Sequences.of` refuses what is no 32-bit integer.
    shared = {
        "tokens": Tokens.of(prepared.texts(data["tokens"]), vocabulary, characters),
        "contexts": Sequences.of([context["tokens"] for context in contexts]),
        "texts": prepared.texts([context["text"] for context in contexts]),
        "offsets": Sequences.of([context["offsets"] for context in contexts]),
        "articles": Sequences.of([articles]).ids,
    }
    _check_contexts(shared)
    splits = {}
    for name in SPLITS:
        questions = data["splits"].get(name, [])
        context = Sequences.of([[question["context"] for question in questions]]).ids
        splits[name] = ReadingSplit(
            **shared,
            ids=prepared.texts([question["id"] for question in questions]),
            context=context.astype(np.int64),
            questions=Sequences.of([question["tokens"] for question in questions]),
            answers=[prepared.texts(question["answers"]) for question in questions],
            spans=[question["spans"] for question in questions],
            question_texts=prepared.texts([question["question"] for question in questions]),
        )
        _check_questions(splits[name])
    return splits


def _check_contexts(shared):
    """Raises a `ValueError` if a token or an offset is out of range."""
    contexts, offsets = shared["contexts"], shared["offsets"]
    _check_range("tokens", contexts.ids, 1, len(shared["tokens"].words))
    if (offsets.lengths != 2 * contexts.lengths).any():
        raise ValueError("offsets must be the start and the end of each token")
    for row, (places, text) in enumerate(zip(offsets.lists(), shared["texts"], strict=True)):
        bounded = [0, *places, len(text)]
        if bounded != sorted(bounded):
            raise ValueError(
                f"offsets of context {row} must not fall, and end within its {len(text)} characters"
            )


def _check_questions(split):
    """Raises a `ValueError` if a token, a context or a span is out of range, if different questions
    have one id, or if a question has no answer.
    """
    _check_range("tokens", split.questions.ids, 1, len(split.tokens.words))
    _check_range("contexts", split.context, 0, len(split.contexts))
    # SQuAD's own file repeats some questions, with their ids.
    question_of_id = {}
    questions = zip(split.context.tolist(), split.question_texts, strict=True)
    for id, question in zip(split.ids, questions, strict=True):
        if question_of_id.setdefault(id, question) != question:
            raise ValueError(f"different questions have the id {id:.60}")

    context_lengths = split.contexts.lengths[split.context]
    answered = zip(split.ids, split.answers, split.spans, context_lengths, strict=True)
    for id, answers, spans, length in answered:
        if not answers:
            raise ValueError(f"question {id:.60} must have an answer")
        if not spans or not all(_is_span(span, length) for span in spans):
            raise ValueError(
                f"question {id:.60}: spans must be whole numbers within its {length} words"
            )


def _is_span(span, length):
    first, last = span
    if type(first) is not int or type(last) is not int:
        return False
    return 0 <= first <= last < length


def _check_range(name, numbers, low, end):
    if len(numbers) and not low <= numbers.min() <= numbers.max() < end:
        raise ValueError(f"{name} must be from {low} to {end - 1}")
