"""A pickle machine that knows numbers, texts, lists, tuples, dicts and arrays of numbers, and
nothing else.

Python's own unpickler calls what a file names, takes states for any object, recurses as deep as a
file says and sizes its memo by an index in the file; a list of allowed names bounds none of that.
This machine executes the opcodes itself: it creates values of a few types, calls only the functions
of `NAMES`, and checks bounds before it builds. The arguments of opcodes are read by Python's
disassembler of pickles, `pickletools`.

    depth        containers within containers, `MAX_DEPTH`; marks, twice that
    memory       ten times the file and 200 MB, for the file, all values, the stack and the memo
    references   written out, at most 64 times the file, and four million values
    arrays       exactly the bytes that their shape needs, which are in the file

A container that is referred to again is complete: nothing is added to it later, so nothing can
contain itself.
"""

import codecs
import io
import itertools
import math
import pickle
import pickletools
import re
import reprlib
import sys
import types

import numpy as np

MAX_DEPTH = 32  # of containers within containers, and of an array's axes
TOO_DEEP = f"lists, tuples and dicts nested deeper than {MAX_DEPTH}"
SLOT, PAIR, NESTED = 9, 120, 300
"""Bytes of a place in a growing list, of a pair in a growing dict, and of the notes on a container
of containers.
"""
# one object for each; word ids would take 32 bytes each
SMALL = {number: number for number in range(2**16)}
INTS = re.compile(rb"((?:K.|M..|J....){1,1000}+)e", re.DOTALL)
"""Integers up to APPENDS: nearly all of a dataset, and the only values that Python's own unpickler
makes.
"""
TEXT_INTS = re.compile(rb"(?:aI(?:-?[1-9][0-9]{0,8}|0)\n){1,1000}+")
"""The same in protocol 0, `aI6 aI7` on lines, after the first integer."""


class Refused(Exception):
    """The pickle contains other values or is incomplete; the message names the fault."""


class Forbidden(Refused):
    """The pickle names something that is not allowed."""


# === What may be on the stack beside values: functions of `NAMES`, and these ===


class DType:
    """The dtype of a number; its state is its byte order."""

    __slots__ = ("dtype",)

    def __init__(self, dtype):
        self.dtype = dtype


class EmptyArray:
    """An array before its state, with its place in the memo."""

    __slots__ = ("index",)


class Arguments(tuple):
    """A tuple with a name or a dtype in it."""

    __slots__ = ()


NAME = types.FunctionType
SCALARS = frozenset({np.dtype(code).type for code in "?bhilqBHILQefdg"})
CONTAINERS = frozenset({list, tuple, dict})
PLAIN = CONTAINERS | SCALARS | {type(None), bool, int, float, str, bytes, np.ndarray}


# === What names stand for ===


def _dtype(name, align=False, copy=False):
    if type(name) is not str or not re.fullmatch("[biuf][0-9]{1,2}", name):
        raise Refused(f"an array of dtype {reprlib.repr(name)}")
    return DType(np.dtype(name))


def _empty_array(*args):
    """For `ndarray((0,), "b")` and `_reconstruct(ndarray, (0,), "b")`."""
    return EmptyArray()


def _array(data, dtype, shape, order, axes=None):
    data = data.encode("latin1") if type(data) is str else data  # bytes of Python 2
    if not (
        type(data) is bytes
        and type(dtype) is DType
        and type(shape) is tuple
        and order in ("C", "F", "K")
    ):
        raise Refused("an array that is not made of bytes, a dtype and a shape")
    if len(shape) > MAX_DEPTH or not all(type(size) is int and 0 <= size < 2**48 for size in shape):
        raise Refused(f"an array of shape {reprlib.repr(shape)}")
    itemsize = dtype.dtype.itemsize
    if (
        math.prod(shape) * itemsize != len(data)
        or math.prod(max(size, 1) for size in shape) * itemsize >= 2**62
    ):
        raise Refused(
            f"{len(data)} bytes for an array of shape {reprlib.repr(shape)}, {dtype.dtype}"
        )
    array = np.frombuffer(data, dtype.dtype)
    if order != "K":
        return array.reshape(shape, order=order).copy(order="K")
    if type(axes) is not tuple or sorted(axes) != list(range(len(shape))):
        raise Refused(f"an order of axes {reprlib.repr(axes)}")
    return array.reshape(shape).transpose(axes).copy(order="K")


def _encode(text, encoding):
    """The form of bytes that Python 3 writes by protocol 2."""
    if type(text) is not str or encoding != "latin1":
        raise Refused(f"bytes in encoding {reprlib.repr(encoding)}")
    return text.encode("latin1")


def _no_bytes(*args):
    """The form of empty bytes that Python 3 writes by protocol 2; `bytes(10**12)` would allocate
    them.
    """
    if args:
        raise Refused("bytes made from something else")
    return b""


