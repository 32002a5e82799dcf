"""Reading comprehension: the loss over spans, the best span of each question, and the metrics of
answers.

Letters: B questions   T context words   A spans of an answer
"""

import re

import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import results_of
from colloquy.layers.masking import masked_logits
from colloquy.metrics.reading_comprehension import squad_metrics
from colloquy.models.bidaf import best_spans

# of questions, SQuAD's most frequent
FIRST_WORDS = ("what", "who", "how", "when", "which", "in", "where", "why")
MAX_LENGTH = 30  # words of the longest answer that is looked for; 0.03 % of SQuAD's are longer


def span_loss(spans, logits):
    """`-log sum_a p1[first_a] p2[last_a]`, float32 `(B,)`: the paper's loss, summed over all places
    of the answer.

    `spans` are first and last words, int `(B, A, 2)`, -1 for padding; `logits` of start and end are
    float `(B, 2, T)`.

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
    """The best span of each question of a `ReadingSplit`; nothing is cut.

    Returns first and last words, int `(questions, 2)`, and their scores, float32 `(questions,)`,
    see `models.bidaf.best_spans`. Lengths are rounded up to twice `length_multiple`.
    """
    spans, scores = np.zeros((len(split), 2), np.int32), np.zeros(len(split), np.float32)

    def inputs_of(rows):
        inputs, _ = split.collate(rows, multiple=2 * length_multiple)
        return inputs

    def best_of(inputs):
        found = best_spans(
            model.predict_on_batch(inputs), MAX_LENGTH, length_penalty=model.config.length_penalty
        )
        return [np.asarray(each)[:, 0] for each in found]

    batches = batches_by_size(split.sizes, batch_size)
    for rows, found in results_of(best_of, inputs_of, batches, model, progress):
        spans[rows, 0], spans[rows, 1], scores[rows] = found
    return spans, scores


def answers(split, spans):
    """The texts of spans, `{question id: text}`."""
    return {id: split.answer(row, *spans[row]) for row, id in enumerate(split.ids)}


def record_of(split, predictions):
    return {
        "metrics": squad_metrics(predictions, dict(zip(split.ids, split.answers, strict=True))),
        "counts": {"questions": len(split), "contexts": len(set(split.context.tolist()))},
    }


def by_first_word(split, predictions):
    """The metrics of questions by their first words, see `engine.task.Task.metrics_by_group`."""
    groups = {}
    for id, text, right in zip(split.ids, split.question_texts, split.answers, strict=True):
        word = re.match(r"\W*(\w*)", text.lower())[1]
        groups.setdefault(word if word in FIRST_WORDS else "other", {})[id] = right
    return [
        {
            "group": group,
            "examples": len(groups[group]),
            "metrics": squad_metrics(predictions, groups[group]),
        }
        for group in (*FIRST_WORDS, "other")
        if group in groups
    ]
