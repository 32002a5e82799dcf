"""One-dimensional arrays in `.npy` files: written while they grow, read block by block, or mapped
into memory.

A corpus becomes texts of word ids, concatenated in a file; only its distinct words are in memory.
"""

import collections
import pathlib

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.sequences import ranges
from colloquy.data.text_files import in_one_line

BLOCK = 2**20  # items read at once


class GrowingArray:
    """An array of integers that grows in a `.npy` file, complete after the `with` block; it
    occupies no memory.
    """

    def __init__(self, path, dtype):
        self._dtype, self._length = np.dtype(dtype), 0
        self._file = open(path, "wb")
        self._write_header()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.seek(0)
        self._write_header()  # with the final length
        self._file.close()

    def __len__(self):
        return self._length

    def write(self, values):
        np.asarray(values, self._dtype).tofile(self._file)
        self._length += len(values)

    def _write_header(self):
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)  # has room for any length


class StoredArray:
    """An array of integers in a `.npy` file, read in parts, which do not count as memory as a map
    does.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        try:
            self._map = np.load(self.path, mmap_mode="r", allow_pickle=False)
            if self._map.ndim != 1 or self._map.dtype.kind not in "iu":
                raise ValueError(f"{self._map.dtype} {self._map.shape}"[:60])
        except OSError as error:
            raise UserError(f"{path}: expected an array. Received: {error.strerror}") from error
        except Exception as error:  # a damaged header can make its readers raise anything
            expected = "expected an array of whole numbers in one dimension"
            raise UserError(f"{path}: {expected}. Received: {in_one_line(error)}") from error
        self.dtype = self._map.dtype

    def __len__(self):
        return len(self._map)

    def mapped(self):
        """The array as a read-only memory map."""
        return self._map.view(np.ndarray)

    def read(self, start, stop):
        """The items from `start` to `stop`, in memory."""
        count = max(0, min(stop, len(self)) - start)
        return np.fromfile(
            self.path, self.dtype, count, offset=self._map.offset + start * self.dtype.itemsize
        )

    def blocks(self, size=None):
        """Yields `(start, items)` for all items in order, `size` (default: `BLOCK`) at a time."""
        size = size or BLOCK
        for start in range(0, len(self), size):
            yield start, self.read(start, start + size)


def flatten(numbers, starts, lengths):
    """The ids of texts, concatenated: from a `StoredArray` of all ids those at ascending `starts`,
    int `(texts,)`.
    """
    if not len(starts):
        return np.zeros(0, numbers.dtype)
    around = numbers.read(starts[0], starts[-1] + lengths[-1])
    return around[ranges(starts - starts[0], lengths)]


def first_occurrences(hashes, part=2**22):
    """Marks the items that did not occur before, bool `(len(hashes),)`.

    About `part` of the evenly distributed values, a `StoredArray`, are sorted at once.
    """
    first, parts = np.zeros(len(hashes), bool), -(-len(hashes) // part)
    for number in range(parts):
        places, values = [], []
        for start, block in hashes.blocks():
            here = np.flatnonzero(block % parts == number)
            places.append(start + here)
            values.append(block[here])
        found = np.unique(np.concatenate(values), return_index=True)[1]
        first[np.concatenate(places)[found]] = True
    return first


def numbering():
    """A dictionary that assigns consecutive numbers to new keys.

    >>> numbers = numbering()
    >>> [numbers[word] for word in "a b a c".split()], list(numbers)
    ([0, 1, 0, 2], ['a', 'b', 'c'])
    """
    numbers = collections.defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers
