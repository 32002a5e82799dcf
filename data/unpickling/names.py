"""What a pickle may name, and what takes its place: nothing that a file names is imported or called."""

import math
import re
import reprlib

import numpy as np

MAX_DEPTH = 32
"""Of containers within containers, and of an array's axes."""


class Refused(Exception):
    """The pickle holds something else, or is not whole; the message says what."""


class Forbidden(Refused):
    """The pickle names something that is not allowed."""


# === What stands on the stack beside values ===


class Name:
    """A name that a file may use; `function` is what calling it does here."""

    __slots__ = ("function",)

    def __init__(self, function):
        self.function = function


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
        data = data.encode("latin1") if type(data) is str else data
        return _array(data, dtype, shape, "F" if fortran else "C")


class Arguments(tuple):
    """A tuple with a name or a dtype in it."""

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
    data = data.encode("latin1") if type(data) is str else data
    return _array(data, dtype, (), "C")[()]


def _encode(text, encoding):
    """How Python 3 writes bytes by protocol 2."""
    if type(text) is not str or encoding != "latin1":
        raise Refused(f"bytes in encoding {reprlib.repr(encoding)}")
    return text.encode("latin1")


def _no_bytes(*args):
    """How Python 3 writes empty bytes by protocol 2; `bytes(10**12)` would allocate them."""
    if args:
        raise Refused("bytes made from something else")
    return b""


NAMES = {
    ("_codecs", "encode"): Name(_encode),
    ("numpy", "dtype"): Name(_dtype),
    ("numpy", "ndarray"): Name(EmptyArray),
    ("builtins", "bytes"): Name(_no_bytes),
    ("__builtin__", "bytes"): Name(_no_bytes),
    **{
        (f"{core}.{module}", name): Name(function)
        for core in ("numpy.core", "numpy._core")
        for module, name, function in (
            ("multiarray", "_reconstruct", EmptyArray),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _array),
        )
    },
}
"""`(module, name)` as files name it -> what takes its place."""
