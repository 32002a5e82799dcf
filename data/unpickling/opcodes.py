"""The opcodes that plain values need, as functions `(machine, place after the opcode) -> place of the next one`."""

import codecs
import pickle
import re
import struct

from data.unpickling.machine import Machine
from data.unpickling.names import MAX_DEPTH, Forbidden, Refused

INTS = re.compile(rb"((?:(?:K.)++|(?:M..)++|(?:J....)++)++)e", re.DOTALL)
"""Integers up to APPENDS: nearly all that a dataset is. They are the one thing that Python's own unpickler makes."""
TEXT_INTS = re.compile(rb"(?:(?:-?[1-9][0-9]{0,8}|0)\naI)++")
"""The same by protocol 0, `I5 a I6 a I7` in lines, after the first `I` and up to the last one."""


def _take(machine, at, size):
    """The next bytes of the file, all of them."""
    if size > len(machine.data) - at:
        raise Refused("an end in the middle")
    return machine.data[at : at + size]


def _line(machine, at):
    end = machine.data.find(b"\n", at)
    if end < 0:
        raise Refused("a line without an end")
    return machine.data[at:end], end + 1


def _constant(make):
    def execute(machine, at):
        machine.stack.append(make)
        return at

    return execute


def _fixed(format, use):
    """An opcode with an argument of fixed size: `use(machine, argument)`."""
    unpack, size = struct.Struct(format).unpack_from, struct.calcsize(format)

    def execute(machine, at):
        use(machine, unpack(machine.data, at)[0])
        return at + size

    return execute


def _sized(format, decode):
    """An opcode with a size and so many bytes."""
    unpack, width = struct.Struct(format).unpack_from, struct.calcsize(format)

    def execute(machine, at):
        (size,) = unpack(machine.data, at)
        machine.stack.append(decode(_take(machine, at + width, size)))
        return at + width + size

    return execute


def _lined(use):
    """An opcode with a line: `use(machine, line)`."""

    def execute(machine, at):
        line, at = _line(machine, at)
        use(machine, line)
        return at

    return execute


def _plain(use):
    """An opcode without an argument: `use(machine)`."""

    def execute(machine, at):
        use(machine)
        return at

    return execute


def _mark(machine, at):
    ints = INTS.match(machine.data, at)
    if ints:
        machine.target(list).extend(pickle.loads(b"](%be." % ints[1]))
        return ints.end()
    machine.marks.append(len(machine.stack))
    if len(machine.marks) > 2 * MAX_DEPTH:
        raise Refused(f"lists, tuples and dicts nested deeper than {MAX_DEPTH}")
    return at


def _int(machine, at):
    """`I` of protocol 0, also True and False."""
    ints = TEXT_INTS.match(machine.data, at)
    if ints:
        machine.target(list).extend(map(int, machine.data[at : ints.end() - 3].split(b"\naI")))
        return ints.end() - 1
    line, at = _line(machine, at)
    machine.stack.append({b"00": False, b"01": True}[line] if line in (b"00", b"01") else _digits(line))
    return at


def _digits(line):
    if not re.fullmatch(rb"-?[0-9]{1,40}L?", line):
        raise Refused(f"a number {line!r:.40}")
    return int(line.removesuffix(b"L"))


def _float(line):
    if len(line) > 40:
        raise Refused(f"a number {line!r:.40}")
    return float(line)


def _python_2_text(line):
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in b"'\"":
        raise Refused(f"a text {line!r:.40}")
    return codecs.escape_decode(line[1:-1])[0].decode("latin1")


def _escaped(line):
    text = codecs.decode(line, "raw_unicode_escape")
    text.encode()  # no half of a surrogate pair
    return text


def _popped_tuple(size):
    def use(machine):
        if len(machine.stack) - (machine.marks[-1] if machine.marks else 0) < size:
            raise Refused("a tuple of fewer values than it needs")
        items = machine.stack[-size:]
        del machine.stack[-size:]
        machine.new_tuple(items)

    return _plain(use)


