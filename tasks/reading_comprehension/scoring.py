"""Training loss and scores of reading comprehension: spans, answers and their metrics.

Letters: B questions   T context words   A answer spans of a question
"""

import re

import numpy as np
from keras import ops

from colloquy.base.files import UserError
from colloquy.data.batching import batches_by_size, evenly_spaced
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.engine.scoring import Group
from colloquy.layers.masking import masked_logits
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.reading_comprehension import ADDED, question_metrics, squad_metrics
from colloquy.models.best_spans import best_spans
from colloquy.tasks.reading_comprehension.misleading import add_sentences
from colloquy.tasks.reading_comprehension.second_contexts import NONE

FIRST_WORDS = ("what", "who", "how", "when", "which", "in", "where", "why")
"""The most frequent first words of SQuAD's questions."""
MAX_VALIDATED = 1000
"""Most questions of dev that are asked in a validation of a model with `no_answer`."""
MAX_COMPARED = 2000
"""Most questions that `by_added_sentence` asks with and without a misleading sentence."""


def span_loss(spans, logits):
    """The loss of BiDAF over all answers of a question, float32 `(B,)`.

        -log sum_a p1[first_a] p2[last_a]

    It is the paper's loss, with the probabilities summed over all spans of the answer. `spans` are
    first and last words, int `(B, A, 2)`, -1 for padding; `logits` of start and end are float `(B,
    2, T)`.

    >>> logits = np.log(np.array([[[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]]], "float32"))
    >>> float(ops.exp(-span_loss(np.array([[[0, 1], [1, 2], [-1, -1]]]), logits)[0]))
    0.28125
    """
    log_p_B2T = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    return -log_sum_of_spans(spans, log_p_B2T)


def log_sum_of_spans(spans, scores_B2T):
    """`log sum_a exp(start[first_a] + end[last_a])`, float32 `(B,)`; about -1e30 without a span."""
    spans_BA2 = ops.cast(spans, "int32")
    # Padding, -1, is no index: `masked_logits` removes its score below.
    index_B2A = ops.maximum(ops.transpose(spans_BA2, (0, 2, 1)), 0)
    score_BA = ops.sum(ops.take_along_axis(scores_B2T, index_B2A, axis=2), axis=1)
    is_real_BA = spans_BA2[..., 0] >= 0
    return ops.logsumexp(masked_logits(score_BA, is_real_BA), axis=-1)


def predict(model, split, batch_size=60, progress=iter, length_multiple=4):
    """The best span of each question of a `ReadingSplit`. Contexts and questions are read whole.

    Returns first and last words, int `(questions, 2)`, and their scores, float32 `(questions,)`,
    see `models.best_spans.best_spans`. Lengths are rounded up to multiples of `2 *
    length_multiple`, see `Questions.collate`.
    """
    spans = np.zeros((len(split), 2), np.int32)
    scores = np.zeros(len(split), np.float32)

    def make_inputs(rows):
        inputs, _ = split.collate(rows, multiple=2 * length_multiple)
        return inputs

    def find_best(inputs):
        logits = model.predict_on_batch(inputs)
        first, last, score = best_spans(
            logits, model.config.max_answer_words, length_penalty=model.config.length_penalty
        )
        return np.asarray(first)[:, 0], np.asarray(last)[:, 0], np.asarray(score)[:, 0]

    batches = batches_by_size(split.sizes, batch_size)
    compile_for_all_sizes(model)
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
    return {"questions": len(split), "contexts": len(set(split.context.tolist()))}


def score_split(model, split, **options):
    """The metrics of a model's answers to a `ReadingSplit`; options are those of `predict`."""
    spans, _ = predict(model, split, **options)
    return squad_metrics(answer_texts(split, spans), split.references)


def metrics_by_question(split, predictions):
    """Each metric as a mean over questions, `{metric: metrics.bootstrap.Additive}`.

    A user's own metric, in `ADDED`, is left out if it is no such mean, see `means_of`.
    """
    references_by_id = split.references
    by_question = question_metrics(predictions, references_by_id)
    arguments_of_questions = []
    for id, references in references_by_id.items():
        answer = {id: predictions[id]} if id in predictions else {}
        arguments_of_questions.append((answer, {id: references}))
    return {
        **{name: Additive.mean(values) for name, values in by_question.items()},
        **means_of(ADDED, (predictions, references_by_id), arguments_of_questions),
    }


def metrics_with_no_answer(model, split, length_multiple=4):
    """The metrics of a validation of a model with `no_answer`, on some questions of dev.

    At most `MAX_VALIDATED` evenly spaced questions are taken; those without a second context are
    left out.

    Returns:
        A dict of metrics:

            EM, F1, and the user's own metrics: of the questions on their own contexts
            F1_and_none: the questions are also asked of another context of their article, so half
                of them have no answer, as in SQuAD 2.0 (Rajpurkar et al. 2018). A score below 0,
                the logit of no answer, means no answer: that counts 1 on the other context and 0
                on the own one
            F1_misled: F1 on the own contexts with a misleading sentence at their end, see
                `misleading.add_sentences`
    """
    rows = np.array(evenly_spaced(len(split), MAX_VALIDATED))
    second = split.second_contexts[rows, 0]
    rows = rows[second != NONE]
    if not len(rows):
        raise UserError(
            "no_answer: expected in dev a question whose article has another context without its "
            "answers. Received: none"
        )

    own = split.asked_of(rows, split.context[rows])
    spans, scores = predict(model, own, length_multiple=length_multiple)
    predictions = answer_texts(own, spans)
    metrics = squad_metrics(predictions, own.references)

    other = split.asked_of(rows, second[second != NONE])
    _, other_scores = predict(model, other, length_multiple=length_multiple)
    kept = {}
    for id, score in zip(own.ids, scores, strict=True):
        if score >= 0:
            kept[id] = predictions[id]
    f1_of_kept = np.mean(question_metrics(kept, own.references)["F1"])
    metrics["F1_and_none"] = float((f1_of_kept + np.mean(other_scores < 0)) / 2)

    _, misled = add_sentences(split, rows)
    metrics["F1_misled"] = score_split(model, misled, length_multiple=length_multiple)["F1"]
    return metrics


def by_first_word(split, predictions):
    """The metrics of questions by their first words, see `engine.task.Task.metrics_by_group`."""
    references_by_group = {word: {} for word in (*FIRST_WORDS, "other")}
    for id, question, references in zip(
        split.ids, split.question_texts, split.answers, strict=True
    ):
        first_word = re.match(r"\W*(\w*)", question.lower())[1]
        group = references_by_group.get(first_word, references_by_group["other"])
        group[id] = references

    groups = []
    for name, references_by_id in references_by_group.items():
        if references_by_id:
            metrics = squad_metrics(predictions, references_by_id)
            groups.append(Group(name, len(references_by_id), metrics))
    return groups


def by_added_sentence(model, split, progress=iter, length_multiple=4):
    """The metrics of questions on passages as they are and with a misleading sentence.

    Returns two `Group`s, named by what is added.
    """
    rows, misled = add_sentences(split, evenly_spaced(len(split), MAX_COMPARED))
    as_they_are = split.asked_of(rows, split.context[rows])
    groups = []
    for name, asked in (("nothing", as_they_are), ("a misleading sentence", misled)):
        metrics = score_split(model, asked, progress=progress, length_multiple=length_multiple)
        groups.append(Group(name, len(asked), metrics))
    return groups
