"""Long passages are read in overlapping windows: time grows with their length, memory does not.

Windows of one passage are compared by their logits, not by their probabilities, which sum to 1 in each, also in one
that holds no answer (Clark and Gardner 2018, section 3).
"""

from typing import NamedTuple


class Window(NamedTuple):
    """Words of a passage that are read at once."""

    row: int
    """Number of the passage."""
    first: int
    end: int
    """The word after the last one."""


class Span(NamedTuple):
    """A possible answer, in words of its passage."""

    score: float
    """The sum of its two logits."""
    first: int
    last: int


def windows_of(row, words, size, overlap):
    """The windows of a passage; the last one ends where the passage ends.

    Args:
        row: Number of the passage.
        words: How many it has.
        size: Words per window.
        overlap: Words that a window shares with the next one, fewer than `size`; an answer of at most that many words
            stands whole in a window.

    >>> [window[1:] for window in windows_of(0, 10, size=5, overlap=2)]
    [(0, 5), (3, 8), (5, 10)]
    >>> [window[1:] for window in windows_of(0, 4, size=5, overlap=2)]
    [(0, 4)]
    """
    starts = [*range(0, words - size, size - overlap), max(words - size, 0)]
    return [Window(row, start, min(start + size, words)) for start in starts]


def batches_of(windows, words, most):
    """Windows of like length, to be read at once.

    Args:
        windows: List of `Window`.
        words: A batch has this many words at most, padding included, or one window.
        most: And this many windows.

    Returns:
        List of lists of `Window`.

    >>> [[w.end for w in batch] for batch in batches_of([Window(i, 0, n) for i, n in enumerate([5, 2, 3])], 6, 9)]
    [[2, 3], [5]]
    """
    batches = []
    for window in sorted(windows, key=lambda window: window.end - window.first):
        fits = batches and len(batches[-1]) < most
        if fits and (len(batches[-1]) + 1) * (window.end - window.first) <= words:
            batches[-1].append(window)
        else:
            batches.append([window])
    return batches


def best_apart(spans, count):
    """The best spans of which no two share a word.

    Args:
        spans: List of `Span`.
        count: How many, at most.

    >>> [span.first for span in best_apart([Span(2.0, 3, 4), Span(1.0, 4, 6), Span(0.5, 5, 6)], 2)]
    [3, 5]
    """
    kept = []
    for span in sorted(spans, key=lambda span: (-span.score, span.first, span.last)):
        if all(span.last < other.first or other.last < span.first for other in kept):
            kept.append(span)
        if len(kept) == count:
            break
    return kept
