"""Pickles, the file format of DAM's release: untrusted when read, written in the release's
protocol.
"""

import gc
import pathlib
import pickle

import numpy as np

from colloquy.base.files import UserError
from colloquy.data.text_files import in_one_line, readable
from colloquy.data.unpickling import Forbidden, Machine, Refused

ALLOWED = "lists, tuples, dicts, numbers, strings and NumPy arrays of numbers"


def load(path):
    """Reads a pickle of plain values, see `ALLOWED`, of any protocol; anything else is a
    `UserError`.

    Nothing that the file names is imported or called; depth, number and size of the values are
    bounded by the size of the file. Text of Python 2 is read as latin-1:
    `text.encode("latin1").decode("utf-8")` gives its characters.
    """
    path = pathlib.Path(path)
    with readable(path, "a pickle"):
        data = path.read_bytes()
    if not data:
        raise UserError(f"{path}: expected a pickle. Received: an empty file")
    collecting = gc.isenabled()
    gc.disable()  # else it would look through millions of lists again and again
    try:
        return Machine(data).run()
    except Forbidden as error:
        raise UserError(f"{path}: refused {error} in it; allowed are {ALLOWED}") from error
    except Exception as error:  # bytes that are no pickle can raise almost any
        reason = error if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
        raise UserError(
            f"{path}: expected a whole pickle of {ALLOWED}. Received: {in_one_line(reason)}"
        ) from error
    finally:
        if collecting:
            gc.enable()


def dump(value, file):
    """Pickles plain values, see `ALLOWED`, into a binary file by protocol 2, which Python 2 can
    read.

    Arrays are written under names that every version of NumPy knows; NumPy 2 would write
    `numpy._core`, which NumPy 1 lacks. A NumPy scalar, or an array of anything but numbers, is a
    `TypeError`.

    >>> import io
    >>> file = io.BytesIO()
    >>> dump({"c": [[5, 6, 1]], "vectors": np.zeros((2, 3), np.float32)}, file)
    >>> b"numpy._core" in file.getvalue()
    False
    """
    _Pickler(file, protocol=2).dump(value)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            return np.ndarray, ((0,), "b"), value.__reduce__()[2]
        if isinstance(value, np.ndarray | np.generic):
            raise TypeError(
                f"Plain numbers or arrays of numbers are needed. Received: {type(value)}, dtype={value.dtype}"
            )
        return NotImplemented
