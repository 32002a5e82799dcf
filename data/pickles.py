"""Pickles, the file format of DAM's release: read without trust, written so that it can read them.

A list of allowed names is not enough where NumPy is among them: `numpy.dtype` takes any state from
the file, also one that declares raw bytes to be object pointers, and then the array crashes the
process or runs what the file says. So each allowed name stands for a substitute, defined here, that
makes nothing but numbers.
"""

import pathlib
import pickle
import re

import numpy as np

from base.files import UserError

ALLOWED = "lists, tuples, dicts, sets, numbers, strings and NumPy arrays of numbers"


def load(path):
    """Unpickles a file of plain things: see `ALLOWED`.

    Nothing that the file names is imported or called. Text of Python 2 is read as latin-1, a byte a
    character: `text.encode("latin1").decode("utf-8")` gives what was meant. How much memory a file
    takes is not bounded.

    Args:
        path: The file; any pickle protocol, of Python 2 or 3.

    Returns:
        What was pickled. Arrays inside containers are of a trivial subclass of `numpy.ndarray`.

    Raises:
        UserError: where the file is missing, empty, cut off, or holds anything else.
    """
    path = pathlib.Path(path)
    try:
        with open(path, "rb") as file:
            if not file.read(1):
                raise UserError(f"{path}: expected a pickle. Received: an empty file")
            file.seek(0)
            value = _Unpickler(file, path).load()
    except OSError as error:
        raise UserError(f"{path}: expected a pickle. Received: {error.strerror}") from error
    except UserError:
        raise
    except Exception as error:  # a hostile or broken file can make the unpickler raise anything
        reason = f"{type(error).__name__}: {error}"[:200]
        raise UserError(f"{path}: expected a whole pickle of {ALLOWED}. Received: {reason}") from error
    return value.view(np.ndarray) if isinstance(value, _Array) else value


def dump(value, file):
    """Pickles plain things, see `ALLOWED`, by protocol 2, which Python 2 can read.

    Arrays are written under names that every version of NumPy knows; NumPy 2 by itself would name
    `numpy._core`, which NumPy 1 has not.

    Args:
        value: What to pickle. NumPy scalars are refused: `int(...)` or `float(...)` them.
        file: Binary file to write to.

    Raises:
        TypeError: on a NumPy scalar, or an array of other things than numbers.

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


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, path):
        super().__init__(file, encoding="latin1")
        self.path = path

    def find_class(self, module, name):
        if (module, name) not in SUBSTITUTES:
            found = f"{module}.{name}"[:100]
            raise UserError(f"{self.path}: refused the name {found!r} in it; allowed are {ALLOWED}")
        return SUBSTITUTES[module, name]

    def persistent_load(self, pid):
        raise UserError(f"{self.path}: refused a persistent id in it; allowed are {ALLOWED}")


# === Substitutes ===


class _Function:
    """A function that a pickle can call but not set attributes of."""

    __slots__ = ("_function",)

    def __init__(self, function):
        self._function = function

    def __call__(self, *args):
        return self._function(*args)

    def __setstate__(self, state):
        raise pickle.UnpicklingError("a function with a state")


class _DType:
    """Stands for the `numpy.dtype` of a number: the file gives its name and byte order only."""

    __slots__ = ("dtype",)

    def __init__(self, name, align=False, copy=False):
        if not re.fullmatch("[biufc][0-9]{1,2}", name):
            raise pickle.UnpicklingError(f"an array of dtype {name!r}"[:100])
        self.dtype = np.dtype(name)

    def __setstate__(self, state):
        _, order, *structure = state[:5]
        if structure != [None, None, None]:
            raise pickle.UnpicklingError("a structured dtype")
        self.dtype = self.dtype.newbyteorder(order)


class _Array(np.ndarray):
    """An array that only takes a state with a `_DType` and as many bytes as its shape needs."""

    __slots__ = ()

    def __setstate__(self, state):
        _, shape, dtype, fortran, data = state
        data = data.encode("latin1") if isinstance(data, str) else bytes(memoryview(data))
        super().__setstate__((1, shape, dtype.dtype, bool(fortran), data))


def _empty_array(*args):
    """For `ndarray((0,), "b")` and `_reconstruct(ndarray, (0,), "b")`: the state follows."""
    return np.ndarray.__new__(_Array, (0,), "b")


def _scalar(dtype, data):
    data = data.encode("latin1") if isinstance(data, str) else data
    return np.frombuffer(data, dtype.dtype, count=1)[0]


def _from_buffer(data, dtype, shape, order, axis_order=None):
    return np.frombuffer(data, dtype.dtype).reshape(shape, order=order)


def _encode(text, encoding):
    """How Python 3 writes bytes by protocol 2."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in encoding {encoding!r}"[:100])
    return text.encode("latin1")


def _no_bytes(*args):
    """How Python 3 writes empty bytes by protocol 2; `bytes(10**12)` would allocate them."""
    if args:
        raise pickle.UnpicklingError("bytes made from something else")
    return b""


SUBSTITUTES = {
    ("_codecs", "encode"): _Function(_encode),
    ("numpy", "dtype"): _Function(_DType),
    ("numpy", "ndarray"): _Function(_empty_array),
    **{
        (module, name): substitute
        for core in ("numpy.core", "numpy._core")
        for module, name, substitute in (
            (f"{core}.multiarray", "_reconstruct", _Function(_empty_array)),
            (f"{core}.multiarray", "scalar", _Function(_scalar)),
            (f"{core}.numeric", "_frombuffer", _Function(_from_buffer)),
        )
    },
    **{
        (module, name): substitute
        for module in ("builtins", "__builtin__")  # of Python 3 and 2
        for name, substitute in (
            ("set", set),
            ("frozenset", frozenset),
            ("complex", complex),
            ("bytes", _Function(_no_bytes)),
        )
    },
}
"""`(module, name)` as files name it -> what takes its place."""
