"""`data.unpickling`: hostile files get nowhere, and none takes the machine apart."""

import datetime
import gc
import os
import pickle
import resource
import time

import numpy as np
import pytest
from helpers import unpickled as load

from base.files import UserError
from data.unpickling.names import NAMES


class Call:
    """Pickles as the call of a function, then a state."""

    def __init__(self, function, *args, state=None):
        self.parts = (function, args) if state is None else (function, args, state)

    def __reduce__(self):
        return self.parts


class Plain:
    """An object like any other, of which protocol 2 makes `copyreg.__newobj__`'s opcode."""


def array(dtype, shape, data):
    """The pickle of an array, its dtype being any pickled object."""
    reconstruct = np._core.multiarray._reconstruct
    return Call(reconstruct, np.ndarray, (0,), b"b", state=(1, shape, dtype, False, data))


def dtype(*state):
    """The pickle of an integer's dtype with a state."""
    return Call(np.dtype, "i8", False, True, state=state)


# === Hostile files ===


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: ({"y": [{"c": x}]},)])
def test_load_rejects_a_system_call(tmp_path, protocol, wrap):
    trace = tmp_path / "trace"
    content = pickle.dumps(wrap(Call(os.system, f"touch {trace}")), protocol)
    with pytest.raises(UserError, match=r"refused the name 'posix.system' in it; allowed are list"):
        load(content)
    assert not trace.exists()


@pytest.mark.parametrize(
    "module, name",
    [
        ("builtins", "eval"),
        ("__builtin__", "getattr"),
        ("builtins", "bytearray"),
        ("builtins", "set"),
        ("__builtin__", "complex"),
        ("builtins", "object"),
        ("copyreg", "_reconstructor"),
        ("copy_reg", "_reconstructor"),
        ("numpy", "load"),
        ("numpy", "ndarray.tofile"),
        ("numpy.core.multiarray", "_reconstruct.__class__"),
        ("numpy.core.numeric", "_reconstruct"),
        ("numpy._core._multiarray_umath", "_reconstruct"),
        ("data.pickles", "_empty_array"),
        ("collections", "OrderedDict"),
        ("datetime", "date"),
    ],
)
def test_load_rejects_every_other_name(module, name):
    texts = [text.encode() for text in (module, name)]
    by_line = b"\x80\x02c%s\n%s\n." % tuple(texts)
    by_stack = b"\x80\x04" + b"".join(b"\x8c%c%s" % (len(t), t) for t in texts) + b"\x93."
    for content in (by_line, by_stack):
        with pytest.raises(UserError, match=f"refused the name '{module}.{name}'"):
            load(content)


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("value", [Plain(), datetime.date(2018, 7, 15)])
def test_load_rejects_objects(protocol, value):
    with pytest.raises(UserError, match="refused the name"):
        load(pickle.dumps([value], protocol))


@pytest.mark.parametrize("content", [b"\x80\x02U\x01aQ.", b"Pa\n."])
def test_load_rejects_persistent_ids(content):
    with pytest.raises(UserError, match="refused a persistent id in it; allowed are lists"):
        load(content)


FORGED = Call(  # eight bytes that are declared an object: reading the array crashes Python
    np.dtype, "V8", False, True, state=(3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)
)
STATED = Call(  # a number's dtype that turns into a structured one
    np.dtype, "i8", False, True, state=(3, "|", None, ("a",), {"a": (np.dtype("i8"), 0)}, 8, 1, 0)
)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    "value, reason",
    [
        (np.array([None, "text"]), "dtype 'O8'"),
        (np.array(["text"]), "dtype 'U4'"),
        (np.zeros(2, "i4,f4"), "dtype 'V8'"),
        (np.zeros(2, "M8[s]"), "dtype 'M8'"),
        (array(FORGED, (1,), b"A" * 8), "dtype 'V8'"),
        (array(STATED, (1,), b"A" * 8), "a dtype .* in a place of its own"),
        (Call(np._core.multiarray.scalar, STATED, b"A" * 8), "a dtype .* in a place of its own"),
        (Call(np._core.numeric._frombuffer, b"A" * 8, STATED, (1,), "C"), "a dtype .* in a place of its own"),
        (Call(np._core.multiarray.scalar, np.dtype("O"), [1]), "dtype 'O8'"),
        (np.zeros(3, complex), "dtype 'c16'"),
        (array(dtype(3, "|", None, ("a",), {}, 8, 1, 0), (1,), b"A" * 8), "a structured dtype"),
        (array(dtype(3, "X", None, None, None, -1, -1, 0), (1,), b"A" * 8), "a structured dtype"),
    ],
)
def test_load_rejects_arrays_of_other_than_numbers(protocol, value, reason):
    with pytest.raises(UserError, match=rf"expected a whole pickle .* Received: .*{reason}"):
        load(pickle.dumps([value], protocol))


