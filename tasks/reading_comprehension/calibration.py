"""The scale of confidences: fitted to half of the articles of dev, measured on the others.

The fit is that of Platt 1999. Unanswerable questions show it what a wrong answer looks like: each
question of dev is asked of its own passage and of a second one that does not answer it. So a
confidence is the probability that an answer is correct where half of the questions can be answered.
"""

from typing import NamedTuple

import numpy as np
import scipy.special

from colloquy.data.batching import evenly_spaced
from colloquy.engine.scoring import Group
from colloquy.metrics.reading_comprehension import exact_match
from colloquy.metrics.thresholds import threshold_of
from colloquy.tasks.reading_comprehension.confidence import Scale
from colloquy.tasks.reading_comprehension.scoring import predict
from colloquy.tasks.reading_comprehension.second_contexts import NONE, SecondContexts

QUESTIONS = 2000
"""Questions that are asked, at most."""
BINS = 10
"""Bins of the reliability diagram."""


def fit_scale(scores, correct):
    """Fits the `Scale` under which answers, `correct` or not, are most probable.

    Args:
        scores: Scores of answers, `(N,)`.
        correct: Bool `(N,)`.

    Returns:
        The scale; `None` where higher scores are not more often correct.
    """
    # The import takes a tenth of a second, and answers do not need it.
    from scipy import optimize

    correct = np.asarray(correct, bool)
    num_correct = correct.sum()
    num_wrong = (~correct).sum()
    if num_correct == 0 or num_wrong == 0:
        return None

    # Platt's targets, section 2.1: nearer to 0 and 1 with more examples.
    target = np.where(correct, (num_correct + 1) / (num_correct + 2), 1 / (num_wrong + 2))
    scores = np.asarray(scores, np.float64)
    mean = scores.mean()
    spread = max(scores.std(), 1e-9)
    standardized = (scores - mean) / spread

    def cross_entropy(parameters):
        logits = parameters[0] * standardized + parameters[1]
        return np.mean(np.logaddexp(0, logits) - target * logits)

    slope, intercept = optimize.minimize(cross_entropy, np.zeros(2)).x
    if slope <= 0:
        return None

    logits_of_correct = slope * standardized[correct] + intercept
    threshold = scipy.special.expit(threshold_of(logits_of_correct))
    return Scale(
        score_weight=float(slope / spread),
        offset=float(intercept - slope * mean / spread),
        threshold=float(threshold),
    )


def measure_confidence(model, split, length_multiple=4):
    """Fits a scale to half of a split's articles, and measures it on the others.

    Returns:
        A record: the fields of the `Scale`; the number of `questions` that were asked twice; and
        fractions on the other articles, where there are such answers:

            right_kept: correct answers that count as good
            wrong_refused: wrong answers that do not
            same_article_refused, other_article_refused: answers in second passages that do not

        The reliability on these articles: the fraction of correct answers and the mean confidence
        of answers of similar confidence, a list of `engine.scoring.Group`.
        `None, []` where no scale can be fitted.
    """
    second = _choose_second_passages(split)
    rows = second.rows
    if len(rows) < 4:
        return None, []

    # Each question is asked twice. No answer in another passage is correct.
    contexts = np.concatenate([split.context[rows], second.contexts])
    asked = split.asked_of(np.tile(rows, 2), contexts)
    spans, scores = predict(model, asked, length_multiple=length_multiple)
    correct = np.zeros(len(asked), bool)
    for row in range(len(rows)):
        prediction = asked.answer(row, *spans[row])
        correct[row] = any(exact_match(prediction, answer) for answer in asked.answers[row])

    is_fitted = np.tile(second.is_fitted, 2)
    scale = fit_scale(scores[is_fitted], correct[is_fitted])
    if scale is None:
        return None, []

    confidence = np.array([scale.confidence(score) for score in scores])
    is_good = confidence >= scale.threshold
    is_measured = ~is_fitted
    is_second = np.repeat([False, True], len(rows))
    is_same_article = np.tile(second.is_same_article, 2)
    fractions = {
        "right_kept": is_good[is_measured & correct],
        "wrong_refused": ~is_good[is_measured & ~correct],
        "same_article_refused": ~is_good[is_measured & is_second & is_same_article],
        "other_article_refused": ~is_good[is_measured & is_second & ~is_same_article],
    }
    record = {**dict(scale), "questions": len(rows)}
    for name, values in fractions.items():
        if len(values):
            record[name] = float(values.mean())
    return record, _reliability(confidence[is_measured], correct[is_measured])


def _reliability(confidence, correct):
    """Groups of answers by confidence: how many, the fraction of correct ones, mean confidence."""
    bins = np.minimum(confidence * BINS, BINS - 1).astype(int)
    groups = []
    for number in np.unique(bins).tolist():
        in_bin = bins == number
        metrics = {
            "right": float(correct[in_bin].mean()),
            "confidence": float(confidence[in_bin].mean()),
        }
        groups.append(Group(f"{number / BINS:.1f}", int(in_bin.sum()), metrics))
    return groups


class SecondPassages(NamedTuple):
    """Questions, each with a second passage that does not answer it; all arrays are `(N,)`."""

    rows: np.ndarray
    """Indices of the questions."""
    contexts: np.ndarray
    """Their second passages."""
    is_same_article: np.ndarray
    """True if it comes from the same article as the question's own passage."""
    is_fitted: np.ndarray
    """True if the scale is fitted to the question. It is fitted to all questions of an article or
    to none."""


def _choose_second_passages(split):
    """Chooses the second passage that shares most words with each question.

    Every second question gets one of the same article if there is one, the others one of another
    article. Questions without a second passage are left out.
    """
    search = SecondContexts(split)
    _, number_of_article = np.unique(split.articles[split.context], return_inverse=True)

    rows = []
    contexts = []
    is_same_article = []
    for number, row in enumerate(evenly_spaced(len(split), QUESTIONS)):
        context = split.second_contexts[row, 0] if number % 2 == 1 else NONE
        is_same = context != NONE
        if not is_same:
            context = search.of_other_articles(row)
        if context != NONE:
            rows.append(row)
            contexts.append(context)
            is_same_article.append(is_same)

    return SecondPassages(
        rows=np.array(rows, int),
        contexts=np.array(contexts, int),
        is_same_article=np.array(is_same_article, bool),
        is_fitted=number_of_article[rows] % 2 == 0,
    )
