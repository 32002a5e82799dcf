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
from colloquy.tasks.reading_comprehension.questions import Questions
from colloquy.tasks.reading_comprehension.second_contexts import (
    contexts_of_same_article,
    sentences_to_add,
)
from colloquy.tasks.reading_comprehension.tokens import Tokens

READING = "reading.pkl"
CHARACTERS = "characters.txt"
SPLITS = ("train", "dev")


@dataclasses.dataclass(frozen=True)
class ReadingSplit(Questions):
    """The questions of a split. The contexts are those of all splits."""

    texts: list[str]
    """The contexts as texts."""
    offsets: Sequences
    """For each context: the start of its first word, the end of it, the start of the second word,
    and so on, in characters.
    """
    articles: np.ndarray
    """Article of each context, int `(contexts,)`; a negative number of its own, where the dataset
    names none.
    """
    ids: list[str]
    """Id of each question in the corpus."""
    answers: list[list[str]]
    """Reference answers of each question."""
    question_texts: list[str]
    """The questions as they were asked."""

    @property
    def references(self):
        """`{question id: reference answers}`."""
        return dict(zip(self.ids, self.answers, strict=True))

    # Computed from the split when they are asked for.
    second_contexts = functools.cached_property(contexts_of_same_article)
    """Contexts that do not answer each question."""
    other_sentences = functools.cached_property(sentences_to_add)
    """A sentence of these contexts for each question."""
    misleading_sentences = functools.cached_property(MisleadingSentences)
    """Draws sentences with the words of a question."""

    def asked_of(self, rows, contexts):
        """Returns question `rows[i]`, asked of context `contexts[i]`, for each `i`.

        Answers and spans are not changed: they stay those of the question's own context.
        """
        return dataclasses.replace(
            self,
            context_of_question=contexts,
            questions=self.questions.take(rows),
            ids=[self.ids[row] for row in rows],
            answers=[self.answers[row] for row in rows],
            spans=[self.spans[row] for row in rows],
            question_texts=[self.question_texts[row] for row in rows],
        )

    def answer(self, row, first, last):
        """The text from word `first` to word `last` of the context of question `row`."""
        context = self.context_of_question[row]
        [offsets] = self.offsets.lists([context])
        # The start of word w is offset 2w, and its end offset 2w + 1.
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
    """Number of words at the end of the vocabulary that have random vectors, which can be trained.
    """


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
    """Makes `{name: ReadingSplit}` of the content of `READING`, which prepare.py describes.

    `Sequences.of` also checks: it refuses what is not a list of 32-bit integers.
    """
    shared = {
        "tokens": Tokens.of(prepared.texts(data["tokens"]), vocabulary, characters),
        "contexts": Sequences.of(_column(data["contexts"], "tokens")),
        "texts": prepared.texts(_column(data["contexts"], "text")),
        "offsets": Sequences.of(_column(data["contexts"], "offsets")),
        "articles": Sequences.of([_article_numbers(data["contexts"])]).ids,
    }
    splits = {}
    for name in SPLITS:
        questions = data["splits"].get(name, [])
        split = ReadingSplit(
            **shared,
            ids=prepared.texts(_column(questions, "id")),
            context_of_question=Sequences.of([_column(questions, "context")]).ids.astype(np.int64),
            questions=Sequences.of(_column(questions, "tokens")),
            answers=[prepared.texts(answers) for answers in _column(questions, "answers")],
            spans=_column(questions, "spans"),
            question_texts=prepared.texts(_column(questions, "question")),
        )
        num_tokens = len(split.tokens.texts)
        _check_range("tokens", split.contexts.ids, 1, num_tokens)
        _check_range("tokens", split.questions.ids, 1, num_tokens)
        _check_range("contexts", split.context_of_question, 0, len(split.contexts))
        _check_ids(split)
        _check_answers(split)
        splits[name] = split
    _check_offsets(split)  # all splits share the contexts
    return splits


def _column(records, name):
    return [record[name] for record in records]


def _article_numbers(contexts):
    """The number of each context's article.

    Some corpora have no articles: a context lacks `article`, or it is 0. Such a context is an
    article of its own. Negative numbers stand for these: no real article has one.
    """
    return [context.get("article") or -1 - place for place, context in enumerate(contexts)]


# === Checks: each raises a `ValueError` ===


def _check_range(name, numbers, low, end):
    if len(numbers) and not low <= numbers.min() <= numbers.max() < end:
        raise ValueError(f"{name} must be from {low} to {end - 1}")


def _check_offsets(split):
    if (split.offsets.lengths != 2 * split.contexts.lengths).any():
        raise ValueError("offsets must be the start and the end of each token")
    for row, (offsets, text) in enumerate(zip(split.offsets.lists(), split.texts, strict=True)):
        bounded = [0, *offsets, len(text)]
        if bounded != sorted(bounded):
            raise ValueError(
                f"offsets of context {row} must not fall, and end within its {len(text)} characters"
            )


def _check_ids(split):
    """Refuses an id that two different questions have.

    SQuAD's own file repeats some questions with their ids: that is allowed.
    """
    question_of_id = {}
    questions = zip(split.context_of_question.tolist(), split.question_texts, strict=True)
    for id, context_and_text in zip(split.ids, questions, strict=True):
        if question_of_id.setdefault(id, context_and_text) != context_and_text:
            raise ValueError(f"different questions have the id {id:.60}")


def _check_answers(split):
    context_lengths = split.contexts.lengths[split.context_of_question]
    answered = zip(split.ids, split.answers, split.spans, context_lengths, strict=True)
    for id, answers, spans, length in answered:
        if not answers or not spans:
            raise ValueError(f"question {id:.60} must have an answer and its span")
        for first, last in spans:
            if type(first) is not int or type(last) is not int or not 0 <= first <= last < length:
                raise ValueError(
                    f"question {id:.60}: spans must be whole numbers within its {length} words"
                )
