"""Training on questions that are asked twice: of a context with the answer and of one without.

Letters: B contexts, two of each question   Q questions   T context words   A spans of an answer
"""

import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.tasks.reading_comprehension.scoring import log_sum_of_spans
from colloquy.tasks.reading_comprehension.second_contexts import NONE


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


def shared_norm_batches(split, ends, training, rng):
    """The batches of an epoch, see `task.ReadingComprehensionTask.training_batches`.

    Each question gets a second context, and some a sentence of another context before or after
    their own. Those without a second context are left out.

    Args:
        ends: Last word of each question's answer, int `(questions,)`.

    Returns:
        Tuples of rows, the largest numbers of words that are read, and for the rows the second
        contexts, the sentences and whether these come first: the arguments of `ask_twice`.
    """
    second = _second_contexts(split, rng)
    sentences = np.full((len(split), 3), NONE)
    if training.added_sentences:
        sentences = split.other_sentences.copy()
        sentences[rng.random(len(split)) >= training.added_sentences] = NONE
    words = sentences[:, 2] - sentences[:, 1]
    # No sentence may push an answer out of what is read.
    in_front = (rng.random(len(split)) < 0.5) & (ends + words < training.max_context)

    own_lengths = split.contexts.lengths[split.context] + words
    sizes = np.maximum(own_lengths, split.contexts.lengths[second])[:, None]
    rows = np.flatnonzero((ends < training.max_context) & (second != NONE))
    limits = training.max_context, training.max_question
    batches = []
    for batch in batches_by_size(sizes[rows], training.batch_size, rng):
        row = rows[batch]
        batches.append((row, *limits, second[row], sentences[row], in_front[row]))
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


def ask_twice(split, rows, second, sentences, in_front):
    """Returns questions `rows`, each asked of its context and, in the next row, of a second one."""
    asked = split.with_second_contexts(rows, second)
    no_sentence = np.full_like(sentences, NONE)
    sentences_B3 = np.stack([sentences, no_sentence], axis=1).reshape(-1, 3)
    in_front_B = np.stack([in_front, np.zeros_like(in_front)], axis=1).ravel()
    return asked.with_sentences(sentences_B3, in_front_B)
