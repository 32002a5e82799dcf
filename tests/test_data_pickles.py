"""`data.pickles`: what it reads and writes, and that a hostile file gets nowhere."""

import datetime
import gc
import io
import os
import pickle
import pickletools
import resource
import time

import numpy as np
import pytest

from base.files import UserError
from data import pickles
from data.unpickling.names import NAMES

# Written by Python 2.7.18 with NumPy 1.11.3, `cPickle.dumps(x, protocol)`, of
# {'y': [1, 0], 'c': [(2**40, 1.5, None)], 's': set(['\xc3\xa9', u'\xe9']),
#  'w': np.array([[1.5, -2.5, 4.0]], 'f4'), 'n': np.int64(7)};
# by hand, the call of `set` was taken out, so that 's' is the list [u'\xe9', '\xc3\xa9'].
PYTHON_2 = {
    0: b"(dp1\nS'y'\n(lp2\nI1\naI0\nasS'c'\n(lp3\n(I1099511627776\nF1.5\nNtp4\nasS's'\n"
    b"(lp6\nV\xe9\naS'\\xc3\\xa9'\np7\nasS'w'\ncnumpy.core.multiarray"
    b"\n_reconstruct\np9\n(cnumpy\nndarray\np10\n(I0\ntS'b'\ntRp11\n(I1\n(I1\nI3\ntcnumpy\ndtype\n"
    b"p12\n(S'f4'\nI0\nI1\ntRp13\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x00\\x00\\xc0?\\x00\\x00 "
    b"\\xc0\\x00\\x00\\x80@'\ntbsS'n'\ncnumpy.core.multiarray\nscalar\np14\n(g12\n(S'i8'\nI0\nI1\n"
    b"tRp15\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbS'\\x07\\x00\\x00\\x00\\x00\\x00\\x00\\x00'\ntRp16\ns.",
    2: b"\x80\x02}q\x01(U\x01y]q\x02(K\x01K\x00eU\x01c]q\x03I1099511627776\nG?\xf8\x00\x00\x00\x00"
    b"\x00\x00N\x87q\x04aU\x01s]q\x06(X\x02\x00\x00\x00\xc3\xa9U\x02\xc3"
    b"\xa9q\x07eU\x01wcnumpy.core.multiarray\n_reconstruct\nq\tcnumpy\nndarray\nq\nK\x00"
    b"\x85U\x01b\x87Rq\x0b(K\x01K\x01K\x03\x86cnumpy\ndtype\nq\x0cU\x02f4K\x00K\x01\x87Rq\r(K\x03U"
    b"\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x0c\x00\x00\xc0?\x00\x00 \xc0\x00\x00"
    b"\x80@tbU\x01ncnumpy.core.multiarray\nscalar\nq\x0eh\x0cU\x02i8K\x00K\x01\x87Rq\x0f(K\x03U"
    b"\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbU\x08\x07\x00\x00\x00\x00\x00\x00\x00\x86R"
    b"q\x10u.",
}


class Call:
    """Pickles as the call of a function, then a state."""

    def __init__(self, function, *args, state=None):
        self.parts = (function, args) if state is None else (function, args, state)

    def __reduce__(self):
        return self.parts


class Plain:
    """An object like any other, of which protocol 2 makes `copyreg.__newobj__`'s opcode."""


def array(dtype, shape, data):
    """The pickle of an array, its dtype being any pickled thing."""
    reconstruct = np._core.multiarray._reconstruct
    return Call(reconstruct, np.ndarray, (0,), b"b", state=(1, shape, dtype, False, data))


def dtype(*state):
    """The pickle of an integer's dtype with a state."""
    return Call(np.dtype, "i8", False, True, state=state)


@pytest.fixture
def load(tmp_path):
    def load(content):
        path = tmp_path / "data.pkl"
        path.write_bytes(content)
        return pickles.load(path)

    return load


# === What it reads ===


@pytest.mark.parametrize("protocol", [0, 2])
def test_load_reads_python_2(load, protocol):
    value = load(PYTHON_2[protocol])
    assert value["y"] == [1, 0] and value["c"] == [(2**40, 1.5, None)]
    assert value["s"] == ["é", "é".encode().decode("latin1")]
    assert value["w"].dtype == np.float32 and value["w"].tolist() == [[1.5, -2.5, 4.0]]
    assert value["n"] == 7


