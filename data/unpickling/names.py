"""The names that a pickle may use, and what replaces them: nothing that a file names is imported or called."""

import dataclasses
import math
import re
import reprlib
from collections.abc import Callable

import numpy as np

MAX_DEPTH = 32
"""Of containers within containers, and of an array's axes."""


class Refused(Exception):
    """The pickle contains other values or is incomplete; the message names the fault."""


class Forbidden(Refused):
    """The pickle names something that is not allowed."""


# === What may be on the stack beside values ===


@dataclasses.dataclass(frozen=True)
class Name:
    """A name that a file may use; `function` is what calling it does here."""

    function: Callable


class DType:
    """The dtype of a number, which takes one state: its byte order."""

    __slots__ = ("built", "dtype", "index")

    def __init__(self, dtype, built=False):
        self.dtype, self.built, self.index = dtype, built, None

    def build(self, state):
        _, order, *structure = state[:5]
        if self.built or structure != [None, None, None] or order not in ("<", ">", "=", "|"):
            raise Refused("a structured dtype")
        return DType(self.dtype.newbyteorder(order), built=True)


class EmptyArray:
    """An array before its state, for `ndarray((0,), "b")` and `_reconstruct(ndarray, (0,), "b")`."""

    __slots__ = ("index",)

    def __init__(self, *args):
        self.index = None

    def build(self, state):
        _, shape, dtype, fortran, data = state
        return _array(_bytes(data), dtype, shape, "F" if fortran else "C")


class Arguments(tuple):
    """A tuple with a name or a dtype in it."""

    __slots__ = ()

    def __init__(self, items):
        if not PLAIN | {Name, DType} >= set(map(type, items)):
            raise Refused("a tuple of names within a tuple")


INTERNAL = frozenset({Name, DType, EmptyArray, Arguments})
SCALARS = frozenset({np.dtype(code).type for code in "?bhilqBHILQefdg"})
CONTAINERS = frozenset({list, tuple, dict})
PLAIN = CONTAINERS | SCALARS | {type(None), bool, int, float, str, bytes, np.ndarray}


# === What names stand for ===


def _dtype(name, align=False, copy=False):
    if type(name) is not str or not re.fullmatch("[biuf][0-9]{1,2}", name):
        raise Refused(f"an array of dtype {reprlib.repr(name)}")
    return DType(np.dtype(name))


def _array(data, dtype, shape, order, axes=None):
    if not (type(data) is bytes and type(dtype) is DType and type(shape) is tuple and order in ("C", "F", "K")):
        raise Refused("an array that is not made of bytes, a dtype and a shape")
    if len(shape) > MAX_DEPTH or not all(type(size) is int and 0 <= size < 2**48 for size in shape):
        raise Refused(f"an array of shape {reprlib.repr(shape)}")
    itemsize = dtype.dtype.itemsize
    if math.prod(shape) * itemsize != len(data) or math.prod(max(size, 1) for size in shape) * itemsize >= 2**62:
        raise Refused(f"{len(data)} bytes for an array of shape {reprlib.repr(shape)}, {dtype.dtype}")
    array = np.frombuffer(data, dtype.dtype)
    if order == "K":
        if type(axes) is not tuple or sorted(axes) != list(range(len(shape))):
            raise Refused(f"an order of axes {reprlib.repr(axes)}")
        return array.reshape(shape).transpose(axes).copy(order="K")
    return array.reshape(shape, order=order).copy(order="K")


def _scalar(dtype, data):
    return _array(_bytes(data), dtype, (), "C")[()]


def _bytes(data):
    """Bytes, which Python 2 wrote as text."""
    return data.encode("latin1") if type(data) is str else data


def _encode(text, encoding):
    """The form of bytes that Python 3 writes by protocol 2."""
    if type(text) is not str or encoding != "latin1":
        raise Refused(f"bytes in encoding {reprlib.repr(encoding)}")
    return text.encode("latin1")


def _no_bytes(*args):
    """The form of empty bytes that Python 3 writes by protocol 2; `bytes(10**12)` would allocate them."""
    if args:
        raise Refused("bytes made from something else")
    return b""


NAMES = {
    ("_codecs", "encode"): Name(_encode),
    ("numpy", "dtype"): Name(_dtype),
    ("numpy", "ndarray"): Name(EmptyArray),
    ("builtins", "bytes"): Name(_no_bytes),
    ("__builtin__", "bytes"): Name(_no_bytes),
}
"""`(module, name)` as files name it -> what replaces it."""
for core in ("numpy.core", "numpy._core"):
    NAMES[f"{core}.multiarray", "_reconstruct"] = Name(EmptyArray)
    NAMES[f"{core}.multiarray", "scalar"] = Name(_scalar)
    NAMES[f"{core}.numeric", "_frombuffer"] = Name(_array)
