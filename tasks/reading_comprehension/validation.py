"""Validation: scores during a training."""

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.batching import evenly_spaced
from colloquy.metrics.reading_comprehension import question_metrics, squad_metrics
from colloquy.tasks.reading_comprehension.added_sentences import add_sentences
from colloquy.tasks.reading_comprehension.scoring import answer_texts, predict, score_split
from colloquy.tasks.reading_comprehension.second_contexts import NONE

MAX_VALIDATED = 1000
"""Most questions of dev that are asked in a validation."""


def validate(model, split, length_multiple=4):
    """Returns metrics and the score, see `engine.task.Task.validate`.

    The score is F1; with `no_answer` it is the mean of F1, `F1_and_none` and `F1_misled`.
    """
    if not model.config.no_answer:
        metrics = score_split(model, split, length_multiple=length_multiple)
        return metrics, metrics["F1"]
    metrics = _metrics_with_no_answer(model, split, length_multiple)
    return metrics, (metrics["F1"] + metrics["F1_and_none"] + metrics["F1_misled"]) / 3


def _metrics_with_no_answer(model, split, length_multiple):
    """The metrics of a validation of a model with `no_answer`, on some questions of dev.

    At most `MAX_VALIDATED` evenly spaced questions are taken; those without a second context are
    left out.

    Returns:
        A dict of metrics:

            EM, F1, and the user's own metrics: of the questions on their own contexts
            F1_and_none: F1 where half of the questions have no answer, see `_f1_and_none`
            F1_misled: F1 on the own contexts with a misleading sentence at their end, see
                `added_sentences.add_sentences`
    """
    rows = np.array(evenly_spaced(len(split), MAX_VALIDATED))
    has_second_context = split.second_contexts[rows, 0] != NONE
    rows = rows[has_second_context]
    if not len(rows):
        raise UserError(
            "no_answer: expected in dev a question whose article has another context without its "
            "answers. Received: none"
        )
    own = split.asked_of(rows, split.context_of_question[rows])
    second = split.asked_of(rows, split.second_contexts[rows, 0])
    _, misled = add_sentences(split, rows)

    own_spans, own_scores = predict(model, own, length_multiple=length_multiple)
    _, second_scores = predict(model, second, length_multiple=length_multiple)
    predictions = answer_texts(own, own_spans)
    metrics = squad_metrics(predictions, own.references)
    metrics["F1_and_none"] = _f1_and_none(own, predictions, own_scores, second_scores)
    metrics["F1_misled"] = score_split(model, misled, length_multiple=length_multiple)["F1"]
    return metrics


def _f1_and_none(own, predictions, own_scores, second_scores):
    """F1 of questions on their own and on second contexts, as in SQuAD 2.0 (Rajpurkar et al. 2018).

    The logit of no answer is 0, so the model finds no answer where the score of its best span is
    below 0. On a second context, that counts 1, and any answer 0. On the own context, it counts 0,
    and an answer its F1.
    """
    found = {}
    for id, score in zip(own.ids, own_scores, strict=True):
        if score >= 0:
            found[id] = predictions[id]
    f1_of_own = np.mean(question_metrics(found, own.references)["F1"])
    f1_of_second = np.mean(second_scores < 0)
    return float((f1_of_own + f1_of_second) / 2)
