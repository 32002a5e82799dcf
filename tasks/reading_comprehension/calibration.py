"""The scale of confidences: fitted to half of the articles of dev, measured on the others.

A score alone does not tell how probable it is that an answer is correct. The scale is fitted to
answers of which some are wrong. So that there are enough wrong ones, each question is asked of its
own passage and of a second passage that does not answer it. A confidence is therefore the
probability that an answer is correct where half of the questions can be answered.

Letters: N questions   M those of them that the scale is measured on
"""

import numpy as np
import scipy.special

from colloquy.data.batching import evenly_spaced
from colloquy.engine.scoring import Group
from colloquy.metrics.reading_comprehension import exact_match
from colloquy.metrics.thresholds import threshold_of
from colloquy.tasks.reading_comprehension.confidence import Scale
from colloquy.tasks.reading_comprehension.scoring import predict
from colloquy.tasks.reading_comprehension.second_contexts import NONE, SecondContexts

MAX_QUESTIONS = 2000
BINS = 10
"""Bins of the reliability diagram."""


def fit_scale(scores, correct):
    """Fits the `Scale` of Platt 1999 to answers.

    Args:
        scores: Scores of answers, `(N,)`.
        correct: Whether each answer is correct, bool `(N,)`.

    Returns:
        The scale; `None` if answers with higher scores are not more often correct.
    """
    # Imported here: the import takes a tenth of a second, which a server need not wait for.
    from scipy import optimize

    correct = np.asarray(correct, bool)
    num_correct = correct.sum()
    num_wrong = (~correct).sum()
    if num_correct == 0 or num_wrong == 0:
        return None

    # The targets of Platt's section 2.1 are near to 1 and 0, the nearer the more answers there are.
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

    # Most correct answers, but not all, reach the threshold.
    logits_of_correct = slope * standardized[correct] + intercept
    threshold = scipy.special.expit(threshold_of(logits_of_correct))
    # A logit is slope * (score - mean) / spread + intercept.
    return Scale(
        score_weight=float(slope / spread),
        offset=float(intercept - slope * mean / spread),
        threshold=float(threshold),
    )


def measure_confidence(model, split, length_multiple=4):
    """Fits a scale to half of a split's articles, and measures it on the others.

    Returns:
        A dict: the fields of the `Scale`; `questions`, the number of questions that were asked; and
        fractions of the answers on the other articles. A fraction is left out if there are no such
        answers. `None` if no scale can be fitted.

            right_kept: of the correct answers, those that reach the threshold
            wrong_refused: of the wrong answers, those that do not
            same_article_refused: of the answers in second passages of the question's article, those
                that do not
            other_article_refused: the same for second passages of other articles

        The reliability: the fraction of correct ones among answers of similar confidence, and their
        mean confidence, a list of `Group`.
    """
    rows_N, second_N, is_same_article_N = _choose_second_passages(split)
    if len(rows_N) < 4:
        return None, []
    scores_2N, correct_2N = _ask_twice(model, split, rows_N, second_N, length_multiple)

    # Articles are numbered 0, 1, 2, and so on; the scale is fitted to those with even numbers.
    article_of_question = split.articles[split.context_of_question]
    _, article_numbers = np.unique(article_of_question, return_inverse=True)
    is_fitted_N = article_numbers[rows_N] % 2 == 0
    scale = fit_scale(scores_2N[:, is_fitted_N].ravel(), correct_2N[:, is_fitted_N].ravel())
    if scale is None:
        return None, []

    correct_2M = correct_2N[:, ~is_fitted_N]
    confidences = [scale.confidence(score) for score in scores_2N[:, ~is_fitted_N].ravel()]
    confidence_2M = np.reshape(confidences, correct_2M.shape)
    is_refused_2M = confidence_2M < scale.threshold
    is_same_article_M = is_same_article_N[~is_fitted_N]
    fractions = {
        "right_kept": ~is_refused_2M[correct_2M],
        "wrong_refused": is_refused_2M[~correct_2M],
        "same_article_refused": is_refused_2M[1, is_same_article_M],
        "other_article_refused": is_refused_2M[1, ~is_same_article_M],
    }
    record = {**dict(scale), "questions": len(rows_N)}
    for name, values in fractions.items():
        if len(values):
            record[name] = float(values.mean())
    return record, _reliability(confidence_2M.ravel(), correct_2M.ravel())


def _choose_second_passages(split):
    """Chooses for each question a second passage that does not answer it.

    Of several, it is the one that shares most words with the question. Every second question gets
    a passage of its own article if there is one, the others get one of another article. Questions
    without a second passage are left out.

    Returns:
        Indices of the questions, int `(N,)`.
        Their second passages, int `(N,)`.
        True if these are of the question's own article, bool `(N,)`.
    """
    search = SecondContexts(split)
    chosen = []
    for place, row in enumerate(evenly_spaced(len(split), MAX_QUESTIONS)):
        same_article = split.second_contexts[row, 0] if place % 2 == 1 else NONE
        has_same_article = same_article != NONE
        context = same_article if has_same_article else search.of_other_articles(row)
        if context != NONE:
            chosen.append((row, context, has_same_article))
    rows, contexts, is_same_article = np.array(chosen, int).reshape(-1, 3).T
    return rows, contexts, is_same_article.astype(bool)


def _ask_twice(model, split, rows, second_passages, length_multiple):
    """Asks each question of its own passage and of its second passage.

    Returns:
        The scores of the answers, float `(2, N)`: row 0 in the questions' own passages, row 1 in
        their second passages.
        Whether the answers are correct, bool `(2, N)`. No answer in a second passage is.
    """
    contexts = np.concatenate([split.context_of_question[rows], second_passages])
    asked = split.asked_of(np.concatenate([rows, rows]), contexts)
    spans, scores = predict(model, asked, length_multiple=length_multiple)

    correct_2N = np.zeros((2, len(rows)), bool)
    for place in range(len(rows)):
        prediction = asked.answer(place, *spans[place])
        references = asked.answers[place]
        correct_2N[0, place] = any(exact_match(prediction, text) for text in references)
    return np.reshape(scores, correct_2N.shape), correct_2N


def _reliability(confidence, correct):
    """Groups answers by confidence, see `measure_confidence`."""
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