@pytest.mark.parametrize("protocol", range(6))
def test_load_reads_every_protocol(load, protocol):
    plain = [(1, -2.5, True, None), {"é": b"\xff", 2: b""}, (), 2**70, -(2**35), [0, -1, 255, 65536]]
    arrays = {
        "C": np.arange(6, dtype=np.float32).reshape(2, 3),
        "F": np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
        "big-endian": np.array([1, 256], ">i2"),
        "strided": np.arange(7)[::3],
        "transposed": np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),  # order "K" of protocol 5
        "no axes": np.array(5.0),
        "bool": np.array([True, False]),
        "empty": np.zeros((0, 3)),
    }
    value = load(pickle.dumps((plain, arrays, np.float32(2.5), np.bool_(True)), protocol))
    assert value[0] == plain and value[2:] == (2.5, True) and value[2].dtype == np.float32
    for name, expected in arrays.items():
        found = value[1][name]
        assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
        assert found.shape == expected.shape and found.tolist() == expected.tolist()
        assert found.flags.writeable


def test_load_gives_a_plain_array_at_the_top(load):
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    for protocol in (2, 5):
        value = load(pickle.dumps(expected, protocol))
        assert type(value) is np.ndarray and value.tolist() == expected.tolist()


# === What it writes ===


def test_dump_writes_names_that_python_2_and_old_numpy_have(load):
    file = io.BytesIO()
    shared = [5, 6, 1]
    value = ({"c": [shared, shared]}, np.arange(6, dtype=np.float32).reshape(2, 3), b"\xff", b"")
    pickles.dump(value, file)
    opcodes = list(pickletools.genops(file.getvalue()))
    assert (opcodes[0][0].name, opcodes[0][1]) == ("PROTO", 2)
    assert {argument for opcode, argument, _ in opcodes if opcode.name == "GLOBAL"} == {
        "numpy ndarray",
        "numpy dtype",
        "_codecs encode",
        "__builtin__ bytes",
    }
    for again in (load(file.getvalue()), pickle.loads(file.getvalue())):
        assert again[0] == value[0] and again[0]["c"][0] is again[0]["c"][1]
        np.testing.assert_array_equal(again[1], value[1], strict=True)
        assert again[2:] == (b"\xff", b"")


@pytest.mark.parametrize("value", [np.int64(3), np.array([None]), np.array(["a"]), np.zeros(2, "i4,f4")])
def test_dump_rejects_other_than_plain_numbers(value):
    with pytest.raises(TypeError, match=r"Plain numbers .* Received: <class 'numpy\..*dtype="):
        pickles.dump([value], io.BytesIO())


# === Files at fault ===


def test_load_rejects_missing_and_empty_files_and_directories(load, tmp_path):
    with pytest.raises(UserError, match=r"absent\.pkl: expected a pickle.*No such file"):
        pickles.load(tmp_path / "absent.pkl")
    with pytest.raises(UserError, match=r"expected a pickle.*Is a directory"):
        pickles.load(tmp_path)
    with pytest.raises(UserError, match=r"data\.pkl: expected a pickle. Received: an empty file"):
        load(b"")


@pytest.mark.parametrize("protocol", range(6))
def test_load_rejects_a_file_cut_off_anywhere(load, protocol):
    content = pickle.dumps([{"y": [1, 300]}, np.arange(3), np.float32(2)], protocol)
    for end in range(1, len(content)):
        with pytest.raises(UserError, match=r"data\.pkl: expected a whole pickle of lists"):
            load(content[:end])


@pytest.mark.parametrize("content", [b"PK\x03\x04 a zip", b"\x93NUMPY", b"1\thello\tthere\n", b"\x80\x63."])
def test_load_rejects_files_that_are_no_pickles(load, content):
    with pytest.raises(UserError, match=r"data\.pkl: expected a whole pickle"):
        load(content)


