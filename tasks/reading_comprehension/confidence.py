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

QUESTIONS = 2000  # that are asked, at most
# first ids of a vocabulary, its most frequent words, which say nothing of a passage's subject
FREQUENT = 200
# of the correct answers are above the threshold, so that nine of ten are on texts of another kind
# too
KEPT = 0.95
BINS = 10  # of the reliability diagram


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
        return float(
            scipy.special.expit(
                self.score_weight * score + self.shared_weight * shared + self.offset
            )
        )


def scale_of(run):
    """The `Scale` of a run that was evaluated on dev, where one could be fitted; else `None`, also
    of an older run.
    """
    found = run.metrics().get("dev", {}).get("confidence") or {}
    fitted = {name: value for name, value in found.items() if name in Scale.model_fields}
    known = len(fitted) == len(Scale.model_fields)
    return make_config(Scale, fitted, f"{run.path / METRICS}: ") if known else None


def content_words(tokens, numbers):
    """The words of a text, numbers of `data.Tokens`, without the most frequent ones: ids, or
    unknown tokens below 0.
    """
    numbers = np.unique(numbers)
    ids = tokens.words[numbers]
    return set(np.where(ids == UNK_ID, -numbers, ids)[(ids == UNK_ID) | (ids > FREQUENT)].tolist())


def shared_words(question, passage):
    """The fraction of a question's `content_words` that a passage has; 1 without any."""
    return len(question & passage) / len(question) if question else 1.0


def fit_scale(scores, shared, right):
    """The `Scale` under which answers, correct where `right`, are most probable, from arguments of
    `Scale.confidence`, `(N,)` all. `None` where higher scores are not more often correct."""
    from scipy import optimize  # takes a tenth of a second, and answers need none of it

    right = np.asarray(right, bool)
    if not 0 < right.sum() < len(right):
        return None
    # Platt's targets, section 2.1: nearer to 0 and 1 with more examples.
    target = np.where(right, (right.sum() + 1) / (right.sum() + 2), 1 / ((~right).sum() + 2))
    X = np.stack([scores, shared], axis=1).astype(np.float64)
    mean, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-9)
    X = np.column_stack([(X - mean) / spread, np.ones(len(X))])
    found = optimize.minimize(
        lambda w: np.mean(np.logaddexp(0, X @ w) - target * (X @ w)), np.zeros(3)
    ).x
    if found[0] <= 0:
        return None
    threshold = float(scipy.special.expit(np.quantile((X @ found)[right], 1 - KEPT)))
    weights = found[:2] / spread
    offset = float(found[2] - weights @ mean)
    return Scale(
        score_weight=float(weights[0]),
        shared_weight=float(weights[1]),
        offset=offset,
        threshold=threshold,
    )


def measure_confidence(model, split, length_multiple=4):
    """Fits a scale to half of a split's questions, and tries it on the others.

    Returns the fields of a `Scale`; `questions`, the number of those that were asked twice; and for
    the other half `right_kept` and `wrong_refused`, the fractions of correct answers that count as
    good and of wrong ones that do not. And the reliability on that half: the fraction of correct
    answers and the mean confidence of answers of like confidence, as `engine.task.Task.metrics_by_group`
    has groups. `None, []` where no scale can be fitted.
    """
    rows, others, shared = _asked_twice(split)
    if len(rows) < 4:
        return None, []
    asked = split.asked_of(np.tile(rows, 2), np.concatenate([split.context[rows], others]))
    spans, scores = predict(model, asked, length_multiple=length_multiple)
    own = np.arange(len(asked)) < len(rows)  # nothing in another passage is correct
    right = own & [
        any(exact_match(asked.answer(row, *spans[row]), answer) for answer in asked.answers[row])
        for row in range(len(asked))
    ]
    fitted = np.tile(np.arange(len(rows)) % 2 == 0, 2)
    scale = fit_scale(scores[fitted], shared[fitted], right[fitted])
    if scale is None:
        return None, []
    tried = zip(scores[~fitted], shared[~fitted], strict=True)
    confidence, right = np.array([scale.confidence(*each) for each in tried]), right[~fitted]
    good, bins = confidence >= scale.threshold, np.minimum(confidence * BINS, BINS - 1).astype(int)
    record = {
        **dict(scale),
        "questions": len(rows),
        "right_kept": float(np.mean(good[right])) if right.any() else None,
        "wrong_refused": float(np.mean(~good[~right])) if not right.all() else None,
    }
    groups = []
    for number in np.unique(bins).tolist():
        of = bins == number
        metrics = {"right": float(right[of].mean()), "confidence": float(confidence[of].mean())}
        groups.append(
            {"group": f"{number / BINS:.1f}", "examples": int(of.sum()), "metrics": metrics}
        )
    return record, groups


def _asked_twice(split):
    """Questions, their second passages, and `shared_words` with the own and the second ones.

    The second passage is that of another article which has most of the question's words and none of
    its answers.
    """
    passages = [content_words(split.tokens, numbers) for numbers in split.contexts.lists()]
    articles = split.articles if len(set(split.articles.tolist())) > 1 else np.arange(len(passages))
    found = []
    for row in evenly_spaced(len(split), QUESTIONS):
        question, own = (
            content_words(split.tokens, split.questions.lists([row])[0]),
            split.context[row],
        )
        shares = np.array([shared_words(question, passage) for passage in passages])
        for other in np.argsort(-shares, kind="stable"):
            text = split.texts[other].lower()
            if articles[other] != articles[own] and not any(
                each.lower() in text for each in split.answers[row]
            ):
                found.append((row, other, shares[own], shares[other]))
                break
    rows, others, own, other = np.array(found).reshape(-1, 4).T
    return rows.astype(int), others.astype(int), np.concatenate([own, other])
