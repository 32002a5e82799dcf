"""Reading comprehension: questions on contexts, read from prepared files, and their batches as
NumPy arrays.

Letters: N distinct tokens   L characters   B questions   T context words   J query words   A spans
of an answer
"""

import dataclasses
import pathlib

import numpy as np

from colloquy.base.files import UserError
from colloquy.data import pickles, prepared
from colloquy.data.batching import XLA_MULTIPLE
from colloquy.data.sequences import Sequences, round_up
from colloquy.data.vocabulary import Vocabulary

READING, CHARACTERS = "reading.pkl", "characters.txt"
SPLITS = ("train", "dev")
WORD_CHARACTERS = 16  # of a word that are read, as in the paper
NO_SPAN = -1


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Ids of each distinct token and of its characters; row 0 is padding."""

    words: np.ndarray  # word ids, int32 `(tokens + 1,)`
    characters: np.ndarray  # character ids, int32 `(tokens + 1, L)`, padded with 0

    @classmethod
    def of(cls, texts, vocabulary, characters):
        """Looks tokens up: words in lower case, characters as they are.

        >>> tokens = Tokens.of(["Ab", "c"], Vocabulary.of(["ab"]), Vocabulary.of("abA"))
        >>> tokens.words.tolist(), tokens.characters[:, :3].tolist()
        ([0, 3, 2], [[0, 0, 0], [5, 4, 0], [2, 0, 0]])
        """
        words = [0, *vocabulary.encode(text.lower() for text in texts)]
        letters = Sequences.of([[], *(characters.encode(text[:WORD_CHARACTERS]) for text in texts)])
        return cls(
            np.array(words, np.int32), letters.padded(np.arange(len(words)), WORD_CHARACTERS)
        )


@dataclasses.dataclass(frozen=True)
class ReadingSplit:
    """The questions of a split."""

    tokens: Tokens
    contexts: Sequences  # tokens of every context of the dataset
    texts: list[str]  # their texts
    offsets: Sequences  # start and end of each of their tokens, in characters
    # article of each context, int `(contexts,)`; 0 in a dataset that does not say
    articles: np.ndarray
    ids: list[str]
    context: np.ndarray  # index of each question's context, int `(questions,)`
    questions: Sequences  # their tokens
    answers: list[list[str]]  # their reference answers
    spans: list[list[list[int]]]  # first and last tokens of these
    question_texts: list[str]  # the questions as they were asked

    def __len__(self):
        return len(self.ids)

    @property
    def sizes(self):
        """Context and query words of each question, int `(questions, 2)`."""
        return np.stack([self.contexts.lengths[self.context], self.questions.lengths], axis=1)

    def collate(self, rows, max_context=None, max_question=None, multiple=1):
        """Makes a batch of questions; sizes are rounded up to `multiple`, with XLA some to more.

        Returns the dict that `models.bidaf.BiDAF` takes, and int32 `(B, A, 2)`, first and last
        words of the answers within the words that are read, padded with -1: the first `max_context`
        or `max_question`; `None`: all.
        """

        def first_words(sequences, numbers, limit):
            return sequences.padded(
                numbers, sequences.width(numbers, limit, multiple), limit, keep="first"
            )

        context = first_words(self.contexts, self.context[rows], max_context)
        query = first_words(self.questions, rows, max_question)
        distinct, number = np.unique(
            np.concatenate([[0], context.ravel(), query.ravel()]), return_inverse=True
        )
        number = number[1:].astype(np.int32)
        tokens, answers = (2048, 16) if multiple > XLA_MULTIPLE else (16 * multiple, 1)
        distinct = np.pad(distinct, (0, round_up(len(distinct), tokens) - len(distinct)))
        read = max_context or context.shape[1]  # words; the width may be more, for it is rounded up
        spans = [[span for span in self.spans[row] if span[1] < read] for row in rows]
        padded = np.full(
            (len(rows), round_up(max([1, *map(len, spans)]), answers), 2), NO_SPAN, np.int32
        )
        for row, found in enumerate(spans):
            padded[row, : len(found)] = np.array(found).reshape(-1, 2)
        inputs = {
            "words": self.tokens.words[distinct],
            "characters": self.tokens.characters[distinct],
            "context": number[: context.size].reshape(context.shape),
            "query": number[context.size :].reshape(query.shape),
        }
        return inputs, padded

    def asked_of(self, rows, context):
        """Some of the questions, each asked of another context; both arguments int
        `(questions,)`.
        """
        names = "ids", "answers", "spans", "question_texts"
        lists = {name: [getattr(self, name)[row] for row in rows] for name in names}
        return dataclasses.replace(
            self, context=context, questions=self.questions.take(rows), **lists
        )

    def place(self, row, first, last):
        """Start and end, in characters, of a span of words of a question's context."""
        offsets = self.offsets.ids[self.offsets.starts[self.context[row]] :]
        return int(offsets[2 * first]), int(offsets[2 * last + 1])

    def answer(self, row, first, last):
        """The text of a span of words of a question's context."""
        start, end = self.place(row, first, last)
        return self.texts[self.context[row]][start:end]


@dataclasses.dataclass(frozen=True)
class ReadingDataset(prepared.Dataset):
    """A prepared dataset: `splits` of `ReadingSplit`."""

    vectors: np.ndarray  # word vectors, float32 `(vocabulary size + 1, D)`; row 0 is padding
    vocabulary: Vocabulary  # its words are lower case
    characters: Vocabulary
    # number of the vocabulary's last words whose vectors are made up and can be trained
    trained_words: int


def load_dataset(path):
    """Reads a prepared dataset; a missing or malformed file is a `UserError`."""
    path = pathlib.Path(path)
    metadata = prepared.read_metadata(path, "reading_comprehension")
    vocabulary, characters = (
        prepared.read_vocabulary(path / name) for name in (prepared.VOCABULARY, CHARACTERS)
    )
    vectors = prepared.read_embedding(path / prepared.VECTORS, vocabulary)
    data = pickles.load(path / READING)
    with prepared.checked(path / READING):
        splits = _splits(data, vocabulary, characters)
    trained = metadata.get("trained_words", 0)
    if type(trained) is not int or not 0 <= trained < len(vocabulary):
        wrong = f"expected trained_words below {len(vocabulary)}. Received: {trained!r:.60}"
        raise UserError(f"{path / prepared.METADATA}: {wrong}")
    return ReadingDataset(path, metadata["name"], splits, vectors, vocabulary, characters, trained)


def _splits(data, vocabulary, characters):
    texts, contexts, splits = prepared.texts, data["contexts"], {}
    shared = {
        "tokens": Tokens.of(texts(data["tokens"]), vocabulary, characters),
        "contexts": Sequences.of([context["tokens"] for context in contexts]),
        "texts": texts([context["text"] for context in contexts]),
        "offsets": Sequences.of([context["offsets"] for context in contexts]),
        "articles": Sequences.of([[context.get("article", 0) for context in contexts]]).ids,
    }
    for name in SPLITS:
        items = data["splits"].get(name, [])
        splits[name] = ReadingSplit(
            **shared,
            ids=texts([item["id"] for item in items]),
            context=Sequences.of([[item["context"] for item in items]]).ids.astype(np.int64),
            questions=Sequences.of([item["tokens"] for item in items]),
            answers=[texts(item["answers"]) for item in items],
            spans=[item["spans"] for item in items],
            question_texts=texts([item["question"] for item in items]),
        )
        _check(splits[name])
    return splits


def _check(split):
    tokens = np.concatenate([split.contexts.ids, split.questions.ids])
    for name, numbers, low, size in (
        ("tokens", tokens, 1, len(split.tokens.words)),
        ("contexts", split.context, 0, len(split.contexts)),
    ):
        if len(numbers) and not low <= numbers.min() <= numbers.max() < size:
            raise ValueError(f"{name} must be from {low} to {size - 1}")
    if (split.offsets.lengths != 2 * split.contexts.lengths).any():
        raise ValueError("offsets must be the start and the end of each token")
    for row, (places, text) in enumerate(zip(split.offsets.lists(), split.texts, strict=True)):
        if [0, *places, len(text)] != sorted([0, *places, len(text)]):
            raise ValueError(
                f"offsets of context {row} must rise and end within its {len(text)} characters"
            )
    for id, spans, length in zip(
        split.ids, split.spans, split.contexts.lengths[split.context], strict=True
    ):
        numbers = [type(place) is int for span in spans for place in span]
        if (
            not numbers
            or not all(numbers)
            or not all(0 <= first <= last < length for first, last in spans)
        ):
            raise ValueError(
                f"question {id:.60}: spans must be whole numbers within its {length} words"
            )
