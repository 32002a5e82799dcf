"""The opcodes that plain values need: how each reads its argument, and what it does to the machine."""

import codecs
import pickle
import re
import struct

from data.unpickling.machine import SMALL, Machine
from data.unpickling.names import Forbidden, Refused

INTS = re.compile(rb"((?:K.|M..|J....){1,1000}+)e", re.DOTALL)
"""Integers up to APPENDS: nearly all of a dataset, and the only values that Python's own unpickler makes."""
TEXT_INTS = re.compile(rb"(?:(?:-?[1-9][0-9]{0,8}|0)\naI){1,1000}+")
"""The same in protocol 0, `I5 a I6 a I7` on lines, after the first `I` and up to the last one."""

# === Arguments: functions (data, place after the opcode) -> (argument, place of the next opcode) ===


def _fixed(format):
    """A number of fixed size."""
    unpack, size = struct.Struct(format).unpack_from, struct.calcsize(format)

    def read(data, at):
        return unpack(data, at)[0], at + size

    return read


def _sized(format, decode):
    """A size, and that many bytes, which the file must have."""
    unpack, width = struct.Struct(format).unpack_from, struct.calcsize(format)

    def read(data, at):
        (size,), at = unpack(data, at), at + width
        if size > len(data) - at:
            raise Refused("an end in the middle")
        return decode(data[at : at + size]), at + size

    return read


def _line(data, at):
    end = data.find(b"\n", at)
    if end < 0:
        raise Refused("a line without an end")
    return data[at:end], end + 1


def _lined(decode):
    def read(data, at):
        line, at = _line(data, at)
        return decode(line), at

    return read


def _two_lines(data, at):
    first, at = _line(data, at)
    second, at = _line(data, at)
    return (first.decode(), second.decode()), at


def _ints(data, at):
    """Integers of one or more opcodes up to APPENDS, still pickled; `None` if something else follows."""
    ints = INTS.match(data, at)
    return (ints[1], ints.end()) if ints else (None, at)


def _text_ints(data, at):
    """The lines of integers that are appended one by one, as a list; or one line."""
    ints = TEXT_INTS.match(data, at)
    return (data[at : ints.end() - 3].split(b"\naI"), ints.end() - 1) if ints else _line(data, at)


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


def _latin1(data):
    return data.decode("latin1")


def _little_endian(data):
    return int.from_bytes(data, "little", signed=True)


# === Effects: functions of the machine and the argument, if there is one ===


def _ignore(machine, argument):
    pass


def _mark(machine, ints):
    if ints is None:
        machine.mark()
    else:
        machine.extend_ints(pickle.loads(b"](%be." % ints), 32 * ints.count(b"J"))


def _int(machine, found):
    """`I` of protocol 0, also True and False."""
    if type(found) is list:
        machine.extend_ints(list(map(int, found)), 32 * len(found))
    else:
        machine.make({b"00": False, b"01": True}[found] if found in (b"00", b"01") else _digits(found))


def _stack_global(machine):
    module, name = machine.pop(2)
    if type(module) is not str or type(name) is not str:
        raise Refused("a name that is no text")
    machine.name((module, name))


def _persistent(machine, *id):
    raise Forbidden("a persistent id")


VALUES = {
    b"J": _fixed("<i"),
    b"L": _lined(_digits),
    b"\x8a": _sized("B", _little_endian),
    b"F": _lined(_float),
    b"G": _fixed(">d"),
    b"S": _lined(_python_2_text),
    b"T": _sized("<I", _latin1),
    b"U": _sized("B", _latin1),
    b"V": _lined(_escaped),
    b"X": _sized("<I", bytes.decode),
    b"\x8c": _sized("B", bytes.decode),
    b"\x8d": _sized("<Q", bytes.decode),
    b"B": _sized("<I", bytes),
    b"C": _sized("B", bytes),
    b"\x8e": _sized("<Q", bytes),
    b"\x96": _sized("<Q", bytes),  # a bytearray: the buffer of an array
}
"""Opcode of a number or a text -> how it is read."""
OTHERS = {
    b"\x80": (_fixed("B"), _ignore),  # the protocol
    b"\x95": (_fixed("<Q"), _ignore),  # a frame
    b"(": (_ints, _mark),
    b"K": (_fixed("B"), Machine.push),  # Python has one object for each
    b"M": (_fixed("<H"), lambda machine, number: machine.push(SMALL[number])),
    b"N": (None, lambda machine: machine.push(None)),
    b"\x88": (None, lambda machine: machine.push(True)),
    b"\x89": (None, lambda machine: machine.push(False)),
    b"I": (_text_ints, _int),
    b"]": (None, lambda machine: machine.make([])),
    b"}": (None, lambda machine: machine.make({})),
    b")": (None, lambda machine: machine.push(())),
    b"l": (None, lambda machine: machine.new_list(machine.pop_to_mark())),
    b"d": (None, lambda machine: machine.new_dict(machine.pop_to_mark())),
    b"t": (None, lambda machine: machine.new_tuple(machine.pop_to_mark())),
    b"\x85": (None, lambda machine: machine.new_tuple(machine.pop(1))),
    b"\x86": (None, lambda machine: machine.new_tuple(machine.pop(2))),
    b"\x87": (None, lambda machine: machine.new_tuple(machine.pop(3))),
    b"a": (None, lambda machine: machine.extend(machine.pop(1))),
    b"e": (None, lambda machine: machine.extend(machine.pop_to_mark())),
    b"s": (None, lambda machine: machine.update(machine.pop(2))),
    b"u": (None, lambda machine: machine.update(machine.pop_to_mark())),
    b"c": (_two_lines, Machine.name),
    b"\x93": (None, _stack_global),
    b"R": (None, Machine.reduce),
    b"b": (None, Machine.build),
    b"p": (_lined(_digits), Machine.put),
    b"q": (_fixed("B"), Machine.put),
    b"r": (_fixed("<I"), Machine.put),
    b"\x94": (None, lambda machine: machine.put(len(machine.memo))),
    b"g": (_lined(_digits), Machine.get),
    b"h": (_fixed("B"), Machine.get),
    b"j": (_fixed("<I"), Machine.get),
    b"P": (_line, _persistent),
    b"Q": (None, _persistent),
}
"""Opcode -> how its argument is read (`None`: it has none), and its effect."""
OPCODES = {opcode[0]: (read, Machine.make) for opcode, read in VALUES.items()}
OPCODES |= {opcode[0]: row for opcode, row in OTHERS.items()}
"""All opcodes by number, as `OTHERS`."""