@pytest.mark.parametrize("shape, size", [((3,), 8), ((1,), 16), ((-1,), 8), ((2**60, 2**10), 8)])
def test_load_rejects_arrays_of_the_wrong_size(shape, size):
    with pytest.raises(UserError, match="expected a whole pickle"):
        load(pickle.dumps(array(np.dtype("f8"), shape, bytes(size))))


def test_load_allocates_no_more_than_it_read():
    with pytest.raises(UserError, match="bytes made from something else"):
        load(pickle.dumps(Call(bytes, 10**15), 2))
    with pytest.raises(UserError, match="no value at its end"):
        load(pickle.dumps(Call(np.ndarray, (10**15,), "b"), 2))


@pytest.mark.parametrize("name", ["numpy\ndtype", "numpy\nndarray", "_codecs\nencode", "__builtin__\nbytes"])
@pytest.mark.parametrize("state", [b"}U\x01aK\x01s", b"N}U\x01aK\x01s\x86", b"N}U\x08functionK\x01s\x86"])
def test_load_leaves_functions_and_classes_as_they_are(name, state):
    before = {key: value.function for key, value in NAMES.items()}
    with pytest.raises(UserError, match="a state of something that has none"):
        load(b"\x80\x02c" + name.encode() + b"\n" + state + b"b.")
    assert {key: value.function for key, value in NAMES.items()} == before