# === Hostile files ===


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: ({"y": [{"c": x}]},)])
def test_load_rejects_a_system_call(load, tmp_path, protocol, wrap):
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
def test_load_rejects_every_other_name(load, module, name):
    texts = [text.encode() for text in (module, name)]
    by_line = b"\x80\x02c%s\n%s\n." % tuple(texts)
    by_stack = b"\x80\x04" + b"".join(b"\x8c%c%s" % (len(t), t) for t in texts) + b"\x93."
    for content in (by_line, by_stack):
        with pytest.raises(UserError, match=f"refused the name '{module}.{name}'"):
            load(content)


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("value", [Plain(), datetime.date(2018, 7, 15)])
def test_load_rejects_objects(load, protocol, value):
    with pytest.raises(UserError, match="refused the name"):
        load(pickle.dumps([value], protocol))


@pytest.mark.parametrize("content", [b"\x80\x02U\x01aQ.", b"Pa\n."])
def test_load_rejects_persistent_ids(load, content):
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
def test_load_rejects_arrays_of_other_than_numbers(load, protocol, value, reason):
    with pytest.raises(UserError, match=rf"expected a whole pickle .* Received: .*{reason}"):
        load(pickle.dumps([value], protocol))


@pytest.mark.parametrize("shape, size", [((3,), 8), ((1,), 16), ((-1,), 8), ((2**60, 2**10), 8)])
def test_load_rejects_arrays_of_the_wrong_size(load, shape, size):
    with pytest.raises(UserError, match="expected a whole pickle"):
        load(pickle.dumps(array(np.dtype("f8"), shape, bytes(size))))


def test_load_allocates_no_more_than_it_read(load):
    with pytest.raises(UserError, match="bytes made from something else"):
        load(pickle.dumps(Call(bytes, 10**15), 2))
    with pytest.raises(UserError, match="no value at its end"):
        load(pickle.dumps(Call(np.ndarray, (10**15,), "b"), 2))


@pytest.mark.parametrize("name", ["numpy\ndtype", "numpy\nndarray", "_codecs\nencode", "__builtin__\nbytes"])
@pytest.mark.parametrize("state", [b"}U\x01aK\x01s", b"N}U\x01aK\x01s\x86", b"N}U\x08functionK\x01s\x86"])
def test_load_leaves_functions_and_classes_as_they_are(load, name, state):
    before = {key: value.function for key, value in NAMES.items()}
    with pytest.raises(UserError, match="a state of something that has none"):
        load(b"\x80\x02c" + name.encode() + b"\n" + state + b"b.")
    assert {key: value.function for key, value in NAMES.items()} == before


def test_load_encodes_bytes_by_latin_1_alone(load):
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
def test_load_refuses_at_once_what_takes_it_apart(load, content, reason):
    start = time.process_time()
    with pytest.raises(UserError, match=reason) as caught:
        load(content)
    assert len(str(caught.value)) < 500
    assert time.process_time() - start < 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 * 2**20  # KiB; the memo alone would take as much


def test_load_refuses_shapes_that_overflow(load):
    for shape in ((0, 2**62, 2**62), (2**62, 4), (0, 2**40, 2**40)):
        with pytest.raises(UserError, match="an array of shape"):
            load(pickle.dumps(array(np.dtype("i8"), shape, b""), 4))


def test_what_is_referred_to_again_is_the_same_object(load):
    turn, names = [5, 300, 70_000], {"a": 1}
    value = load(pickle.dumps([[turn, turn], names, [names], (turn, turn)], 2))
    assert value == [[turn, turn], names, [names], (turn, turn)]
    assert value[0][0] is value[0][1] is value[3][0] and value[1] is value[2][0]


@pytest.mark.parametrize("protocol", range(6))
def test_long_lists_come_in_several_parts(load, protocol):
    lists = [
        list(range(2500)),
        [[1], [2]] * 600,
        [*range(1000), "a", [5]],
        [True, 0, False, 1],
        [-5, 10, 2**31, 2**16],
    ]
    assert load(pickle.dumps(lists, protocol)) == lists
    assert [type(value) for value in load(pickle.dumps(lists, protocol))[3]] == [bool, int, bool, int]


def test_load_leaves_the_collector_as_it_was(load):
    gc.disable()
    load(b"N.")
    assert not gc.isenabled()
    gc.enable()
    with pytest.raises(UserError):
        load(b"N")
    assert gc.isenabled()
