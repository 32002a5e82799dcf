"""How far an answer can be trusted: scores on a scale from 0 to 1, fitted to dev (Platt 1999).

SQuAD 1.1 has an answer to every question, so a model trained on it always names one. What no answer looks like is
shown by passages that hold none: each question is asked of its own passage and of another one. The scale says, where
both are equally frequent, how probable it is that an answer is right; the threshold is the score that separates right
answers from wrong ones best, the two weighing the same (Youden 1950).
"""

import dataclasses

import numpy as np

from data.sequences import Sequences
from metrics.reading_comprehension import exact_match
from tasks.reading_comprehension.scoring import predict

QUESTIONS = 1000  # that are asked, at most


@dataclasses.dataclass(frozen=True)
class Scale:
    """`1 / (1 + exp(-(slope score + offset)))`."""

    slope: float
    offset: float
    threshold: float
    """The score from which an answer counts as good."""

    def confidence(self, score):
        """How probable it is that an answer of this score is right, in [0, 1].

        >>> scale = Scale(slope=2.0, offset=-3.0, threshold=1.0)
        >>> scale.confidence(1.5), round(scale.confidence(2.5), 3)
        (0.5, 0.881)
        """
        return float(0.5 * (1 + np.tanh(0.5 * (self.slope * score + self.offset))))


def fit_scale(scores, right):
    """The scale under which the given answers are most probable, by Newton's method, and the best threshold.

    Args:
        scores: Of some answers, float `(N,)`.
        right: Whether each is right, bool `(N,)`.

    Returns:
        `Scale`; `None` where higher scores are not more often right.
    """
    right = np.asarray(right, bool)
    if not len(right) or right.all() or not right.any():
        return None
    # Platt's targets, section 2.1: as far from 0 and 1 as so many examples can tell.
    target = np.where(right, (right.sum() + 1) / (right.sum() + 2), 1 / ((~right).sum() + 2))
    center, spread = np.mean(scores), max(np.std(scores), 1e-9)
    scores = np.asarray(scores, np.float64)
    X = np.stack([(scores - center) / spread, np.ones(len(scores))], axis=1)
    w = np.zeros(2)
    for _ in range(100):
        p = 0.5 * (1 + np.tanh(0.5 * (X @ w)))
        hessian = X.T @ (X * (p * (1 - p))[:, None]) + 1e-6 * np.eye(2)
        step = np.linalg.solve(hessian, X.T @ (target - p))
        w += step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-9))  # a full step may leap over the maximum
        if np.abs(step).max() < 1e-9:
            break
    threshold = _best_threshold(scores, right)
    return Scale(float(w[0] / spread), float(w[1] - w[0] * center / spread), threshold) if w[0] > 0 else None


def _best_threshold(scores, right):
    """The score in the middle of the gap where `right kept + wrong refused` is highest, as fractions.

    >>> _best_threshold(np.array([1.0, 5.0, 2.0, 4.0]), np.array([False, True, False, True]))
    3.0
    """
    order = np.argsort(scores)
    scores, right = scores[order], right[order]
    below = np.cumsum(~right) / (~right).sum() - np.cumsum(right) / right.sum()  # the threshold after each score
    gaps = np.flatnonzero(np.diff(scores) > 0)
    if not len(gaps):
        return float(scores[0])
    best = gaps[np.argmax(below[gaps])]
    return float((scores[best] + scores[best + 1]) / 2)


def measure_confidence(model, split, length_multiple=4):
    """Fits a scale to half of a split's questions, and tries it on the others.

    Args:
        model: A `models.bidaf.BiDAF`.
        split: A `tasks.reading_comprehension.data.ReadingSplit`.
        length_multiple: As of `tasks.reading_comprehension.scoring.predict`.

    Returns:
        `{"slope", "offset", "threshold", "questions", "right_kept", "wrong_refused"}`: a `Scale`, how many questions
        were asked twice, and of those that it was not fitted to, the fractions of correct answers that count as good
        and of wrong ones that do not. `None` where no scale can be fitted.
    """
    rows = np.unique(np.linspace(0, len(split) - 1, QUESTIONS).astype(int))
    others = np.array([_foreign_context(split, row) for row in rows])
    rows, others = rows[others >= 0], others[others >= 0]
    if len(rows) < 4:
        return None
    asked = _asked(split, np.concatenate([rows, rows]), np.concatenate([split.context[rows], others]))
    spans, scores = predict(model, asked, length_multiple=length_multiple)
    own = np.arange(len(asked)) < len(rows)
    right = own & [
        any(exact_match(asked.answer(row, *spans[row]), answer) for answer in asked.answers[row])
        for row in range(len(asked))
    ]
    fitted = np.tile(np.arange(len(rows)) % 2 == 0, 2)
    scale = fit_scale(scores[fitted], right[fitted])
    if scale is None:
        return None
    good, right = scores[~fitted] >= scale.threshold, right[~fitted]
    return {
        **dataclasses.asdict(scale),
        "questions": len(rows),
        "right_kept": float(np.mean(good[right])) if right.any() else None,
        "wrong_refused": float(np.mean(~good[~right])) if not right.all() else None,
    }


def _foreign_context(split, row):
    """The next context of the split in which none of a question's answers stands; -1: there is none."""
    contexts = np.unique(split.context)
    answers = [answer.lower() for answer in split.answers[row]]
    for number in np.roll(contexts, -1 - np.searchsorted(contexts, split.context[row])):
        if not any(answer in split.texts[number].lower() for answer in answers):
            return number
    return -1


def _asked(split, rows, contexts):
    """Questions of a split, asked of other contexts."""
    questions = split.questions.lists()
    return dataclasses.replace(
        split,
        ids=[split.ids[row] for row in rows],
        context=contexts,
        questions=Sequences.of([questions[row] for row in rows]),
        answers=[split.answers[row] for row in rows],
        spans=[split.spans[row] for row in rows],
    )
