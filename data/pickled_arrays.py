"""NumPy's constructors, as `data.pickles` calls them: arrays and numbers from untrusted files.

A pickle describes a dtype or an array in two steps: a call that makes it, then its state. The calls
are those of `CONSTRUCTORS`, the states are set by `DType.set_state` and `fill_array`.
"""

import math
import pickle
import re
from typing import Any

import numpy as np


class DType:
    """The dtype of a number. Its state sets the byte order."""

    def __init__(self, name: Any, align: Any = False, copy: Any = False) -> None:
        if type(name) is not str or not re.fullmatch("[biuf][0-9]{1,2}", name):
            raise pickle.UnpicklingError("an array of anything but numbers")
        self.numpy_dtype = np.dtype(name)

    def set_state(self, state: tuple) -> None:
        """Sets the byte order.

        Args:
            state: `(version, order, subarray, names, fields, ...)`. The last three are `None` for
                numbers; a structured dtype has others.
        """
        _, order, *structure = state[:5]
        if order not in ("<", ">", "=", "|") or structure != [None, None, None]:
            raise pickle.UnpicklingError("a structured dtype")
        self.numpy_dtype = self.numpy_dtype.newbyteorder(order)


def _empty_array(*ignored):
    """For `ndarray((0,), "b")` and `_reconstruct(ndarray, (0,), "b")`, which make an empty array.

    A forged file may give a huge shape here, so the arguments are ignored; `fill_array` sets the
    shape.
    """
    return np.zeros(0, np.int8)


def fill_array(array: Any, state: tuple) -> None:
    """Gives an empty array its shape, dtype and content.

    Args:
        state: `(version, shape, dtype, is_fortran, data)`.
    """
    _, shape, dtype, is_fortran, data = state
    content = _array_bytes(data, dtype, shape)
    array.__setstate__((1, shape, dtype.numpy_dtype, bool(is_fortran), content))


def _array_from_buffer(data, dtype, shape, order):
    """For `_frombuffer`, which makes an array in one step in protocol 5."""
    content = _array_bytes(data, dtype, shape)
    array = np.frombuffer(content, dtype.numpy_dtype).reshape(shape, order=order)
    # An array over bytes is read-only; a copy is not. "K" keeps the order of rows and columns.
    return array.copy(order="K")


def _scalar(dtype, data):
    """For `scalar`, a single number of NumPy."""
    content = _array_bytes(data, dtype, shape=())
    return np.frombuffer(content, dtype.numpy_dtype)[0]


def _array_bytes(data, dtype, shape):
    """Returns the bytes of an array, which must be exactly as many as its shape needs."""
    if type(data) is str:
        # The `str` of Python 2 is bytes, which the unpickler has decoded as latin-1.
        data = data.encode("latin1")
    if type(data) is not bytes or type(dtype) is not DType or type(shape) is not tuple:
        raise pickle.UnpicklingError("an array that is not made of bytes, a dtype and a shape")
    if not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        raise pickle.UnpicklingError("an array with sizes that are not 32-bit integers")
    if math.prod(shape) * dtype.numpy_dtype.itemsize != len(data):
        raise pickle.UnpicklingError(f"{len(data)} bytes for an array of another size")
    return data


def _encode(text, encoding):
    """For `_codecs.encode(text, "latin1")`, as Python 3 writes bytes in protocol 2."""
    if type(text) is not str or encoding != "latin1":
        raise pickle.UnpicklingError("bytes in an encoding other than latin1")
    return text.encode("latin1")


def _empty_bytes():
    """For `bytes()`, as Python 3 writes empty bytes in protocol 2.

    It takes no argument, because `bytes(10**12)` would take a terabyte.
    """
    return b""


CONSTRUCTORS = {
    "_codecs.encode": _encode,
    "builtins.bytes": _empty_bytes,
    "__builtin__.bytes": _empty_bytes,
    "numpy.dtype": DType,
    "numpy.ndarray": _empty_array,
    "numpy.core.multiarray._reconstruct": _empty_array,
    "numpy._core.multiarray._reconstruct": _empty_array,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
    "numpy.core.numeric._frombuffer": _array_from_buffer,
    "numpy._core.numeric._frombuffer": _array_from_buffer,
}
"""Names in files -> what is called instead. Names differ by the version of Python and NumPy."""
