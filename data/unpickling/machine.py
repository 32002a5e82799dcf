"""A pickle machine that knows numbers, texts, lists, tuples, dicts and arrays of numbers, and nothing else.

Python's own unpickler calls what a file names, takes states for any object, recurses as deep as a file says and sizes
its memo by an index in the file; a list of allowed names bounds none of that. This machine executes the opcodes itself:
it creates values of a few types, calls only the functions of `NAMES`, and checks bounds before it builds.

    depth        containers within containers, `MAX_DEPTH`; marks, twice that
    memory       ten times the file and 200 MB, for the file, all values, the stack and the memo
    references   written out, at most 64 times the file, and four million values
    arrays       exactly the bytes that their shape needs, which are in the file

A container that is referred to again is complete: nothing is added to it later, so nothing can contain itself.
"""

import itertools
import sys

from data.unpickling.names import (
    CONTAINERS,
    INTERNAL,
    MAX_DEPTH,
    NAMES,
    PLAIN,
    Arguments,
    DType,
    EmptyArray,
    Forbidden,
    Name,
    Refused,
)

STOP = ord(".")
TOO_DEEP = f"lists, tuples and dicts nested deeper than {MAX_DEPTH}"
SLOT, PAIR, NESTED = 9, 120, 300
"""Bytes of a place in a growing list, of a pair in a growing dict, and of the notes on a container of containers."""
SMALL = {number: number for number in range(2**16)}
"""One object for each small number; word ids would take 32 bytes each."""
_ABSENT = object()


class Machine:
    """Executes one pickle, bytes."""

    def __init__(self, data):
        self.data = data
        self.stack, self.marked, self.memo = [], [], []
        """Values above the last mark, the stacks below it, and what PUT remembered."""
        self.nested = {}
        """id of a container that holds containers -> itself, its depth, the number of its values when written out."""
        self.fetched = set()
        """ids of the lists and dicts that were fetched from the memo: these are complete."""
        self.referenced = 0
        self.free = 9 * len(data) + 180 * 10**6
        """Bytes that may still be taken."""

    def run(self, opcodes):
        """The value of the pickle by `OPCODES`; `Refused` if it holds anything but plain values.

        Any other exception means that it is no pickle.
        """
        data, at = self.data, 0
        while data[at] != STOP:
            opcode = opcodes.get(data[at])
            if opcode is None:
                raise Refused(f"an opcode {data[at : at + 1]!r} that plain values do not need")
            read, execute = opcode
            if read:
                argument, at = read(data, at + 1)
                execute(self, argument)
            else:
                at += 1
                execute(self)
        if len(self.stack) != 1 or self.marked or type(self.stack[0]) not in PLAIN:
            raise Refused("no value at its end")
        return self.stack[0]

    # === The stack ===

    def take(self, size):
        """Counts bytes of memory before they are taken."""
        self.free -= size
        if self.free < 0:
            raise Refused(f"values that need more memory than 10 times its {len(self.data):,} bytes and 200 MB")

    def make(self, value):
        """Pushes a new value."""
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
        if len(self.marked) == 2 * MAX_DEPTH:
            raise Refused(TOO_DEEP)
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
        """Adds integers; those beyond `SMALL` take `size` bytes each."""
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

    def new_list(self, items):
        self.make([])
        self.extend(items)

    def new_dict(self, items):
        self.make({})
        self.update(items)

    def new_tuple(self, items):
        if INTERNAL.isdisjoint(map(type, items)):
            value = tuple(items)
            self.hold(value, items, 1, 0)
        else:
            value = Arguments(items)
        self.make(value)

    # === Names and arrays ===

    def name(self, name):
        if name not in NAMES:
            raise Forbidden(f"the name {'.'.join(name)[:100]!r}")
        self.push(NAMES[name])

    def reduce(self):
        name, arguments = self.pop(2)
        if type(name) is not Name or not isinstance(arguments, tuple):
            raise Refused("a call of something else")
        self.make(name.function(*arguments))

    def build(self):
        value, state = self.pop(2)
        if type(value) not in (DType, EmptyArray) or not isinstance(state, tuple):
            raise Refused("a state of something that has none")
        built = value.build(state)
        self.make(built)
        if value.index is not None:
            self.memo[value.index] = built

    # === The memo ===

    def put(self, index):
        missing = index + 1 - len(self.memo)
        if missing > 0:
            self.take(SLOT * missing)
            self.memo.extend(itertools.repeat(_ABSENT, missing))  # without a second list
        value = self.memo[index] = self.stack[-1]
        if type(value) in (DType, EmptyArray):
            value.index = index

    def get(self, index):
        value = self.memo[index] if index < len(self.memo) else _ABSENT
        if value is _ABSENT:
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
