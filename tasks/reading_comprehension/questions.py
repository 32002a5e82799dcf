"""Questions on contexts, and their batches as NumPy arrays.

Letters:
    N distinct tokens   L characters   B questions   T context words   J query words
    A spans of an answer
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from colloquy.data.batching import XLA_MULTIPLE
from colloquy.data.sequences import Sequences, round_up
from colloquy.tasks.reading_comprehension.tokens import Tokens
from colloquy.tasks.reading_comprehension.windows import window_of_answer

NO_SPAN = -1
"""Padding of the spans of answers."""


class Multiples(NamedTuple):
    """Sizes of a batch are rounded up to multiples of these numbers, so that few sizes occur."""

    words: int = 1
    """For the words of contexts and of questions."""
    tokens: int = 16
    """For the distinct tokens of the batch."""
    answers: int = 1
    """For the spans of a question."""


DEFAULT_MULTIPLES = Multiples()


def multiples_of(length_multiple):
    """The `Multiples` of training and scoring.

    `length_multiple` is that of `engine.task.Task.collate`: with XLA it is `XLA_MULTIPLE`,
    otherwise it is smaller. XLA compiles each new size, so with XLA fewer sizes may occur.
    """
    words = 2 * length_multiple
    if length_multiple >= XLA_MULTIPLE:
        return Multiples(words, tokens=2048, answers=16)
    return Multiples(words, tokens=16 * words)


@dataclasses.dataclass(frozen=True)
class Questions:
    """Questions, each on a context: what batches are made of."""

    tokens: Tokens
    contexts: Sequences
    """The words of each context, numbers of `tokens`."""
    context_of_question: np.ndarray
    """Index of each question's context, int `(questions,)`."""
    questions: Sequences
    """The words of each question, numbers of `tokens`."""
    spans: list[list[list[int]]]
    """`[first word, last word]` of each answer of each question."""

    def __len__(self):
        return len(self.context_of_question)

    @property
    def sizes(self):
        """Context and query words of each question, int `(questions, 2)`."""
        context_lengths = self.contexts.lengths[self.context_of_question]
        return np.stack([context_lengths, self.questions.lengths], axis=1)

    def context_tokens(self, row):
        """The words of the context of question `row`, a list of numbers of `tokens`."""
        [tokens] = self.contexts.lists([self.context_of_question[row]])
        return tokens

    def question_tokens(self, row):
        """The words of question `row`, a list of numbers of `tokens`."""
        [tokens] = self.questions.lists([row])
        return tokens

    def windows_of_answers(self, rows, size):
        """Returns for each question the first `Window` of at most `size` words that has one of its
        answers; without one, the first window.
        """
        lengths = self.contexts.lengths[self.context_of_question[rows]].tolist()
        windows = []
        for row, length in zip(rows, lengths, strict=True):
            windows.append(window_of_answer(self.spans[row], length, size))
        return windows

    def collate(self, rows, windows=None, max_question=None, multiples=DEFAULT_MULTIPLES):
        """Makes a batch of questions.

        Args:
            rows: Indices of the questions.
            windows: The `Window` of each one's context that is read; `None`: contexts are whole.
            max_question: The first words of a question that are read; `None`: all.
            multiples: The `Multiples` of sizes.

        Returns:
            The dict that `models.bidaf.BiDAF` takes.
            First and last words of the answers, counted from the first word that is read, int32
            `(B, A, 2)`; -1 for padding and for answers that are not wholly read.
        """
        contexts = self.contexts.take(self.context_of_question[rows])
        first_words = np.zeros(len(rows), int)
        if windows is not None:
            # The words of a window are a part of its context's ids.
            _, first_words, end_words = np.array(windows).T
            starts = contexts.starts + first_words
            contexts = Sequences(contexts.ids, starts, end_words - first_words)
        context_BT = _pad(contexts, np.arange(len(rows)), None, multiples.words)
        query_BJ = _pad(self.questions, rows, max_question, multiples.words)

        # The model encodes each distinct token once. In place of a token it gets the row of the
        # token among the distinct ones:
        #     tokens [7, 9, 7, 0]  ->  distinct tokens [0, 7, 9], rows [1, 2, 1, 0]
        is_used = np.zeros(len(self.tokens.texts), bool)
        is_used[0] = True  # padding
        is_used[context_BT] = True
        is_used[query_BJ] = True
        distinct_N = np.flatnonzero(is_used)
        row_of_token = np.zeros(len(is_used), np.int32)
        row_of_token[distinct_N] = np.arange(len(distinct_N))
        num_rows = round_up(len(distinct_N), multiples.tokens)
        padded_N = np.pad(distinct_N, (0, num_rows - len(distinct_N)))
        inputs = {
            "words": self.tokens.word_ids[padded_N],
            "characters": self.tokens.character_ids[padded_N],
            "context": row_of_token[context_BT],
            "query": row_of_token[query_BJ],
        }
        spans = self._pad_spans(rows, first_words, contexts.lengths, multiples.answers)
        return inputs, spans

    def _pad_spans(self, rows, first_words, num_words, multiple):
        """The spans of questions `rows` among the words that are read, int32 `(B, A, 2)`.

        Of question `i`, `num_words[i]` words of the context are read, from `first_words[i]` on. A
        span that is not wholly in them is -1.
        """
        most_spans = max([1, *(len(self.spans[row]) for row in rows)])
        shape = (len(rows), round_up(most_spans, multiple), 2)
        padded_BA2 = np.full(shape, NO_SPAN, np.int32)
        for i, row in enumerate(rows):
            for a, (first, last) in enumerate(self.spans[row]):
                new_first = first - first_words[i]
                new_last = last - first_words[i]
                if 0 <= new_first and new_last < num_words[i]:
                    padded_BA2[i, a] = new_first, new_last
        return padded_BA2

    def answers_longer_than(self, max_words):
        """Finds questions all of whose answers have more than `max_words` words, bool
        `(questions,)`.
        """
        is_longer = []
        for spans in self.spans:
            is_longer.append(all(last - first + 1 > max_words for first, last in spans))
        return np.array(is_longer, bool)

    def on_passages(self, rows, passages):
        """Returns question `rows[i]` on `passages[i]`, a `passages.Passage`."""
        return Questions(
            tokens=self.tokens,
            contexts=Sequences.of([passage.tokens for passage in passages]),
            context_of_question=np.arange(len(passages)),
            questions=self.questions.take(rows),
            spans=[passage.spans for passage in passages],
        )


def _pad(sequences, index, limit, multiple):
    """Pads the first words of the lists at `index`, at most `limit`, to one width."""
    width = sequences.width(index, limit, multiple)
    return sequences.padded(index, width, limit, keep="first")
