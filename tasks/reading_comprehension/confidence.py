"""Confidence of an answer, from 0 to 1, by a scale that `calibration` has fitted to dev."""

import scipy.special

from colloquy.base.config import Config, make_config
from colloquy.engine.run import METRICS

SURE = 0.8
LIKELY = 0.5
"""Confidences from which an answer is called sure, and likely."""


class Scale(Config):
    """Turns the score of an answer into its confidence, `sigmoid(score_weight score + offset)`."""

    score_weight: float
    offset: float
    threshold: float
    """The confidence from which an answer counts as good."""

    def confidence(self, score):
        """The probability that an answer is correct, from its score.

        >>> scale = Scale(score_weight=2.0, offset=-3.0, threshold=0.2)
        >>> scale.confidence(1.5), round(scale.confidence(2.5), 3)
        (0.5, 0.881)
        """
        return float(scipy.special.expit(self.score_weight * score + self.offset))

    def verdict(self, confidence):
        """The confidence in words."""
        if confidence < self.threshold:
            return "probably not in this text"
        if confidence >= SURE:
            return "sure"
        if confidence >= LIKELY:
            return "likely"
        return "may be wrong"


def load_scale(run):
    """The `Scale` of a run, fitted when dev was evaluated; `None` without one."""
    record = run.metrics().get("dev", {}).get("confidence")
    if not record:
        return None
    fields = {name: value for name, value in record.items() if name in Scale.model_fields}
    return make_config(Scale, fields, f"{run.path / METRICS}: ")
