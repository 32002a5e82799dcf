"""What a reading comprehension model takes and returns: a question on a text, and its answer."""

import numpy as np
from pydantic import PrivateAttr

from colloquy.base.config import Config
from colloquy.tasks.reading_comprehension.reader import TokenizedInstance
from colloquy.tasks.reading_comprehension.spans import best_apart

MAX_ANSWERS = 5
"""Most answers in `n_best`."""


class Instance(Config):
    """A question about a text."""

    passage: str
    """The text in which the answer is looked for."""
    question: str
    _tokenized: TokenizedInstance | None = PrivateAttr(default=None)

    @property
    def tokenized(self):
        """The `TokenizedInstance`, which is made at the first call."""
        # No `cached_property`: in Python 3.11 it has one lock for all instances, so a short
        # passage would wait until a long one is tokenized.
        if self._tokenized is None:
            self._tokenized = TokenizedInstance.of(self.passage, self.question)
        return self._tokenized


class AnswerSpan(Config):
    """A part of a passage that may answer a question."""

    answer: str
    start: int
    """Offset of the answer's first character in the passage."""
    end: int
    """Offset behind the answer's last character."""
    score: float
    """The sum of two logits, which can be compared between passages and questions of one model.
    In a model with `no_answer`, having no answer has the score 0."""
    probability: float
    """Probability among all spans of the passage; with `no_answer`, having no answer is one more.
    Unlike `score`, it has no length penalty, so it may order answers otherwise."""
    confidence: float | None
    """The probability that the answer is correct, where half of the questions have an answer in
    their passage. Its scale is fitted to dev, see `tasks.reading_comprehension.calibration`. Null
    without a scale."""


class Answer(AnswerSpan):
    """The best answer."""

    good: bool | None
    """True if `confidence` is at least `threshold`. Null in a run without a scale of
    confidence."""
    verdict: str | None
    """The confidence in words: sure, likely, may be wrong, or probably not in this text. Null
    in a run without a scale of confidence."""
    threshold: float | None
    """The confidence from which an answer is good, chosen on dev. Null without a scale."""
    n_best: list[AnswerSpan]
    """The best answers that share no word; the first is this one."""
    window_start: int
    """Offset in the passage of the window in which the answer was found. A long passage is read
    in overlapping windows."""
    window_end: int
    """Offset behind this window's last character."""
    unknown_percent: float
    """Percentage of the words of passage and question without a word vector."""
    remark: str | None
    """A sentence if the passage does not seem to be English; otherwise null."""


def make_answer(tokenized, reading, scale, no_answer, unknown_percent):
    """Makes the `Answer` to a question.

    Args:
        tokenized: The `TokenizedInstance`.
        reading: The `PassageReading` of its passage.
        scale: The run's `Scale`; `None` without one.
        no_answer: Whether the model may find that there is no answer.
        unknown_percent: See `Answer`.
    """
    passage = tokenized.passage
    start_T, end_T = reading.logits(len(passage.words))
    # Log of the sum over all spans: the sum over all starts times the sum over all ends.
    log_z = np.logaddexp.reduce(start_T) + np.logaddexp.reduce(end_T)
    if no_answer:
        log_z = np.logaddexp(log_z, 0.0)  # having no answer has the logit 0

    spans = best_apart(reading.spans, MAX_ANSWERS)
    n_best = []
    for span in spans:
        start = passage.offsets[span.first][0]
        end = passage.offsets[span.last][1]
        log_p = start_T[span.first] + end_T[span.last] - log_z
        answer_span = AnswerSpan(
            answer=passage.text[start:end],
            start=start,
            end=end,
            score=span.score,
            probability=float(np.exp(log_p)),
            confidence=None if scale is None else scale.confidence(span.score),
        )
        n_best.append(answer_span)

    best = n_best[0]
    judgement = {"good": None, "verdict": None, "threshold": None}
    if scale is not None:
        judgement = {
            "good": best.confidence >= scale.threshold,
            "verdict": scale.verdict(best.confidence),
            "threshold": scale.threshold,
        }
    window = spans[0].window
    return Answer(
        **dict(best),
        **judgement,
        n_best=n_best,
        window_start=passage.offsets[window.first][0],
        window_end=passage.offsets[window.end - 1][1],
        unknown_percent=unknown_percent,
        remark=tokenized.remark(),
    )
