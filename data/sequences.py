"""Concatenated sequences of ids, and the one padding."""

import array
import dataclasses
import itertools
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

BLOCK = 2**16
"""Lists whose ids are counted at once."""
SMALL_ARRAY = 2**24
"""An array of this many ids may be all padding."""
CELLS_PER_ID = 64
"""A larger array may have this many cells per id; the others are padding."""


@dataclasses.dataclass(frozen=True)
class Sequences:
    """Lists of ids: list `i` is `ids[starts[i] : starts[i] + lengths[i]]`."""

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, lists: Any) -> Self:
        """Packs lists, tuples or arrays of 32-bit integers.

        Anything else raises a `TypeError` or an `OverflowError`.
        """
        if not isinstance(lists, list | tuple | np.ndarray):
            raise TypeError(f"a list of lists of ids is needed. Received: {type(lists).__name__}")
        other_types = set(map(type, lists)) - {list, tuple, np.ndarray}
        if other_types:
            names = sorted(other_type.__name__ for other_type in other_types)
            raise TypeError(f"lists of ids are needed. Received: {', '.join(names)}")

        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        starts = np.cumsum(lengths) - lengths
        # An array of "i" refuses what is not a 32-bit integer.
        ids = array.array("i", itertools.chain.from_iterable(lists))
        return cls(np.array(ids, np.int32), starts, lengths)

    def take(self, index: Any) -> "Sequences":
        """The lists at `index`, an int array or a slice, as `Sequences` that share the ids."""
        return Sequences(self.ids, self.starts[index], self.lengths[index])

    def lists(self, index: Any = slice(None)) -> list[list[int]]:
        """New lists of ids: all, or those at `index`."""
        starts = self.starts[index]
        stops = starts + self.lengths[index]
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        return [self.ids[start:stop].tolist() for start, stop in spans]

    def flat(self) -> np.ndarray:
        """The ids of all lists, concatenated."""
        return self.ids[ranges(self.starts, self.lengths)]

    def owners(self) -> np.ndarray:
        """The number of the list that each id of `flat()` is from."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def document_frequency(self, size: int, stems: np.ndarray | None = None) -> np.ndarray:
        """The number of lists that contain each id below `size`, int64 `(size,)`.

        Args:
            stems: Another id that each id is counted as, int `(size,)`, for words of one stem.

        >>> Sequences.of([[2, 2, 1], [2]]).document_frequency(4).tolist()
        [0, 1, 2, 0]
        """
        frequency = np.zeros(size, np.int64)
        for start in range(0, len(self), BLOCK):
            part = self.take(slice(start, start + BLOCK))
            ids = part.flat() if stems is None else stems[part.flat()]
            # A number for each pair of a list and an id, so that an id counts once per list.
            # In the example, the lists [0, 0, 0, 1] and the ids [2, 2, 1, 2] are these pairs:
            pairs = part.owners() * size + ids  # [2, 2, 1, 6]
            distinct_pairs = np.unique(pairs)  # [1, 2, 6]
            ids_once_per_list = distinct_pairs % size  # [1, 2, 2]
            frequency += np.bincount(ids_once_per_list, minlength=size)
        return frequency

    def equal(self, index: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Compares pairs of lists: bool of the shape of `index` and `other`.

        >>> sequences = Sequences.of([[4, 5], [6], [4, 5], [7]])
        >>> sequences.equal(np.array([0, 1, 1]), np.array([2, 3, 0])).tolist()
        [True, False, False]
        """
        # Only lists of the same length can be equal. Their ids are compared one by one.
        has_same_length = self.lengths[index] == self.lengths[other]
        first = self.take(index[has_same_length])
        second = self.take(other[has_same_length])
        is_different_id = first.flat() != second.flat()
        num_differences = np.bincount(first.owners(), is_different_id, minlength=len(first))
        is_equal = np.zeros(index.shape, bool)
        is_equal[has_same_length] = num_differences == 0
        return is_equal

    def lengths_at(self, index: npt.ArrayLike) -> np.ndarray:
        """The lengths of the lists at `index`, int64 of the same shape; 0 where it is -1."""
        index = np.asarray(index)
        if not len(self.lengths):
            return np.zeros_like(index)
        return np.where(index >= 0, self.lengths[index], 0).astype(np.int64)

    def width(self, index: npt.ArrayLike, limit: int | None = None, multiple: int = 1) -> int:
        """Length of the longest list at `index`: 1 to `limit`, rounded up to `multiple`."""
        longest = int(self.lengths_at(index).max(initial=1))
        if limit is not None:
            longest = min(longest, limit)
        return round_up(longest, multiple)

    def padded(
        self,
        index: npt.ArrayLike,
        width: int,
        limit: int | None = None,
        keep: Literal["first", "last"] = "last",
    ) -> np.ndarray:
        """Pads the lists at `index` with 0.

        Args:
            index: Numbers of lists, int of any shape; -1 gives an empty list.
            width: Length of the padded lists.
            limit: The most ids that are taken of a list; `None`: `width`.
            keep: Whether the `"first"` or the `"last"` ids of a longer list are taken.

        Returns:
            int32 of the shape of `index`, then `width`.

        >>> Sequences.of([[4, 5, 6], [7]]).padded(np.array([0, 1, -1]), 2).tolist()
        [[5, 6], [7, 0], [0, 0]]
        >>> Sequences.of([[4, 5, 6], [7]]).padded([0, 1], 4, limit=2, keep="first").tolist()
        [[4, 5, 0, 0], [7, 0, 0, 0]]
        """
        index = np.asarray(index)
        if not len(self.ids):
            return np.zeros((*index.shape, width), np.int32)
        limit = width if limit is None else min(width, limit)
        # For -1 NumPy finds the start of the last list. It is not used, as 0 ids are taken.
        num_taken = np.minimum(self.lengths_at(index), limit)
        start = self.starts[index]
        if keep == "last":
            start = start + self.lengths[index] - num_taken

        # The place of each id in `self.ids`; padding takes any id, which becomes 0.
        column = np.arange(width)
        is_real = column < num_taken[..., None]
        place = np.where(is_real, start[..., None] + column, 0)
        return np.where(is_real, self.ids[place], 0).astype(np.int32)


def stack(lists: Any) -> np.ndarray:
    """Lists of ids as one int32 array `(lists, longest)`, padded with 0 at the end; at least one
    column.

    Raises a `ValueError` if the array would be large and nearly all padding.

    >>> stack([[5], [], [7, 8]]).tolist()
    [[5, 0], [0, 0], [7, 8]]
    """
    sequences = Sequences.of(lists)
    numbers = np.arange(len(lists))
    width = sequences.width(numbers)
    if len(lists) * width > SMALL_ARRAY + CELLS_PER_ID * sequences.lengths.sum():
        raise ValueError(f"{len(lists):,} lists, one of length {width:,}, would be mostly padding")
    return sequences.padded(numbers, width)


def round_up(n: int, multiple: int) -> int:
    """The smallest multiple that is not below `n`."""
    return -(-n // multiple) * multiple


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenates the ranges of `length` integers from each start.

    >>> ranges(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    num_before = np.cumsum(lengths) - lengths  # integers in earlier ranges: [0, 2]
    place = np.arange(lengths.sum())  # [0, 1, 2, 3, 4]
    shift = np.repeat(starts - num_before, lengths)  # [5, 5, -1, -1, -1]
    return place + shift
