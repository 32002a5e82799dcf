"""What prepare.py says of a response-selection dataset: lengths, unknown words, candidates."""

import collections
import sys

import numpy as np

from data.flat_arrays import BLOCK

PAPER_TURNS, PAPER_WORDS = 9, 50  # what DAM reads of a context and of an utterance


def statistics_of(split, unknown):
    """Statistics of a `tasks.selection.split.SelectionSplit`; a context counts once, whatever its candidates.

    Args:
        split: Its lengths are looked at, not its words: what is read of a mapped array would count as memory.
        unknown: How many words of it are not in the vocabulary.
    """
    candidates = np.bincount(split.context)
    positive = np.bincount(split.context, weights=split.label)
    turns, words, responses = map(_counts, (split.context_turns, split.turns.lengths, split.responses.lengths))
    total = sum(int(counts @ np.arange(len(counts))) for counts in (words, responses))
    return {
        "lines": len(split.label),
        "contexts": len(candidates),
        "turns_median": _percentile(turns, 50),
        "turns_95": _percentile(turns, 95),
        "words_median": _percentile(words, 50),
        "words_95": _percentile(words, 95),
        "contexts_over_9_turns": float(turns[PAPER_TURNS + 1 :].sum() / turns.sum()),
        "turns_over_50_words": float(words[PAPER_WORDS + 1 :].sum() / words.sum()),
        "unknown_words": unknown / total,
        "contexts_without_positive": int(np.sum(positive == 0)),
        "contexts_without_negative": int(np.sum(positive == candidates)),
        "candidates": {str(size): count for size, count in collections.Counter(candidates.tolist()).most_common()},
    }


def _blocks(array):
    return (array[start : start + BLOCK] for start in range(0, len(array), BLOCK))


def _counts(values):
    """How often each number from 0 on occurs."""
    longest = max((int(part.max()) for part in _blocks(values)), default=0)
    return sum((np.bincount(part, minlength=longest + 1) for part in _blocks(values)), np.zeros(longest + 1, np.int64))


def _percentile(counts, percent):
    """`np.percentile` of numbers of which only is known how often each occurs.

    >>> counts = np.bincount([2, 2, 3, 7])
    >>> _percentile(counts, 50), round(_percentile(counts, 95), 6)
    (2.5, 6.4)
    """
    ends = np.cumsum(counts)
    place = (ends[-1] - 1) * (percent / 100)
    below, above = np.searchsorted(ends, [int(place), min(int(place) + 1, ends[-1] - 1)], side="right")
    return float(below + (above - below) * (place - int(place)))


def warn_of_candidates(file, split, expected):
    """Warns where consecutive lines of one context are not as many as promised."""
    sizes = np.bincount(split.context)
    unexpected = np.flatnonzero(sizes != expected)
    if expected and len(unexpected):
        line = np.searchsorted(split.context, unexpected[0]) + 1
        print(
            f"warning: {file}, line {line}: expected {expected} candidates per context "
            f"(--candidates). Received: {sizes[unexpected[0]]}; {len(unexpected)} of {len(sizes)} contexts "
            f"do not have {expected}",
            file=sys.stderr,
        )


def _sizes(statistics):
    sizes = list(statistics["candidates"].items())
    shown = ", ".join(f"{size} x {count:,}" for size, count in sizes[:3])
    return shown + (f", {len(sizes) - 3} other sizes" if len(sizes) > 3 else "")


ROWS = {
    "lines": lambda s: f"{s['lines']:,}",
    "contexts": lambda s: f"{s['contexts']:,}",
    "turns per context: median, 95%": lambda s: f"{s['turns_median']:g}, {s['turns_95']:g}",
    "words per turn: median, 95%": lambda s: f"{s['words_median']:g}, {s['words_95']:g}",
    f"contexts cut at {PAPER_TURNS} turns": lambda s: f"{s['contexts_over_9_turns']:.1%}",
    f"turns cut at {PAPER_WORDS} words": lambda s: f"{s['turns_over_50_words']:.1%}",
    "unknown words": lambda s: f"{s['unknown_words']:.2%}",
    "contexts without a positive": lambda s: f"{s['contexts_without_positive']:,}",
    "contexts without a negative": lambda s: f"{s['contexts_without_negative']:,}",
    "candidates x contexts": _sizes,
}
"""Rows of the summary, see `data.prepared.print_summary`."""
