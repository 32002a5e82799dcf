"""The threshold from which an answer counts as good, chosen on dev by one rule for all tasks."""

from collections.abc import Sequence

import numpy as np

KEPT = 0.92
"""Fraction of the right answers that reach the threshold: nine of ten, and a margin."""


def threshold_of(scores_of_right: Sequence[float] | np.ndarray) -> float:
    """The score that `KEPT` of the right answers reach.

    >>> round(threshold_of(range(101)), 6)
    8.0
    """
    return float(np.quantile(scores_of_right, 1 - KEPT))