def test_load_encodes_bytes_by_latin_1_alone():
    with pytest.raises(UserError, match="bytes in encoding 'rot13'"):
        load(b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.")


# === Files that take the machine apart ===

ARRAY = b"cnumpy\nndarray\n(K\x00\x85U\x01bt"  # and its arguments: R makes it, b fills it
DTYPE = b"cnumpy\ndtype\nU\x02i8\x85R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
STATE = b"(K\x01K\x01\x85" + DTYPE + b"\x89U\x08" + b"A" * 8 + b"t"
FROM_BUFFER = b"cnumpy.core.numeric\n_frombuffer\n(C\x08" + b"A" * 8 + DTYPE + b"%sU\x01%stR"


ALIKE = b"\x8a\x09%sN"  # a number as a key


def long_binput(index):
    return b"r" + index.to_bytes(4, "little")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        # An array's memory: filled twice, viewed and then filled, written to through a view.
        (b"]" + ARRAY + b"R" + STATE + b"b" + STATE + b"ba.", "a state of something that has none"),
        (b"(" + ARRAY + b"Rq\x05" + STATE + b"bh\x05" + STATE + b"bt.", "a state of something that has none"),
        (FROM_BUFFER % (b"K\x01\x85", b"C") + STATE + b"b.", "a state of something that has none"),
        (FROM_BUFFER % (b"K\x01\x85", b"C") + b"K\x00K\x07s.", "something added to what is no dict"),
        (FROM_BUFFER % (b"K\x01\x85", b"C") + b"(K\x00K\x07u.", "something added to what is no dict"),
        (FROM_BUFFER % (b"K\x01\x85", b"C") + b"K\x07a.", "something added to what is no list"),
        (FROM_BUFFER % (b"K\x01\x85", b"C") + b"(K\x07e.", "something added to what is no list"),
        (
            b"\x80\x02cnumpy.core.numeric\n_frombuffer\n("
            + ARRAY
            + b"Rq\x01"
            + STATE
            + b"b"
            + DTYPE
            + b"K\x01\x85U\x01CtR.",
            "an array that is not made of bytes",
        ),
        # Shapes.
        (FROM_BUFFER % (b"K\x02\x85", b"C") + b".", "8 bytes for an array of shape"),
        (FROM_BUFFER % (b"K\x01\x85", b"K") + b".", "an order of axes None"),
        (FROM_BUFFER % (b"K\x01\x85", b"A") + b".", "an array that is not made of"),
        (FROM_BUFFER % (b"(" + b"K\x01" * 33 + b"t", b"C") + b".", "an array of shape"),
        (FROM_BUFFER % (b"J\xff\xff\xff\xff\x85", b"C") + b".", r"an array of shape \(-1,\)"),
        # Containers within themselves, and within more than ever needed.
        (b"]q\x00h\x00a.", "a list that takes more after it was referred to"),
        (b"]q\x00(h\x00K\x01e.", "a list that takes more after it was referred to"),
        (b"}q\x00U\x01ah\x00s.", "a dict that takes more after it was referred to"),
        (b"]q\x00]h\x00ah\x00h\x01.", "entry 1 of a memo that has none"),
        (b"]q\x00h\x00\x85a.", "a list that takes more after it was referred to"),
        (b"]" * 200_000 + b"a" * 199_999 + b".", "nested deeper than 32"),
        (b"N" + b"\x85" * 200_000 + b".", "nested deeper than 32"),
        (b"}N" + b"\x85" * 200_000 + b"K\x01s.", "nested deeper than 32"),
        (b"(" * 200_000 + b"t" * 200_000 + b".", "nested deeper than 32"),
        (b"cnumpy\ndtype\n" + b"\x85" * 200_000 + b".", "a tuple of names within a tuple"),
        (b"]" + DTYPE + b"a.", "a dtype .* in a place of its own"),
        (b"cnumpy\ndtype\n.", "no value at its end"),
        # Keys: nested ones hash for ever, some numbers all alike.
        (
            b"}K\x01" + b"\x86".join([b"q%ch%c" % (i, i) for i in range(41)]) + b"K\x01s.",
            "a key of type tuple|64 times",
        ),
        (b"}K\x01\x85K\x01s.", "a key of type tuple"),
        (
            b"}(" + b"".join(ALIKE % (i * (2**61 - 1)).to_bytes(9, "little") for i in range(99)) + b"u.",
            "a key of type int",
        ),
        (b"}(K\x01u.", "ValueError"),
        # The memo, and what it gives.
        (b"N" + long_binput(2**27) + b".", "entry 134217728 of a memo in 7 bytes"),
        (b"N" + long_binput(2**32 - 1) + b".", "entry 4294967295 of a memo"),
        (b"Np%d\n." % 10**30, "entry 1000000000000000000000000000000 of a memo"),
        (b"h\x00.", "entry 0 of a memo that has none"),
        (b"Ng-1\n.", "IndexError|memo"),
        (b"Kq(" + b"2" * 9 + b"t.", "an opcode b'2'"),
        (b"](" + b"]q\x00(" + b"K\x01" * 30_000 + b"e" + b"h\x00" * 30_000 + b"e.", "references to more than 64 times"),
        (b"K\x01\x85q\x000.", "an opcode b'0'"),
        (b"](K\x01\x85q\x00" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(40)) + b"e.", "64 times"),
        (
            b"](X\x40\x42\x0f\x00" + b"a" * 1_000_000 + b"q\x00" + b"h\x00" * 1_000_000 + b"e.",
            "more than 64 times",
        ),
        (b"](" + b"]" * 1_000_000 + b"e.", "more than 774,289 lists, tuples and dicts"),
        # Numbers and texts.
        (b"I" + b"9" * 5_000 + b"\n.", "a number b'999"),
        (b"L" + b"9" * 5_000 + b"L\n.", "a number b'999"),
        (b"F" + b"9" * 5_000 + b"\n.", "a number b'999"),
        (b"\x8b\xff\xff\xff\x7f.", "an opcode"),
        (b"X\x03\x00\x00\x00\xed\xa0\x80.", "UnicodeDecodeError"),
        (b"V\\ud800\n.", "UnicodeEncodeError"),
        (b"X\xff\xff\xff\x7fabc.", "an end in the middle"),
        (b"\x96\xff\xff\xff\xff\xff\xff\xff\x7fabc.", "an end in the middle"),
        (b"\x97.", "an opcode"),
        (b"\x8f(K\x01\x90.", "an opcode"),
    ],
)
def test_load_refuses_at_once_what_takes_it_apart(content, reason):
    start = time.process_time()
    with pytest.raises(UserError, match=reason) as caught:
        load(content)
    assert len(str(caught.value)) < 500
    assert time.process_time() - start < 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 * 2**20  # KiB; the memo alone would take as much


def test_load_refuses_shapes_that_overflow():
    for shape in ((0, 2**62, 2**62), (2**62, 4), (0, 2**40, 2**40)):
        with pytest.raises(UserError, match="an array of shape"):
            load(pickle.dumps(array(np.dtype("i8"), shape, b""), 4))


def test_what_is_referred_to_again_is_the_same_object():
    turn, names = [5, 300, 70_000], {"a": 1}
    value = load(pickle.dumps([[turn, turn], names, [names], (turn, turn)], 2))
    assert value == [[turn, turn], names, [names], (turn, turn)]
    assert value[0][0] is value[0][1] is value[3][0] and value[1] is value[2][0]


@pytest.mark.parametrize("protocol", range(6))
def test_long_lists_come_in_several_parts(protocol):
    lists = [
        list(range(2500)),
        [[1], [2]] * 600,
        [*range(1000), "a", [5]],
        [True, 0, False, 1],
        [-5, 10, 2**31, 2**16],
    ]
    assert load(pickle.dumps(lists, protocol)) == lists
    assert [type(value) for value in load(pickle.dumps(lists, protocol))[3]] == [bool, int, bool, int]


def test_load_leaves_the_collector_as_it_was():
    gc.disable()
    load(b"N.")
    assert not gc.isenabled()
    gc.enable()
    with pytest.raises(UserError):
        load(b"N")
    assert gc.isenabled()
