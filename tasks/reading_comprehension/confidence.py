"""Confidence of an answer, from 0 to 1, fitted to dev (Platt 1999).

SQuAD 1.1 has an answer to every question, so a model trained on it always names one. Unanswerable
questions show what a wrong answer looks like: each question is asked of its own passage and of a
passage of another article that shares words with it. The scale says how probable it is that an
answer is correct if both are equally frequent, from the answer's score and from the fraction of the
question's words that the passage has.
"""

import numpy as np
import scipy.special

from colloquy.base.config import Config, make_config
from colloquy.data.batching import evenly_spaced
from colloquy.data.vocabulary import UNK_ID
from colloquy.engine.run import METRICS
from colloquy.metrics.reading_comprehension import exact_match
from colloquy.tasks.reading_comprehension.scoring import predict

QUESTIONS = 2000
"""Questions that are asked, at most."""
FREQUENT = 200
"""First ids of a vocabulary, its most frequent words, which say nothing of a passage's subject."""
KEPT = 0.95
"""Fraction of correct answers above the threshold. On texts of another kind, it is 9 of 10."""
BINS = 10
"""Bins of the reliability diagram."""


class Scale(Config):
    """`1 / (1 + exp(-(score_weight score + shared_weight shared + offset)))`."""

    score_weight: float
    shared_weight: float
    offset: float
    threshold: float
    """The confidence from which an answer counts as good."""

    def confidence(self, score, shared):
        """The probability that an answer is correct, from its score and `shared_words`.

        >>> scale = Scale(score_weight=2.0, shared_weight=1.0, offset=-3.5, threshold=0.2)
        >>> scale.confidence(1.5, 0.5), round(scale.confidence(2.5, 0.5), 3)
        (0.5, 0.881)
        """
        logit = self.score_weight * score + self.shared_weight * shared + self.offset
        return float(scipy.special.expit(logit))


def load_scale(run):
    """The `Scale` of a run, fitted when dev was evaluated; `None` without one, as in older runs."""
    record = run.metrics().get("dev", {}).get("confidence") or {}
    fields = {name: value for name, value in record.items() if name in Scale.model_fields}
    if len(fields) < len(Scale.model_fields):
        return None
    return make_config(Scale, fields, f"{run.path / METRICS}: ")


def content_words(tokens, numbers):
    """The words of a text without the most frequent ones, a set.

    `numbers` are those of `data.Tokens`. A word is its id; an unknown one is minus its number.
    """
    numbers = np.unique(numbers)
    ids = tokens.words[numbers]
    is_unknown = ids == UNK_ID
    is_content = is_unknown | (ids > FREQUENT)
    words = np.where(is_unknown, -numbers, ids)
    return set(words[is_content].tolist())


def shared_words(question, passage):
    """The fraction of a question's `content_words` that a passage has; 1 without any."""
    if not question:
        return 1.0
    return len(question & passage) / len(question)


def fit_scale(scores, shared, correct):
    """Fits the `Scale` under which answers, `correct` or not, are most probable.

    Args:
        scores, shared: Arguments of `Scale.confidence`, `(N,)`.
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
    features = np.stack([scores, shared], axis=1).astype(np.float64)
    mean = features.mean(axis=0)
    spread = np.maximum(features.std(axis=0), 1e-9)
    X = np.column_stack([(features - mean) / spread, np.ones(len(features))])

    def cross_entropy(w):
        logits = X @ w
        return np.mean(np.logaddexp(0, logits) - target * logits)

    w = optimize.minimize(cross_entropy, np.zeros(3)).x
    if w[0] <= 0:
        return None

    logits_of_correct = (X @ w)[correct]
    threshold = scipy.special.expit(np.quantile(logits_of_correct, 1 - KEPT))
    weights = w[:2] / spread
    return Scale(
        score_weight=float(weights[0]),
        shared_weight=float(weights[1]),
        offset=float(w[2] - weights @ mean),
        threshold=float(threshold),
    )


def measure_confidence(model, split, length_multiple=4):
    """Fits a scale to half of a split's questions, and measures it on the others.

    Returns:
        The fields of a `Scale`; `questions`, the number of those that were asked twice; and for the
        other half `right_kept` and `wrong_refused`, the fractions of correct answers that count as
        good and of wrong ones that do not.
        The reliability on that half: the fraction of correct answers and the mean confidence of
        answers of similar confidence, groups of `engine.task.Task.metrics_by_group`.
        `None, []` where no scale can be fitted.
    """
    rows, other_contexts, shared = _choose_second_passages(split)
    if len(rows) < 4:
        return None, []

    # Each question is asked twice. No answer in another passage is correct.
    contexts = np.concatenate([split.context[rows], other_contexts])
    asked = split.asked_of(np.tile(rows, 2), contexts)
    spans, scores = predict(model, asked, length_multiple=length_multiple)
    correct = np.zeros(len(asked), bool)
    for row in range(len(rows)):
        prediction = asked.answer(row, *spans[row])
        correct[row] = any(exact_match(prediction, answer) for answer in asked.answers[row])

    is_fitted = np.tile(np.arange(len(rows)) % 2 == 0, 2)
    scale = fit_scale(scores[is_fitted], shared[is_fitted], correct[is_fitted])
    if scale is None:
        return None, []

    held_out = zip(scores[~is_fitted], shared[~is_fitted], strict=True)
    confidence = np.array([scale.confidence(score, fraction) for score, fraction in held_out])
    correct = correct[~is_fitted]
    is_good = confidence >= scale.threshold
    record = {
        **dict(scale),
        "questions": len(rows),
        "right_kept": float(np.mean(is_good[correct])) if correct.any() else None,
        "wrong_refused": float(np.mean(~is_good[~correct])) if not correct.all() else None,
    }
    return record, _reliability(confidence, correct)


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
        groups.append(
            {"group": f"{number / BINS:.1f}", "examples": int(in_bin.sum()), "metrics": metrics}
        )
    return groups


def _choose_second_passages(split):
    """Chooses a second passage for some questions.

    It is that passage of another article which has most of the question's words, and none of its
    answers.

    Returns:
        The questions, int `(N,)`; those without such a passage are missing.
        Their second passages, int `(N,)`.
        `shared_words` with their own passages, then with the second ones, float `(2 N,)`.
    """
    passages = [content_words(split.tokens, numbers) for numbers in split.contexts.lists()]
    articles = split.articles
    if len(set(articles.tolist())) <= 1:  # the dataset does not say: a passage is an article
        articles = np.arange(len(passages))

    rows = []
    second_passages = []
    shared_with_own = []
    shared_with_second = []
    for row in evenly_spaced(len(split), QUESTIONS):
        own = split.context[row]
        [numbers] = split.questions.lists([row])
        question = content_words(split.tokens, numbers)
        shared = np.array([shared_words(question, passage) for passage in passages])
        for other in np.argsort(-shared, kind="stable"):
            if articles[other] == articles[own]:
                continue
            text = split.texts[other].lower()
            if any(answer.lower() in text for answer in split.answers[row]):
                continue
            rows.append(row)
            second_passages.append(other)
            shared_with_own.append(shared[own])
            shared_with_second.append(shared[other])
            break
    return (
        np.array(rows, int),
        np.array(second_passages, int),
        np.array(shared_with_own + shared_with_second),
    )
