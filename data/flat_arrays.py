"""Arrays of one dimension in `.npy` files: written while they grow, read block by block, or mapped into memory."""

import os
import pathlib

import numpy as np

from base.files import UserError

BLOCK = 2**20
"""Items that are read at once."""


class GrowingArray:
    """An array that grows in a file; nothing of it stays in memory.

    Args:
        path: The `.npy` file, whole after `close`.
        dtype: Of whole numbers.
    """

    def __init__(self, path, dtype):
        self._dtype, self._length = np.dtype(dtype), 0
        self._file = open(path, "wb")
        self._write_header()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __len__(self):
        return self._length

    def write(self, values):
        """Adds an array to the file."""
        np.asarray(values, self._dtype).tofile(self._file)
        self._length += len(values)

    def close(self):
        """Writes how long the array became."""
        if not self._file.closed:
            self._file.seek(0)
            self._write_header()
            self._file.close()

    def _write_header(self):
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)  # has room for any length


def read_header(file):
    """Shape and dtype of the array in an open `.npy` file, which then stands at the first item.

    Raises:
        Exception: of any kind, where it is another file.
    """
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = readers[np.lib.format.read_magic(file)](file)
    return shape, dtype


class StoredArray:
    """An array in a file, of which parts are read; memory that is mapped would count as used, this does not.

    Args:
        path: A `.npy` file of whole numbers.

    Raises:
        UserError: where it is missing or another file.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        try:
            with open(self.path, "rb") as file:
                shape, self.dtype = read_header(file)
                self._offset, bytes_there = file.tell(), os.fstat(file.fileno()).st_size
            if len(shape) != 1 or self.dtype.kind not in "iu":
                raise ValueError(f"{self.dtype} {shape}"[:60])
            if not 0 <= shape[0] * self.dtype.itemsize <= bytes_there - self._offset:
                raise ValueError(f"{shape[0]} numbers in {bytes_there} bytes"[:60])
        except OSError as error:
            raise UserError(f"{path}: expected an array. Received: {error.strerror}") from error
        except Exception as error:  # a damaged header can make its readers raise anything
            raise UserError(
                f"{path}: expected an array of whole numbers in one dimension. Received: {str(error)[:100]}"
            ) from error
        self._length = shape[0]

    def __len__(self):
        return self._length

    def mapped(self):
        """The array, mapped into memory: the system reads what is touched, and may forget it again."""
        return np.memmap(self.path, self.dtype, "r", self._offset, (self._length,)).view(np.ndarray)

    def read(self, start, stop):
        """The items from `start` to `stop` as an array of their own."""
        count = max(0, min(stop, len(self)) - start)
        return np.fromfile(self.path, self.dtype, count, offset=self._offset + start * self.dtype.itemsize)

    def blocks(self, size=None):
        """All items in order, `size` (or `BLOCK`) at a time: yields the place of the first of them, and an array."""
        size = size or BLOCK
        for start in range(0, len(self), size):
            yield start, self.read(start, start + size)


def first_occurrences(hashes, part=2**22):
    """Which items of a stored array did not occur before.

    Args:
        hashes: A `StoredArray` whose values are spread evenly.
        part: About how many items are sorted at once.

    Returns:
        bool `(len(hashes),)`.
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


def smallest_type(maximum):
    """The smaller of uint16 and uint32 that holds a number.

    >>> smallest_type(65535).name, smallest_type(65536).name
    ('uint16', 'uint32')
    """
    return np.dtype(np.uint16 if maximum < 2**16 else np.uint32)
