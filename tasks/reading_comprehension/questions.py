"""Questions on contexts, and their batches as NumPy arrays.

Letters:
    N distinct tokens   L characters   B questions   T context words   J query words
    A spans of an answer
"""

import dataclasses

import numpy as np

from colloquy.data.batching import XLA_MULTIPLE
from colloquy.data.sequences import Sequences, round_up
from colloquy.tasks.reading_comprehension.windows import window_of_answer

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

        >>> from colloquy.data.vocabulary import Vocabulary
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


def _first_words(sequences, numbers, limit, multiple):
    width = sequences.width(numbers, limit, multiple)
    return sequences.padded(numbers, width, limit, keep="first")
