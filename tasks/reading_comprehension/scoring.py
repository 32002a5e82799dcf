"""Answers of a model to the questions of a split, and their metrics."""

import re

import numpy as np

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.engine.scoring import Group
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.reading_comprehension import ADDED, question_metrics, squad_metrics
from colloquy.models.best_spans import best_spans
from colloquy.tasks.reading_comprehension.questions import multiples_of

BATCH_SIZE = 60
FIRST_WORDS = ("what", "who", "how", "when", "which", "in", "where", "why")
"""The most frequent first words of SQuAD's questions."""


def predict(model, split, progress=iter, length_multiple=4):
    """The best span of each question of a `ReadingSplit`. Contexts and questions are read whole.

    Returns first and last words, int `(questions, 2)`, and their scores, float32 `(questions,)`,
    see `models.best_spans.best_spans`. `length_multiple` is that of `questions.multiples_of`.
    """

    def make_inputs(rows):
        inputs, _ = split.collate(rows, multiples=multiples_of(length_multiple))
        return inputs

    def find_best(inputs):
        logits = model.predict_on_batch(inputs)
        config = model.config
        best = best_spans(logits, config.max_answer_words, length_penalty=config.length_penalty)
        # Arrays `(B, 1)`: only the best span of each question is asked for.
        return [np.asarray(array)[:, 0] for array in best]

    batches = batches_by_size(split.sizes, BATCH_SIZE)
    compile_for_all_sizes(model)
    spans = np.zeros((len(split), 2), np.int32)
    scores = np.zeros(len(split), np.float32)
    results = results_of(find_best, make_inputs, batches, progress)
    for rows, (first, last, score) in results:
        spans[rows, 0] = first
        spans[rows, 1] = last
        scores[rows] = score
    return spans, scores


def answer_texts(split, spans):
    """The texts of spans, `{question id: text}`."""
    return {id: split.answer(row, *spans[row]) for row, id in enumerate(split.ids)}


def count_questions(split):
    """Returns the counts of a split, for the record of an `engine.scoring.Measured`."""
    return {"questions": len(split), "contexts": len(set(split.context_of_question.tolist()))}


def score_split(model, split, **options):
    """The metrics of a model's answers to a `ReadingSplit`; options are those of `predict`."""
    spans, _ = predict(model, split, **options)
    return squad_metrics(answer_texts(split, spans), split.references)


def metrics_by_question(split, predictions):
    """Each metric as a mean over questions, `{metric: metrics.bootstrap.Additive}`.

    `ADDED` are metrics of users. `means_of` also computes them for each question alone, and leaves
    out those whose value for all questions is not the mean of these.
    """
    references_by_id = split.references
    metrics = {}
    for name, values in question_metrics(predictions, references_by_id).items():
        metrics[name] = Additive.mean(values)

    arguments_of_questions = []
    for id, references in references_by_id.items():
        prediction = {id: predictions[id]} if id in predictions else {}
        arguments_of_questions.append((prediction, {id: references}))
    arguments_of_all = (predictions, references_by_id)
    return {**metrics, **means_of(ADDED, arguments_of_all, arguments_of_questions)}


def by_first_word(split, predictions):
    """The metrics of questions by their first words, see `engine.task.Task.metrics_by_group`."""
    references_by_group = {word: {} for word in (*FIRST_WORDS, "other")}
    questions = zip(split.ids, split.question_texts, split.answers, strict=True)
    for id, question, references in questions:
        first_word = re.match(r"\W*(\w*)", question.lower())[1]
        group = references_by_group.get(first_word, references_by_group["other"])
        group[id] = references

    groups = []
    for name, references_by_id in references_by_group.items():
        if references_by_id:
            metrics = squad_metrics(predictions, references_by_id)
            groups.append(Group(name, len(references_by_id), metrics))
    return groups
