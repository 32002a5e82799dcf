"""Limits of a training: what becomes of the training examples that exceed them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class Limit(NamedTuple):
    """A limit on the size of examples or of their parts."""

    unit: str
    """What may exceed it: questions, turns."""
    is_exceeded: np.ndarray
    """Bool `(units,)`."""
    effect: str
    """What becomes of those that exceed it: the predicate of a sentence."""
    remedy: str
    """The setting that avoids it, and its effect."""


def describe_exceeded(limits: Iterable[Limit]) -> list[str]:
    """A sentence on each limit that is exceeded.

    >>> limit = Limit("turns", np.array([True, False]), "are cut", "--set max_words=N cuts less")
    >>> describe_exceeded([limit])
    ['1 of 2 turns are cut (--set max_words=N cuts less)']
    """
    sentences = []
    for limit in limits:
        count = int(limit.is_exceeded.sum())
        if count:
            units = f"{count:,} of {len(limit.is_exceeded):,} {limit.unit}"
            sentences.append(f"{units} {limit.effect} ({limit.remedy})")
    return sentences
