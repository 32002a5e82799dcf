"""Windows of a context that is too long to be read at once."""

from typing import NamedTuple


class Window(NamedTuple):
    """Words `first` to `end - 1` of passage `row`, which are read at once."""

    row: int
    first: int
    end: int


def make_windows(row, words, size):
    """Makes the windows of `size` words of a passage, its index `row`.

    The last one ends where the passage ends. Neighbours share at least `overlap_of(size)` words: an
    answer of at most this many is whole in a window.

    >>> [window[1:] for window in make_windows(0, 10, size=5)]
    [(0, 5), (4, 9), (5, 10)]
    >>> [window[1:] for window in make_windows(0, 4, size=5)]
    [(0, 4)]
    """
    last_start = max(words - size, 0)
    starts = [*range(0, last_start, size - overlap_of(size)), last_start]
    return [Window(row, start, min(start + size, words)) for start in starts]


def overlap_of(size):
    """Words that neighbouring windows of a size share."""
    return size // 4


def smallest_size(shared_words):
    """The smallest size of windows whose neighbours share `shared_words` words."""
    return 4 * shared_words


def window_of_answer(spans, words, size):
    """The first window of a context that has one of the answers, or else the first window.

    Args:
        spans: First and last words of the answers.
        words: Words of the context.

    >>> window_of_answer([[1, 2], [13, 14]], words=20, size=8)[1:]
    (0, 8)
    >>> window_of_answer([[13, 14]], words=20, size=8)[1:]
    (12, 20)
    """
    windows = make_windows(0, words, size)
    for window in windows:
        for first, last in spans:
            if window.first <= first and last < window.end:
                return window
    return windows[0]
