"""Training batches of questions that are asked of their own contexts."""

from typing import NamedTuple

import numpy as np

from colloquy.data.batching import batches_by_size


class QuestionBatch(NamedTuple):
    """A batch of questions, each asked of its own context."""

    rows: np.ndarray
    """Indices of the questions, int `(B,)`."""
    max_context: int
    """The most words of a context that are read: a longer one is cut to a window with an answer."""
    max_question: int
    """The most words of a question that are read, the first ones."""

    def collate(self, split, multiples):
        """Makes the arrays of a batch of a `ReadingSplit`, see `Questions.collate`."""
        windows = split.windows_of_answers(self.rows, self.max_context)
        return split.collate(self.rows, windows, self.max_question, multiples)


def question_batches(split, rows, training, rng):
    """The batches of an epoch of questions `rows`, of similar size: a list of `QuestionBatch`."""
    sizes = np.minimum(split.sizes[rows], [training.max_context, training.max_question])
    batches = []
    for batch in batches_by_size(sizes, training.batch_size, rng):
        batches.append(QuestionBatch(rows[batch], training.max_context, training.max_question))
    return batches
