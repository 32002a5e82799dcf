"""The loss over spans, the best span of each question, and the metrics of answers.

Letters: B questions   T context words   A spans of an answer
"""

import re

import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import results_of
from colloquy.layers.masking import masked_logits
from colloquy.metrics.bootstrap import Additive
from colloquy.metrics.reading_comprehension import question_metrics, squad_metrics
from colloquy.models.bidaf import best_spans

FIRST_WORDS = ("what", "who", "how", "when", "which", "in", "where", "why")
"""The most frequent first words of SQuAD's questions."""
MAX_LENGTH = 30
"""Words of the longest answer that is looked for; 0.03 % of SQuAD's are longer."""


def span_loss(spans, logits):
    """`-log sum_a p1[first_a] p2[last_a]`, float32 `(B,)`.

    It is the paper's loss, with the probabilities summed over all spans of the answer. `spans` are
    first and last words, int `(B, A, 2)`, -1 for padding; `logits` of start and end are float `(B,
    2, T)`.

    >>> logits = np.log(np.array([[[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]]], "float32"))
    >>> float(ops.exp(-span_loss(np.array([[[0, 1], [1, 2], [-1, -1]]]), logits)[0]))
    0.28125
    """
    spans_BA2 = ops.cast(spans, "int32")
    log_p_B2T = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    index_B2A = ops.maximum(ops.transpose(spans_BA2, (0, 2, 1)), 0)
    log_p_BA = ops.sum(ops.take_along_axis(log_p_B2T, index_B2A, axis=2), axis=1)
    is_real_BA = spans_BA2[..., 0] >= 0
    return -ops.logsumexp(masked_logits(log_p_BA, is_real_BA), axis=-1)


def predict(model, split, batch_size=60, progress=iter, length_multiple=4):
    """The best span of each question of a `ReadingSplit`; nothing is cut.

    Returns first and last words, int `(questions, 2)`, and their scores, float32 `(questions,)`,
    see `models.bidaf.best_spans`. Lengths are rounded up to twice `length_multiple`.
    """
    spans = np.zeros((len(split), 2), np.int32)
    scores = np.zeros(len(split), np.float32)

    def inputs_of(rows):
        inputs, _ = split.collate(rows, multiple=2 * length_multiple)
        return inputs

    def best_of(inputs):
        logits = model.predict_on_batch(inputs)
        first, last, score = best_spans(
            logits, MAX_LENGTH, length_penalty=model.config.length_penalty
        )
        return np.asarray(first)[:, 0], np.asarray(last)[:, 0], np.asarray(score)[:, 0]

    batches = batches_by_size(split.sizes, batch_size)
    for rows, (first, last, score) in results_of(best_of, inputs_of, batches, model, progress):
        spans[rows, 0] = first
        spans[rows, 1] = last
        scores[rows] = score
    return spans, scores


def answers(split, spans):
    """The texts of spans, `{question id: text}`."""
    return {id: split.answer(row, *spans[row]) for row, id in enumerate(split.ids)}


def record_of(split, predictions):
    """The record of a split's predictions, `{question id: text}`."""
    answers_by_id = dict(zip(split.ids, split.answers, strict=True))
    return {
        "metrics": squad_metrics(predictions, answers_by_id),
        "counts": {"questions": len(split), "contexts": len(set(split.context.tolist()))},
    }


def metrics_by_question(split, predictions):
    """`{metric: Additive}` over the questions of a split."""
    answers_by_id = dict(zip(split.ids, split.answers, strict=True))
    by_question = question_metrics(predictions, answers_by_id)
    return {name: Additive.mean(values) for name, values in by_question.items()}


def by_first_word(split, predictions):
    """The metrics of questions by their first words, see `engine.task.Task.metrics_by_group`."""
    answers_by_group = {word: {} for word in (*FIRST_WORDS, "other")}
    for id, question, references in zip(
        split.ids, split.question_texts, split.answers, strict=True
    ):
        first_word = re.match(r"\W*(\w*)", question.lower())[1]
        group = first_word if first_word in FIRST_WORDS else "other"
        answers_by_group[group][id] = references

    groups = []
    for name, references in answers_by_group.items():
        if references:
            metrics = squad_metrics(predictions, references)
            groups.append({"group": name, "examples": len(references), "metrics": metrics})
    return groups
