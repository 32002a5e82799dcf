"""A pickle machine that knows numbers, texts, lists, tuples, dicts and arrays of numbers, and nothing else.

Python's own unpickler calls what a file names, takes states for any object, recurses as deep as a file says and sizes
its memo by an index in the file; a list of allowed names bounds none of that. This machine executes the opcodes itself:
it makes values of a few types, never calls anything but the functions of `NAMES`, and bounds before it builds.

    depth        containers within containers, `MAX_DEPTH`; marks, twice that
    containers   one for every 4 bytes of the file, and half a million
    memo         as many entries as the file has bytes
    references   what they stand for, written out, may be 64 times the file, and four million values
    arrays       exactly the bytes that their shape needs, which are in the file

A container that is referred to again is complete: nothing is added to it later, so nothing can hold itself.
"""

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
_ABSENT = object()


class Machine:
    """Executes one pickle.

    Args:
        data: Bytes.
    """

    def __init__(self, data):
        self.data = data
        self.stack, self.marks, self.memo = [], [], []
        self.nested = {}
        """id of a container that holds containers -> itself, its depth, how many values it is when written out."""
        self.fetched = set()
        """ids of the lists and dicts that the memo gave again: these are complete."""
        self.containers = self.referenced = 0

    def run(self, opcodes):
        """The value of the pickle.

        Args:
            opcodes: For each byte, a function `(machine, place after it) -> place of the next opcode`.

        Raises:
            Refused: where it holds anything but plain values; any other exception means that it is no pickle.
        """
        data, at = self.data, 0
        while data[at] != STOP:
            at = opcodes[data[at]](self, at + 1)
        if len(self.stack) != 1 or self.marks or type(self.stack[0]) not in PLAIN:
            raise Refused("no value at its end")
        return self.stack[0]

    # === Containers ===

    def new(self, value):
        self.containers += 1
        if self.containers > len(self.data) // 4 + 2**19:
            raise Refused(f"more than {self.containers - 1:,} lists, tuples and dicts")
        self.stack.append(value)

    def pop_to_mark(self):
        place = self.marks.pop()
        items = self.stack[place:]
        del self.stack[place:]
        return items

    def size(self, value):
        """Depth of a container, and how many values it is."""
        found = self.nested.get(id(value))
        return found[1:] if found else (1, len(value))

    def hold(self, container, items, empty=False):
        """Notes that a container will hold some more values; `empty`: that these are all that it holds."""
        kinds = set(map(type, items))
        if not kinds <= PLAIN:
            raise Refused("a name, a dtype or an array without numbers in a place of its own")
        depth, weight = (1, 0) if empty else self.size(container)
        weight += len(items)
        if not kinds.isdisjoint(CONTAINERS):
            for item in items:
                if type(item) in CONTAINERS:
                    inner, values = self.size(item)
                    depth, weight = max(depth, inner + 1), weight + values
        if depth > MAX_DEPTH:
            raise Refused(f"lists, tuples and dicts nested deeper than {MAX_DEPTH}")
        if depth > 1:
            self.nested[id(container)] = container, depth, weight

    def target(self, kind):
        """The list or dict on the stack that takes what comes."""
        value = self.stack[-1]
        if type(value) is not kind or len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise Refused(f"something added to what is no {kind.__name__}")
        if id(value) in self.fetched:
            raise Refused(f"a {kind.__name__} that takes more after it was referred to")
        return value

    def extend(self, items):
        target = self.target(list)
        self.hold(target, items)
        target.extend(items)

    def update(self, items):
        target = self.target(dict)
        for key in items[::2]:
            if type(key) not in (str, bytes) and not (type(key) is int and -(2**31) <= key < 2**31):
                raise Refused(f"a key of type {type(key).__name__}")
        self.hold(target, items)
        target.update(zip(items[::2], items[1::2], strict=True))

    def new_tuple(self, items):
        if INTERNAL.isdisjoint(map(type, items)):
            value = tuple(items)
            self.hold(value, items, empty=True)
        else:
            value = Arguments(items)
        self.new(value)

    # === Names and arrays ===

    def name(self, module, name):
        if (module, name) not in NAMES:
            raise Forbidden(f"the name {f'{module}.{name}'[:100]!r}")
        self.stack.append(NAMES[module, name])

    def reduce(self):
        name, arguments = self.stack[-2:]
        if type(name) is not Name or not isinstance(arguments, tuple):
            raise Refused("a call of something else")
        del self.stack[-2:]
        self.stack.append(name.function(*arguments))

    def build(self):
        value, state = self.stack[-2:]
        if type(value) not in (DType, EmptyArray) or not isinstance(state, tuple):
            raise Refused("a state of something that has none")
        built = value.build(state)
        self.stack[-2:] = [built]
        if value.index is not None:
            self.memo[value.index] = built

    # === The memo ===

    def put(self, index):
        missing = index + 1 - len(self.memo)
        if missing > 0:
            if index > len(self.data):
                raise Refused(f"entry {index} of a memo in {len(self.data)} bytes")
            self.memo.extend([_ABSENT] * missing)
        value = self.memo[index] = self.stack[-1]
        if type(value) in (DType, EmptyArray):
            value.index = index

    def get(self, index):
        value = self.memo[index] if index < len(self.memo) else _ABSENT
        if value is _ABSENT:
            raise Refused(f"a reference to entry {index} of a memo that has none")
        if type(value) in CONTAINERS:
            if type(value) is not tuple:
                self.fetched.add(id(value))
            self.referenced += self.size(value)[1]
        elif type(value) in (str, bytes):
            self.referenced += len(value) // 8
        if self.referenced > 64 * len(self.data) + 2**22:
            raise Refused("references to more than 64 times what it holds")
        self.stack.append(value)