NAMES = {
    "_codecs encode": _encode,
    "numpy dtype": _dtype,
    "numpy ndarray": _empty_array,
    "builtins bytes": _no_bytes,
    "__builtin__ bytes": _no_bytes,
}
"""Module and name as files name them -> what replaces them."""
for core in ("numpy.core", "numpy._core"):
    NAMES[f"{core}.multiarray _reconstruct"] = _empty_array
    NAMES[f"{core}.multiarray scalar"] = lambda dtype, data: _array(data, dtype, (), "C")[()]
    NAMES[f"{core}.numeric _frombuffer"] = _array


class Machine:
    """Executes one pickle, bytes."""

    def __init__(self, data):
        self.data, self.file = data, io.BytesIO(data)
        self.stack, self.marked = [], []  # values above the last mark, the stacks below it
        self.memo = []  # values that PUT remembered; `None`: nothing
        # id of a container of containers -> itself, its depth, its number of values when written
        # out
        self.nested = {}
        # ids of the lists and dicts that were fetched from the memo: these are complete
        self.fetched = set()
        self.referenced = 0
        self.free = 9 * len(data) + 180 * 10**6  # bytes that may still be taken

    def run(self):
        """The value of the pickle; `Refused` if it has other than plain values, any exception if it
        is no pickle.
        """
        file = self.file
        while (code := file.read(1)) != b".":
            if code not in OPCODES:
                raise Refused(
                    f"an opcode {code!r} that plain values do not need"
                    if code
                    else "an end in the middle"
                )
            read, execute = OPCODES[code]
            if read:
                execute(self, read(file))
            else:
                execute(self)
        if len(self.stack) != 1 or self.marked or type(self.stack[0]) not in PLAIN:
            raise Refused("no value at its end")
        return self.stack[0]

    # === The stack ===

    def take(self, size):
        """Counts bytes of memory before they are taken."""
        self.free -= size
        if self.free < 0:
            raise Refused(
                f"values that need more memory than 10 times its {len(self.data):,} bytes and 200 MB"
            )

    def make(self, value):
        if type(value) is str and not value.isascii():
            value.encode()  # no half of a surrogate pair
        self.take(sys.getsizeof(value) + 15 + 2 * SLOT)  # 15: rounded up by the allocator
        self.stack.append(value)

    def push(self, value):
        self.take(2 * SLOT)  # on the stack, and in a container later
        self.stack.append(value)

    def pop(self, count):
        if len(self.stack) < count:
            raise Refused(f"fewer than the {count} values that an opcode needs")
        items = self.stack[-count:]
        del self.stack[-count:]
        return items

    def mark(self):
        if ints := INTS.match(self.data, self.file.tell()):
            self.extend_ints(pickle.loads(b"](%be." % ints[1]), 32 * ints[1].count(b"J"))
            self.file.seek(ints.end())
        elif len(self.marked) == 2 * MAX_DEPTH:
            raise Refused(TOO_DEEP)
        else:
            self.marked.append(self.stack)
            self.stack = []

    def pop_to_mark(self):
        items, self.stack = self.stack, self.marked.pop()
        return items

    # === Containers ===

    def size(self, value):
        """Depth of a container and number of its values."""
        found = self.nested.get(id(value))
        return found[1:] if found else (1, len(value))

    def hold(self, container, items, depth, weight):
        """Checks the values that a container of a depth and weight gets."""
        kinds = set(map(type, items))
        if not kinds <= PLAIN:
            raise Refused("a name, a dtype or an array without numbers in a place of its own")
        weight += len(items)
        if not kinds.isdisjoint(CONTAINERS):
            for item in items:
                if type(item) in CONTAINERS:
                    inner, values = self.size(item)
                    depth, weight = max(depth, inner + 1), weight + values
        if depth > MAX_DEPTH:
            raise Refused(TOO_DEEP)
        if depth > 1:
            if id(container) not in self.nested:
                self.take(NESTED)
            self.nested[id(container)] = container, depth, weight

    def target(self, kind):
        """The list or dict on the stack that gets values."""
        value = self.stack[-1] if self.stack else None
        if type(value) is not kind:
            raise Refused(f"something added to what is no {kind.__name__}")
        if id(value) in self.fetched:
            raise Refused(f"a {kind.__name__} that takes more after it was referred to")
        return value

    def extend(self, items):
        target = self.target(list)
        self.hold(target, items, *self.size(target))
        target.extend(items)

    def extend_ints(self, ints, size):
        """Adds integers to a list; those that `SMALL` lacks take `size` bytes together."""
        target = self.target(list)
        self.take(SLOT * len(ints) + size)
        if id(target) in self.nested:
            self.hold(target, ints, *self.size(target))
        target.extend(map(SMALL.get, ints, ints))

    def update(self, items):
        target = self.target(dict)
        for key in items[::2]:
            if type(key) not in (str, bytes) and not (type(key) is int and -(2**31) <= key < 2**31):
                raise Refused(f"a key of type {type(key).__name__}")
        self.hold(target, items, *self.size(target))
        self.take(PAIR * len(items) // 2)
        target.update(zip(items[::2], items[1::2], strict=True))

    def new(self, value, fill):
        items = self.pop_to_mark()
        self.make(value)
        fill(items)

    def new_tuple(self, items):
        kinds = set(map(type, items))
        if kinds.isdisjoint({NAME, DType, EmptyArray, Arguments}):
            value = tuple(items)
            self.hold(value, items, 1, 0)
        elif kinds <= PLAIN | {NAME, DType}:
            value = Arguments(items)
        else:
            raise Refused("a tuple of names within a tuple")
        self.make(value)

    def text_int(self, number):
        """An integer or a truth value of protocol 0, with the integers that follow in the same
        list.
        """
        if type(number) is int and (more := TEXT_INTS.match(self.data, self.file.tell())):
            *ints, number = number, *map(int, more[0].replace(b"aI", b"").split())
            self.extend_ints(ints, 32 * len(ints))
            self.file.seek(more.end())
        self.make(number)

    # === Names and arrays ===

    def name(self, name):
        if name not in NAMES:
            raise Forbidden(f"the name {name.replace(' ', '.')[:100]!r}")
        self.push(NAMES[name])

    def stack_name(self):
        parts = self.pop(2)
        if set(map(type, parts)) != {str}:
            raise Refused("a name that is no text")
        self.name(" ".join(parts))

    def persistent(self, id=None):
        raise Forbidden("a persistent id")

    def reduce(self):
        function, arguments = self.pop(2)
        if type(function) is not NAME or not isinstance(arguments, tuple):
            raise Refused("a call of something else")
        self.make(function(*arguments))

    def build(self):
        value, state = self.pop(2)
        if type(value) not in (DType, EmptyArray) or not isinstance(state, tuple):
            raise Refused("a state of something that has none")
        if type(value) is DType:
            _, order, *structure = state[:5]
            if structure != [None, None, None] or order not in ("<", ">", "=", "|"):
                raise Refused("a structured dtype")
            value.dtype = value.dtype.newbyteorder(order)
            self.push(value)
        else:
            _, shape, dtype, fortran, data = state
            array = _array(data, dtype, shape, "F" if fortran else "C")
            self.make(array)
            if hasattr(value, "index"):
                self.memo[value.index] = array

    # === The memo ===

    def put(self, index):
        missing = index + 1 - len(self.memo)
        if missing > 0:
            self.take(SLOT * missing)
            self.memo.extend(itertools.repeat(None, missing))  # without a second list
        value = self.memo[index] = self.stack[-1]
        if type(value) is EmptyArray:
            value.index = index

    def get(self, index):
        value = self.memo[index] if index < len(self.memo) else None
        if value is None:
            raise Refused(f"a reference to entry {index} of a memo that has none")
        if type(value) in CONTAINERS:
            if type(value) is not tuple and id(value) not in self.fetched:
                self.take(PAIR)
                self.fetched.add(id(value))
            self.referenced += self.size(value)[1]
        elif type(value) in (str, bytes):
            self.referenced += len(value) // 8
        if self.referenced > 64 * len(self.data) + 2**22:
            raise Refused("references to more than 64 times what it holds")
        self.push(value)


# === Opcodes ===

EFFECTS = {
    "\x80\x95": lambda machine, argument: None,  # the protocol, and a frame
    "JLFG\x8aSTUVX\x8c\x8dBC\x8e": Machine.make,
    "\x96": lambda machine, array: machine.make(bytes(array)),  # the buffer of an array
    "I": Machine.text_int,
    "K": Machine.push,  # Python has one object for each
    "M": lambda machine, number: machine.push(SMALL[number]),
    "N": lambda machine: machine.push(None),
    "\x88": lambda machine: machine.push(True),
    "\x89": lambda machine: machine.push(False),
    "]": lambda machine: machine.make([]),
    "}": lambda machine: machine.make({}),
    ")": lambda machine: machine.push(()),
    "(": Machine.mark,
    "l": lambda machine: machine.new([], machine.extend),
    "d": lambda machine: machine.new({}, machine.update),
    "t": lambda machine: machine.new_tuple(machine.pop_to_mark()),
    "\x85": lambda machine: machine.new_tuple(machine.pop(1)),
    "\x86": lambda machine: machine.new_tuple(machine.pop(2)),
    "\x87": lambda machine: machine.new_tuple(machine.pop(3)),
    "a": lambda machine: machine.extend(machine.pop(1)),
    "e": lambda machine: machine.extend(machine.pop_to_mark()),
    "s": lambda machine: machine.update(machine.pop(2)),
    "u": lambda machine: machine.update(machine.pop_to_mark()),
    "c": Machine.name,
    "\x93": Machine.stack_name,
    "R": Machine.reduce,
    "b": Machine.build,
    "pqr": Machine.put,
    "\x94": lambda machine: machine.put(len(machine.memo)),
    "ghj": Machine.get,
    "PQ": Machine.persistent,
}
"""Opcodes that plain values need -> what they do with their argument, if they have one."""
READERS = {opcode.code: opcode.arg and opcode.arg.reader for opcode in pickletools.opcodes}
READERS["S"] = lambda file: codecs.escape_decode(pickletools.read_stringnl(file, decode=False))[
    0
].decode("latin1")
OPCODES = {
    code.encode("latin1"): (READERS[code], effect)
    for codes, effect in EFFECTS.items()
    for code in codes
}
"""Opcode -> the function that reads its argument from a file, or `None`; and its effect."""
