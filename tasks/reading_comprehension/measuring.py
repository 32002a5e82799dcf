"""The measurements of evaluate.py: scores of a model, of another system, of groups of questions.

`ReadingComprehensionTask` has these functions as its methods.
"""

import functools
import json
import sys

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.json_files import read_json
from colloquy.engine.scoring import Measured
from colloquy.metrics.reading_comprehension import squad_metrics
from colloquy.tasks.reading_comprehension.added_sentences import by_added_sentence
from colloquy.tasks.reading_comprehension.calibration import measure_confidence
from colloquy.tasks.reading_comprehension.scoring import (
    answer_texts,
    by_first_word,
    count_questions,
    metrics_by_question,
    predict,
)


def measure(scoring):
    """Scores a split for evaluate.py, see `engine.task.Task.measure`.

    The answers are one line, `{question id: text}`, as SQuAD's official script reads it. The record
    of this task has:

        baselines: metrics of answers that are the first words of the context, as many as the median
            answer has
        confidence: on dev, the scale that turns a score into a confidence, and how well it works on
            the other half of the articles, see `calibration.measure_confidence`
    """
    questions = scoring.examples
    predictions = _predict_texts(scoring)
    record = {
        "metrics": squad_metrics(predictions, questions.references),
        "counts": count_questions(questions),
    }
    if scoring.baselines:
        first_words = answer_texts(questions, _spans_of_first_words(questions))
        record["baselines"] = {"first words": squad_metrics(first_words, questions.references)}
    if scoring.split == "dev":
        record["confidence"], _ = measure_confidence(
            scoring.model, questions, scoring.length_multiple
        )
    return Measured(
        record,
        by_example=functools.partial(metrics_by_question, questions, predictions),
        answers=[json.dumps(predictions, ensure_ascii=False)],
    )


def _spans_of_first_words(questions):
    """The first words of each context, as many as the median answer has, int `(questions, 2)`."""
    lengths = []
    for spans in questions.spans:
        lengths += [last - first for first, last in spans]
    ends = np.minimum(int(np.median(lengths)), questions.sizes[:, 0] - 1)
    return np.stack([np.zeros_like(ends), ends], axis=1)


def measure_outside(scoring, source):
    """Scores another system's answers, see `engine.task.Task.measure_outside`.

    `source` is a file with `{question id: text}`.
    """
    questions = scoring.examples
    predictions = read_json(source, dict[str, str])
    missing = sum(id not in predictions for id in questions.ids)
    if missing:
        print(
            f"{source}: {missing:,} of {len(questions):,} questions have no answer and count 0",
            file=sys.stderr,
        )
    return Measured(
        record={"counts": count_questions(questions)},
        by_example=functools.partial(metrics_by_question, questions, predictions),
    )


def metrics_by_group(scoring, breakdowns):
    """Scores groups of questions by some of the task's `breakdowns`:

    question: by the first word of the question, as in the paper's figure of question types
    confidence: by the confidence of the answer, for a reliability diagram, see
        `calibration.measure_confidence`
    added: questions about passages as they are, and about passages with a misleading sentence, see
        `added_sentences.by_added_sentence`
    """
    model = scoring.model
    questions = scoring.examples
    groups = {}
    if "added" in breakdowns:
        groups["added"] = by_added_sentence(
            model, questions, scoring.progress, scoring.length_multiple
        )
    if "question" in breakdowns:
        groups["question"] = by_first_word(questions, _predict_texts(scoring))
    if "confidence" in breakdowns:
        _, reliability = measure_confidence(model, questions, scoring.length_multiple)
        if not reliability:
            raise UserError(
                f"{scoring.dataset.path}: --by=confidence expects four questions or more of "
                "two articles or more, and higher scores of correct answers than of wrong "
                f"ones, in the split {scoring.split}"
            )
        groups["confidence"] = reliability
    return groups


def _predict_texts(scoring):
    """The model's answers to the questions of a `Scoring`, `{question id: text}`."""
    spans, _ = predict(
        scoring.model,
        scoring.examples,
        progress=scoring.progress,
        length_multiple=scoring.length_multiple,
    )
    return answer_texts(scoring.examples, spans)
