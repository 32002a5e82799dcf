"""Questions on contexts, read from prepared files, and their batches as NumPy arrays.

Letters:
    N distinct tokens   L characters   B questions   T context words   J query words
    A spans of an answer
"""

import dataclasses
import functools
import pathlib

import numpy as np

from colloquy.base.files import UserError
from colloquy.data import pickles, prepared
from colloquy.data.batching import XLA_MULTIPLE
from colloquy.data.sequences import Sequences, round_up
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.reading_comprehension.misleading import MisleadingSentences
from colloquy.tasks.reading_comprehension.second_contexts import (
    contexts_of_same_article,
    sentences_to_add,
)
from colloquy.tasks.reading_comprehension.windows import window_of_answer

READING = "reading.pkl"
CHARACTERS = "characters.txt"
SPLITS = ("train", "dev")
WORD_CHARACTERS = 16
"""Number of characters that are read of each word, the first ones."""
NO_SPAN = -1
"""Padding of the spans of answers."""


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Ids of each distinct token and of its characters; row 0 is padding."""

    words: np.ndarray
    """Word ids, int32 `(tokens + 1,)`."""
    characters: np.ndarray
    """Character ids, int32 `(tokens + 1, L)`, padded with 0."""
    texts: list[str]
    """The tokens as they are written; of row 0 an empty text."""

    @classmethod
    def of(cls, texts, vocabulary, characters):
        """Looks tokens up: words in lower case, characters as they are.

        >>> tokens = Tokens.of(["Ab", "c"], Vocabulary.of(["ab"]), Vocabulary.of("abA"))
        >>> tokens.words.tolist(), tokens.characters[:, :3].tolist()
        ([0, 3, 2], [[0, 0, 0], [5, 4, 0], [2, 0, 0]])
        """
        words = [0, *vocabulary.encode(text.lower() for text in texts)]
        letters = [[]]
        for text in texts:
            letters.append(characters.encode(text[:WORD_CHARACTERS]))
        rows = np.arange(len(words))
        padded_letters = Sequences.of(letters).padded(rows, WORD_CHARACTERS)
        return cls(np.array(words, np.int32), padded_letters, ["", *texts])


def number_words(words, numbers_of_words):
    """Returns the number of each word, from 1. A new word gets the next one in the dict."""
    return [numbers_of_words.setdefault(word, len(numbers_of_words) + 1) for word in words]


@dataclasses.dataclass(frozen=True)
class Questions:
    """Questions, each on a context: what batches are made of."""

    tokens: Tokens
    contexts: Sequences
    """Tokens of contexts."""
    context: np.ndarray
    """Index of each question's context, int `(questions,)`."""
    questions: Sequences
    """Tokens of the questions."""
    spans: list[list[list[int]]]
    """First and last tokens of the answers of each question."""

    def __len__(self):
        return len(self.context)

    @property
    def sizes(self):
        """Context and query words of each question, int `(questions, 2)`."""
        return np.stack([self.contexts.lengths[self.context], self.questions.lengths], axis=1)

    def windows_of_answers(self, rows, size):
        """Returns for each question the first `Window` of at most `size` words that has one of its
        answers; without one, the first window.
        """
        lengths = self.contexts.lengths[self.context[rows]].tolist()
        windows = []
        for row, length in zip(rows, lengths, strict=True):
            windows.append(window_of_answer(self.spans[row], length, size))
        return windows

    def collate(self, rows, windows=None, max_question=None, multiple=1):
        """Makes a batch of questions.

        Args:
            rows: Indices of the questions.
            windows: The `Window` of each one's context that is read; `None`: contexts are whole.
            max_question: The first words of a question that are read; `None`: all.
            multiple: Sizes are rounded up to it. Training and scoring pass twice their
                `length_multiple`, so that with XLA alone it is above `XLA_MULTIPLE`. Then distinct
                tokens and answers are rounded up to more, since XLA compiles each new size.

        Returns:
            The dict that `models.bidaf.BiDAF` takes.
            First and last words of the answers, among those that are read, int32 `(B, A, 2)`;
            -1 for padding and for answers that are not wholly read.
        """
        contexts = self.contexts.take(self.context[rows])
        if windows is None:
            first = np.zeros(len(rows), int)
        else:
            _, first, end = np.array(windows).T
            contexts = Sequences(contexts.ids, contexts.starts + first, end - first)
        context = _first_words(contexts, np.arange(len(rows)), None, multiple)
        query = _first_words(self.questions, rows, max_question, multiple)
        is_xla = multiple > XLA_MULTIPLE
        if is_xla:
            token_multiple = 2048
            answer_multiple = 16
        else:
            token_multiple = 16 * multiple
            answer_multiple = 1

        # Each distinct token is looked up and encoded once; number 0 is padding.
        all_tokens = np.concatenate([[0], context.ravel(), query.ravel()])
        distinct, index_in_batch = np.unique(all_tokens, return_inverse=True)
        index_in_batch = index_in_batch[1:].astype(np.int32)
        num_tokens = round_up(len(distinct), token_multiple)
        distinct = np.pad(distinct, (0, num_tokens - len(distinct)))
        inputs = {
            "words": self.tokens.words[distinct],
            "characters": self.tokens.characters[distinct],
            "context": index_in_batch[: context.size].reshape(context.shape),
            "query": index_in_batch[context.size :].reshape(query.shape),
        }
        return inputs, self._pad_spans(rows, first, contexts.lengths, answer_multiple)

    def _pad_spans(self, rows, first_words, num_words, multiple):
        """Shifts the spans of questions `rows` to the words that are read, int32 `(B, A, 2)`.

        A span that is not wholly in them is -1.
        """
        num_spans = max([1, *(len(self.spans[row]) for row in rows)])
        shape = len(rows), round_up(num_spans, multiple), 2
        padded = np.full(shape, NO_SPAN, np.int32)
        for i, row in enumerate(rows):
            for a, span in enumerate(self.spans[row]):
                first, last = np.array(span) - first_words[i]
                if 0 <= first and last < num_words[i]:
                    padded[i, a] = first, last
        return padded

    def answers_longer_than(self, max_words):
        """Finds questions all of whose answers have more than `max_words` words, bool
        `(questions,)`.
        """
        is_longer = []
        for spans in self.spans:
            is_longer.append(all(last - first + 1 > max_words for first, last in spans))
        return np.array(is_longer, bool)

    def on_passages(self, rows, passages):
        """Returns question `rows[i]` on `passages[i]`, a `misleading.Passage`."""
        return Questions(
            tokens=self.tokens,
            contexts=Sequences.of([passage.numbers for passage in passages]),
            context=np.arange(len(passages)),
            questions=self.questions.take(rows),
            spans=[passage.spans for passage in passages],
        )


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

    @functools.cached_property
    def second_contexts(self):
        """Contexts that do not answer the questions, see `contexts_of_same_article`."""
        return contexts_of_same_article(self)

    @functools.cached_property
    def other_sentences(self):
        """Sentences of these contexts, see `second_contexts.sentences_to_add`."""
        return sentences_to_add(self)

    @functools.cached_property
    def misleading_sentences(self):
        """Draws sentences with the words of a question, see `misleading.MisleadingSentences`."""
        return MisleadingSentences(self)

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


def _first_words(sequences, numbers, limit, multiple):
    width = sequences.width(numbers, limit, multiple)
    return sequences.padded(numbers, width, limit, keep="first")


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
    """Raises a `ValueError` if a token, a context or a span is out of range, if two questions have
    one id, or if a question has no answer.
    """
    _check_range("tokens", split.questions.ids, 1, len(split.tokens.words))
    _check_range("contexts", split.context, 0, len(split.contexts))
    if len(set(split.ids)) < len(split.ids):
        raise ValueError("the ids of the questions of a split must differ")

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
