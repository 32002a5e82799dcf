"""Training on questions that are asked twice: of a context with the answer and of one without.

Letters: B contexts, two of each question   Q questions   T context words   A spans of an answer
"""

from typing import NamedTuple

import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.tasks.reading_comprehension.misleading import (
    Passage,
    own_passage,
    with_sentence,
    without_answer,
)
from colloquy.tasks.reading_comprehension.scoring import log_sum_of_spans
from colloquy.tasks.reading_comprehension.second_contexts import NONE
from colloquy.tasks.reading_comprehension.training import Training


def shared_norm_loss(spans, logits):
    """The loss of questions that are asked of two contexts, the second without the answer.

    Rows 2 i and 2 i + 1 of a batch are the contexts of one question. A span's probability is its
    part of the sum over all spans of these contexts and the option that there is no answer, whose
    logit is 0 (the shared normalization of Clark and Gardner 2018, section 3.2, with a no-answer
    option). The second context is also asked alone: it has no answer.

        row 2 i      log(1 + Z1 + Z2) - log sum_a exp(start1[first_a] + end1[last_a])
        row 2 i + 1  log(1 + Z2),   Z = sum_t exp(start[t]) * sum_t exp(end[t])

    Args:
        spans: First and last words, int `(B, A, 2)`; -1 for padding, and for second contexts.
        logits: Those of start and end, float `(B, 2, T)`.

    Returns:
        Float32 `(B,)`.

    >>> logits = np.log(np.array([[[4.0], [1.0]], [[1.0], [3.0]]], "float32"))
    >>> loss = shared_norm_loss(np.array([[[0, 0]], [[-1, -1]]]), logits)
    >>> (1 / np.exp(loss)).round(3).tolist()
    [0.5, 0.25]
    """
    logits_B2T = ops.cast(logits, "float32")
    log_z_B = ops.sum(ops.logsumexp(logits_B2T, axis=-1), axis=-1)
    log_z_Q2 = ops.reshape(log_z_B, (-1, 2))
    no_answer_Q1 = ops.zeros_like(log_z_Q2[:, :1])
    log_sum_Q = ops.logsumexp(ops.concatenate([no_answer_Q1, log_z_Q2], axis=1), axis=1)
    answered_Q = log_sum_Q - log_sum_of_spans(spans, logits_B2T)[::2]
    unanswered_Q = ops.logaddexp(no_answer_Q1[:, 0], log_z_Q2[:, 1])
    return ops.reshape(ops.stack([answered_Q, unanswered_Q], axis=1), (-1,))


class TwoContexts(NamedTuple):
    """A batch of questions, each asked of two contexts."""

    rows: np.ndarray
    """Indices of the questions, int `(Q,)`."""
    second: np.ndarray
    """The second contexts, int `(Q,)`."""
    training: Training
    seed: int
    """Of what is drawn when the batch is made."""


def shared_norm_batches(split, rows, training, rng):
    """The batches of an epoch of questions `rows`, a list of `TwoContexts`.

    Questions without a second context are left out.
    """
    second = _second_contexts(split, rng)
    own_lengths = split.contexts.lengths[split.context]
    sizes = np.maximum(own_lengths, split.contexts.lengths[second])[:, None]
    rows = rows[second[rows] != NONE]
    batches = []
    for batch in batches_by_size(sizes[rows], training.batch_size, rng):
        row = rows[batch]
        seed = int(rng.integers(2**32))
        batches.append(TwoContexts(row, second[row], training, seed))
    return batches


def _second_contexts(split, rng):
    """A second context for each question, int `(questions,)`; `NONE` where there is none.

    Of two that are drawn from `ReadingSplit.second_contexts` it is the one whose length is nearer
    to that of the question's own: both are padded to the longer one.
    """
    contexts = split.second_contexts
    count = (contexts != NONE).sum(axis=1)
    drawn = rng.integers(np.maximum(count, 1), size=(2, len(split)))
    drawn_contexts = np.take_along_axis(contexts, drawn.T, axis=1)
    own_lengths = split.contexts.lengths[split.context]
    difference = np.abs(split.contexts.lengths[drawn_contexts] - own_lengths[:, None])
    nearer = difference.argmin(axis=1)
    return drawn_contexts[np.arange(len(split)), nearer]


def ask_twice(split, batch):
    """Returns the `Questions` of `TwoContexts`, each on its context and, in the next row, on its
    second one.
    """
    rng = np.random.default_rng(batch.seed)
    passages = []
    for row, second in zip(batch.rows.tolist(), batch.second.tolist(), strict=True):
        passages.append(_own_passage(split, row, batch.training, rng))
        passages.append(_passage_without_answer(split, row, second, batch.training, rng))
    return split.on_passages(np.repeat(batch.rows, 2), passages)


def _own_passage(split, row, training, rng):
    """The passage of a question, some with a sentence that does not answer it."""
    passage = own_passage(split, row)
    if rng.random() >= training.added_sentences:
        return passage
    if rng.random() < training.question_words:
        sentence = split.misleading_sentences.draw(row, rng)
    else:
        sentence = split.other_sentences[row]
    return with_sentence(split, row, passage, sentence, rng)


def _passage_without_answer(split, row, second, training, rng):
    if rng.random() < training.removed_answers:
        sentence = split.misleading_sentences.draw(row, rng)
        passage = without_answer(split, row, sentence)
        if passage:
            return passage
    [numbers] = split.contexts.lists([second])
    return Passage(numbers, [])
