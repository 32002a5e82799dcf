"""Training batches of questions, and what they cut or leave out.

Each question is asked of its own context, or, with the setting `shared_norm`, of two: its own
context, which has the answers, and a second one, which does not.
"""

from typing import NamedTuple

import numpy as np

from colloquy.data.batching import batches_by_size
from colloquy.engine.limits import Limit
from colloquy.tasks.reading_comprehension.passages import (
    draw_own_passage,
    draw_passage_without_answer,
)
from colloquy.tasks.reading_comprehension.second_contexts import NONE
from colloquy.tasks.reading_comprehension.training import Training
from colloquy.tasks.reading_comprehension.windows import overlap_of


def training_batches(split, training, rng):
    """The batches of an epoch, a list of `QuestionBatch`, or with `shared_norm` of `TwoContexts`.

    Neighbouring windows of a long context share some words. A window may cut an answer with more
    words than these, so questions with only such answers are left out. With `shared_norm`,
    questions without a second context are left out, too.
    """
    rows = np.flatnonzero(~split.answers_longer_than(overlap_of(training.max_context)))
    if training.shared_norm:
        return _shared_norm_batches(split, rows, training, rng)
    limits = (training.max_context, training.max_question)
    sizes = np.minimum(split.sizes[rows], limits)
    batches = batches_by_size(sizes, training.batch_size, rng)
    return [QuestionBatch(rows[batch], *limits) for batch in batches]


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


# === Two contexts of each question ===


class TwoContexts(NamedTuple):
    """A batch of questions, each asked of two contexts; `losses.shared_norm_loss` is its loss."""

    rows: np.ndarray
    """Indices of the questions, int `(Q,)`."""
    second: np.ndarray
    """The second context of each question, int `(Q,)`."""
    training: Training
    seed: int
    """Seed of the random changes of contexts, see `passages`."""

    def collate(self, split, multiples):
        """Makes the arrays of a batch of a `ReadingSplit`, see `Questions.collate`."""
        questions = ask_twice(split, self)
        rows = np.arange(len(questions))
        batch = QuestionBatch(rows, self.training.max_context, self.training.max_question)
        return batch.collate(questions, multiples)


def ask_twice(split, batch):
    """Returns the `Questions` of `TwoContexts`: row 2i is a question on its own context, row 2i + 1
    the same question on its second context.
    """
    rng = np.random.default_rng(batch.seed)
    passages = []
    for row, second in zip(batch.rows.tolist(), batch.second.tolist(), strict=True):
        passages.append(draw_own_passage(split, row, batch.training, rng))
        passages.append(draw_passage_without_answer(split, row, second, batch.training, rng))
    return split.on_passages(np.repeat(batch.rows, 2), passages)


def _shared_norm_batches(split, rows, training, rng):
    """The batches of questions `rows` that have a second context."""
    second = _draw_second_contexts(split, rng)
    rows = rows[second[rows] != NONE]
    lengths = split.contexts.lengths
    sizes = np.maximum(lengths[split.context_of_question[rows]], lengths[second[rows]])
    batches = []
    for batch in batches_by_size(sizes[:, None], training.batch_size, rng):
        seed = int(rng.integers(2**32))
        batches.append(TwoContexts(rows[batch], second[rows[batch]], training, seed))
    return batches


def _draw_second_contexts(split, rng):
    """Draws a second context for each question, int `(questions,)`; `NONE` where there is none.

    Both contexts of a question are padded to one length. So two second contexts are drawn, and the
    one is taken whose length is nearer to that of the question's own context.
    """
    # A row of `second_contexts` is the contexts of a question, then `NONE`: [7, 4, -1, -1]. The
    # choices are among the first two of this row. In a row of `NONE` alone, they are the first.
    num_choices = (split.second_contexts != NONE).sum(axis=1)
    choices = rng.integers(np.maximum(num_choices, 1), size=(2, len(split)))
    first, other = split.second_contexts[np.arange(len(split)), choices]

    lengths = split.contexts.lengths
    own_length = lengths[split.context_of_question]
    is_other_nearer = abs(lengths[other] - own_length) < abs(lengths[first] - own_length)
    return np.where(is_other_nearer, other, first)


# === What is cut or left out ===


def limits_of(split, config, training):
    """Lists each `Limit`: cut contexts and questions, left out questions, and long answers.

    Args:
        split: A `ReadingSplit`.
        config: A `BiDAFConfig`.
        training: The task's `Training`.
    """
    context_words, question_words = split.sizes.T
    shared_by_windows = overlap_of(training.max_context)
    limits = [
        Limit(
            unit="questions",
            is_exceeded=context_words > training.max_context,
            effect=f"have a context of over {training.max_context} words, of which a window is "
            "read",
            remedy="--set max_context=N reads more",
        ),
        Limit(
            unit="questions",
            is_exceeded=question_words > training.max_question,
            effect=f"have over {training.max_question} words, of which the first are read",
            remedy="--set max_question=N reads more",
        ),
        Limit(
            unit="questions",
            is_exceeded=split.answers_longer_than(shared_by_windows),
            effect=f"are left out: their answers have over {shared_by_windows} words, "
            f"which a window of {training.max_context} words may cut",
            remedy="--set max_context=N reads more",
        ),
        Limit(
            unit="questions",
            is_exceeded=split.answers_longer_than(config.max_answer_words),
            effect=f"have an answer of over {config.max_answer_words} words, which the model does "
            "not give",
            remedy="--set max_answer_words=N gives longer ones",
        ),
    ]
    if training.shared_norm:
        limits.append(
            Limit(
                unit="questions",
                is_exceeded=split.second_contexts[:, 0] == NONE,
                effect="are left out, since no other context of their article lacks their answers",
                remedy="--set shared_norm=false keeps them",
            )
        )
    return limits