def _new_from_mark(kind):
    def use(machine):
        items = machine.pop_to_mark()
        machine.new(kind())
        (machine.extend if kind is list else machine.update)(items)

    return _plain(use)


def _refuse(machine, at):
    raise Refused(f"an opcode {machine.data[at - 1 : at]!r} that plain values do not need")


def _persistent(machine, *id):
    raise Forbidden("a persistent id")


def _stack_global(machine):
    module, name = machine.stack[-2:]
    if type(module) is not str or type(name) is not str:
        raise Refused("a name that is no text")
    del machine.stack[-2:]
    machine.name(module, name)


def _global(machine, at):
    module, at = _line(machine, at)
    name, at = _line(machine, at)
    machine.name(module.decode(), name.decode())
    return at


def _pair(kind):
    def use(machine):
        size = 1 if kind is list else 2
        items = machine.stack[-size:]
        del machine.stack[-size:]
        (machine.extend if kind is list else machine.update)(items)

    return _plain(use)


def _push(machine, value):
    machine.stack.append(value)


def _latin1(data):
    return data.decode("latin1")


def _little_endian(data):
    return int.from_bytes(data, "little", signed=True)


OPCODES = [_refuse] * 256
for opcode, execute in {
    b"\x80": _fixed("B", lambda machine, protocol: None),
    b"\x95": _fixed("<Q", lambda machine, size: None),  # a frame
    b"(": _mark,
    b"N": _constant(None),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b"I": _int,
    b"J": _fixed("<i", _push),
    b"K": _fixed("B", _push),
    b"M": _fixed("<H", _push),
    b"L": _lined(lambda machine, line: machine.stack.append(_digits(line))),
    b"\x8a": _sized("B", _little_endian),
    b"F": _lined(lambda machine, line: machine.stack.append(_float(line))),
    b"G": _fixed(">d", _push),
    b"S": _lined(lambda machine, line: machine.stack.append(_python_2_text(line))),
    b"T": _sized("<I", _latin1),
    b"U": _sized("B", _latin1),
    b"V": _lined(lambda machine, line: machine.stack.append(_escaped(line))),
    b"X": _sized("<I", bytes.decode),
    b"\x8c": _sized("B", bytes.decode),
    b"\x8d": _sized("<Q", bytes.decode),
    b"B": _sized("<I", bytes),
    b"C": _sized("B", bytes),
    b"\x8e": _sized("<Q", bytes),
    b"\x96": _sized("<Q", bytes),  # a bytearray: the buffer of an array
    b"]": _plain(lambda machine: machine.new([])),
    b"}": _plain(lambda machine: machine.new({})),
    b")": _constant(()),
    b"l": _new_from_mark(list),
    b"d": _new_from_mark(dict),
    b"t": _plain(lambda machine: machine.new_tuple(machine.pop_to_mark())),
    b"\x85": _popped_tuple(1),
    b"\x86": _popped_tuple(2),
    b"\x87": _popped_tuple(3),
    b"a": _pair(list),
    b"e": _plain(lambda machine: machine.extend(machine.pop_to_mark())),
    b"s": _pair(dict),
    b"u": _plain(lambda machine: machine.update(machine.pop_to_mark())),
    b"c": _global,
    b"\x93": _plain(_stack_global),
    b"R": _plain(Machine.reduce),
    b"b": _plain(Machine.build),
    b"p": _lined(lambda machine, line: machine.put(_digits(line))),
    b"q": _fixed("B", Machine.put),
    b"r": _fixed("<I", Machine.put),
    b"\x94": _plain(lambda machine: machine.put(len(machine.memo))),
    b"g": _lined(lambda machine, line: machine.get(_digits(line))),
    b"h": _fixed("B", Machine.get),
    b"j": _fixed("<I", Machine.get),
    b"P": _lined(_persistent),
    b"Q": _plain(_persistent),
}.items():
    OPCODES[opcode[0]] = execute
