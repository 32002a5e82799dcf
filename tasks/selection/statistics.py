"""Statistics of a prepared dataset for response selection."""

import collections
from typing import Any, NamedTuple

import numpy as np

from colloquy.data.vocabulary import Vocabulary


class Prepared(NamedTuple):
    """Contents of a dataset beside the arrays of its splits."""

    settings: Any
    """`tasks.selection.prepare.Settings`, with the values that preparing decided."""
    vocabulary: Vocabulary | None
    vectors: np.ndarray
    statistics: dict
    """`{split: {name: number or text}}`."""
    metadata: dict
    """Further fields of `dataset.json`."""


def statistics_of(split, unknown):
    """Statistics of a split with `unknown` words outside the vocabulary; each context counts once.

    Only lengths are read: what is read of a mapped array counts as memory.
    """
    turns = split.context_turns
    words = split.turns.lengths
    candidates = np.bincount(split.context)
    positive = np.bincount(split.context, weights=split.label)
    sizes = collections.Counter(candidates.tolist()).most_common(3)
    num_words = int(words.sum() + split.responses.lengths.sum())
    return {
        "lines": len(split),
        "contexts": len(candidates),
        "turns_median": float(np.percentile(turns, 50)),
        "turns_95": round(float(np.percentile(turns, 95)), 2),
        "words_median": float(np.percentile(words, 50)),
        "words_95": round(float(np.percentile(words, 95)), 2),
        "unknown_words": round(unknown / num_words, 4),
        "contexts_without_positive": int(np.sum(positive == 0)),
        "contexts_without_negative": int(np.sum(positive == candidates)),
        "candidates_x_contexts": ", ".join(f"{size} x {count:,}" for size, count in sizes),
    }
