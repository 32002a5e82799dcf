"""Confidence in an answer: scores on a scale from 0 to 1, fitted to dev (Platt 1999).

SQuAD 1.1 has an answer to every question, so a model trained on it always names one. Passages without the answer show
what a wrong answer looks like: each question is asked of its own passage and of another one. The scale says how
probable it is that an answer is right if both are equally frequent; the threshold is the score that separates right
answers from wrong ones best, both weighing the same (Youden 1950).
"""

import numpy as np
import scipy.optimize

from base.config import Config, make_config
from data.batching import evenly_spaced
from engine.run import METRICS
from metrics.reading_comprehension import exact_match
from tasks.reading_comprehension.scoring import predict

QUESTIONS = 1000  # that are asked, at most


class Scale(Config):
    """`1 / (1 + exp(-(slope score + offset)))`."""

    slope: float
    offset: float
    threshold: float
    """The score from which an answer counts as good."""

    def confidence(self, score):
        """The probability that an answer of this score is right.

        >>> scale = Scale(slope=2.0, offset=-3.0, threshold=1.0)
        >>> scale.confidence(1.5), round(scale.confidence(2.5), 3)
        (0.5, 0.881)
        """
        return float(0.5 * (1 + np.tanh(0.5 * (self.slope * score + self.offset))))


def scale_of(run):
    """The `Scale` of a run that was evaluated on dev, where one could be fitted; else `None`."""
    found = run.metrics().get("dev", {}).get("confidence")
    fitted = found and {name: value for name, value in found.items() if name in Scale.model_fields}
    return make_config(Scale, fitted, f"{run.path / METRICS}: ") if found else None


def fit_scale(scores, right):
    """Fits the scale under which answers are most probable, from their scores, float `(N,)`, and whether each is right,
    bool `(N,)`; `None` where higher scores are not more often right."""
    scores, right = np.asarray(scores, np.float64), np.asarray(right, bool)
    if not 0 < right.sum() < len(right):
        return None
    # Platt's targets, section 2.1: as far from 0 and 1 as this number of examples can tell.
    target = np.where(right, (right.sum() + 1) / (right.sum() + 2), 1 / ((~right).sum() + 2))
    center, spread = scores.mean(), max(scores.std(), 1e-9)

    def loss(w):
        x = w[0] * (scores - center) / spread + w[1]
        return np.mean(np.logaddexp(0, x) - target * x)

    slope, offset = scipy.optimize.minimize(loss, [0.0, 0.0]).x
    if slope <= 0:
        return None
    slope /= spread
    return Scale(slope=slope, offset=offset - slope * center, threshold=_best_threshold(scores, right))


def _best_threshold(scores, right):
    """The middle of the gap between scores where the fractions of right answers above and wrong ones below have the
    highest sum.

    >>> _best_threshold(np.array([1.0, 5.0, 2.0, 4.0]), np.array([False, True, False, True]))
    3.0
    """
    distinct = np.unique(scores)
    middles = (distinct[:-1] + distinct[1:]) / 2
    above, below = np.sort(scores[right]), np.sort(scores[~right])
    found = np.searchsorted(below, middles) / len(below) - np.searchsorted(above, middles) / len(above)
    return float(middles[np.argmax(found)])


def measure_confidence(model, split, length_multiple=4):
    """Fits a scale to half of a split's questions, and tries it on the others.

    Returns the fields of a `Scale`; `questions`, the number of those that were asked twice; and for the other half
    `right_kept` and `wrong_refused`: the fractions of right answers that count as good and of wrong ones that do not.
    `None` where no scale can be fitted.
    """
    rows = np.array(evenly_spaced(len(split), QUESTIONS))
    others = np.array([_foreign_context(split, row) for row in rows])
    rows, others = rows[others >= 0], others[others >= 0]
    if len(rows) < 4:
        return None
    asked = split.asked_of(np.tile(rows, 2), np.concatenate([split.context[rows], others]))
    spans, scores = predict(model, asked, length_multiple=length_multiple)
    right = [
        any(exact_match(asked.answer(row, *spans[row]), answer) for answer in asked.answers[row])
        for row in range(len(asked))
    ]
    right = np.array(right) & (np.arange(len(asked)) < len(rows))  # nothing in another context is right
    fitted = np.tile(np.arange(len(rows)) % 2 == 0, 2)
    scale = fit_scale(scores[fitted], right[fitted])
    if scale is None:
        return None
    good, right = scores[~fitted] >= scale.threshold, right[~fitted]
    return {
        **dict(scale),
        "questions": len(rows),
        "right_kept": float(np.mean(good[right])) if right.any() else None,
        "wrong_refused": float(np.mean(~good[~right])) if not right.all() else None,
    }


def _foreign_context(split, row):
    """The next context of the split without any of a question's answers; -1 if every context has one."""
    contexts = np.unique(split.context)
    answers = [answer.lower() for answer in split.answers[row]]
    for index in np.roll(contexts, -1 - np.searchsorted(contexts, split.context[row])):
        if not any(answer in split.texts[index].lower() for answer in answers):
            return index
    return -1
