"""One-dimensional arrays in `.npy` files: written while they grow, and mapped.

A corpus becomes texts of word ids, concatenated in a file; only its distinct words are in memory.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from colloquy.base.files import PathLike, UserError, in_one_line


class GrowingArray:
    """An array of integers that grows in a `.npy` file and occupies no memory.

    The file is complete after the `with` block.
    """

    def __init__(self, path: PathLike, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._file = open(path, "wb")
        self._write_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.seek(0)
        self._write_header()  # with the final length
        self._file.close()

    def write(self, values: Sequence[int] | np.ndarray) -> None:
        np.asarray(values, self._dtype).tofile(self._file)
        self._length += len(values)

    def _write_header(self):
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)  # has room for any length


def map_array(path: PathLike) -> np.ndarray:
    """The array of integers in a `.npy` file as a read-only memory map."""
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if mapped.ndim != 1 or mapped.dtype.kind not in "iu":
            raise ValueError(f"{mapped.dtype} {mapped.shape}"[:60])
        return mapped.view(np.ndarray)
    except Exception as error:  # a damaged header can make its readers raise anything
        expected = "expected an array of whole numbers in one dimension"
        raise UserError(f"{path}: {expected}. Received: {in_one_line(error, 200)}") from error
