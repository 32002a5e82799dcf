"""Sequences of ids one behind the other, and the one padding."""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class Sequences:
    """Many lists of ids, stored end to end: list `i` is `ids[starts[i] : starts[i] + lengths[i]]`."""

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, lists):
        """Packs lists of ids, keeping their order."""
        lengths = np.fromiter((len(ids) for ids in lists), np.int64, len(lists))
        flat = np.fromiter((id for ids in lists for id in ids), np.int32, lengths.sum())
        return cls(flat, np.cumsum(lengths) - lengths, lengths)

    def lists(self):
        """The lists again."""
        return [part.tolist() for part in np.split(self.ids, self.starts[1:])][: len(self.starts)]

    @functools.cached_property
    def text_numbers(self):
        """A number for each list, the same for equal lists, int `(lists,)`."""
        numbers = {}
        return np.array([numbers.setdefault(tuple(ids), len(numbers)) for ids in self.lists()])

    def kept(self, index):
        """The lengths of the lists at `index`, of the same shape; 0 where it is -1."""
        return np.where(index >= 0, self.lengths[index], 0) if len(self.lengths) else np.zeros_like(index)

    def padded(self, index, width):
        """The lists at `index` as an array padded with 0: each keeps its last `width` ids.

        Args:
            index: Integer array of any shape; -1 gives an empty list.
            width: Size of the last axis of the result.

        Returns:
            int32 array of the shape of `index`, then `width`.

        >>> Sequences.of([[4, 5, 6], [7]]).padded(np.array([0, 1, -1]), 2).tolist()
        [[5, 6], [7, 0], [0, 0]]
        """
        if not len(self.lengths):
            return np.zeros((*index.shape, width), np.int32)
        length = np.minimum(self.kept(index), width)
        start = (self.starts + self.lengths)[index] - length
        position = np.arange(width)
        real = position < length[..., None]
        source = np.where(real, start[..., None] + position, 0)
        return np.where(real, self.ids[source] if len(self.ids) else 0, 0).astype(np.int32)
