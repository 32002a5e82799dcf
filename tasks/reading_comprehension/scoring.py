"""Reading comprehension: the loss over spans, and the best span of each question.

Letters: B questions   T context words   A spans of an answer
"""

import numpy as np
from keras import ops

from data.batching import batches_by_size
from engine.parallel import results_of
from layers.masking import masked_logits
from models.bidaf import best_spans

MAX_LENGTH = 30  # words of the longest answer that is looked for; 0.03 % of SQuAD's are longer


def span_loss(spans, logits):
    """`-log sum_a p1[first_a] p2[last_a]`: the paper's loss, summed over all places where the answer may stand.

    Args:
        spans: First and last words, int `(B, A, 2)`, -1 for padding.
        logits: Of start and end, float `(B, 2, T)`.

    Returns:
        Float32 `(B,)`.

    >>> logits = np.log(np.array([[[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]]], "float32"))
    >>> float(ops.exp(-span_loss(np.array([[[0, 1], [1, 2], [-1, -1]]]), logits)[0]))
    0.28125
    """
    spans = ops.cast(spans, "int32")
    log_p = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    place = ops.maximum(ops.transpose(spans, (0, 2, 1)), 0)  # (B, 2, A)
    each = ops.sum(ops.take_along_axis(log_p, place, axis=2), axis=1)
    return -ops.logsumexp(masked_logits(each, spans[..., 0] >= 0), axis=-1)


def predict(model, split, batch_size=60, progress=iter, length_multiple=4):
    """The best span of each question; nothing is cut.

    Args:
        model: A `models.bidaf.BiDAF`.
        split: A `tasks.reading_comprehension.data.ReadingSplit`.
        batch_size: Questions at once.
        progress: Wraps the list of batches.
        length_multiple: Lengths are rounded up to twice this.

    Returns:
        First and last words, int `(questions, 2)`, and their scores, float32 `(questions,)`, see
        `models.bidaf.best_spans`.
    """
    spans, scores = np.zeros((len(split), 2), np.int32), np.zeros(len(split), np.float32)

    def inputs_of(rows):
        inputs, _ = split.collate(rows, multiple=2 * length_multiple)
        return inputs

    def spans_of(inputs):
        return best_spans(model.predict_on_batch(inputs), MAX_LENGTH, length_penalty=model.config.length_penalty)

    batches = batches_by_size(split.sizes, batch_size)
    for rows, (first, last, score) in results_of(spans_of, inputs_of, batches, model, progress):
        spans[rows, 0], spans[rows, 1] = np.asarray(first)[:, 0], np.asarray(last)[:, 0]
        scores[rows] = np.asarray(score)[:, 0]
    return spans, scores


def answers(split, spans):
    """The texts of spans, `{question id: text}`."""
    return {id: split.answer(row, *spans[row]) for row, id in enumerate(split.ids)}
