"""`data.pickles`: what it reads and writes, and that a hostile file gets nowhere."""

import datetime
import io
import os
import pickle
import pickletools

import numpy as np
import pytest

from base.files import UserError
from data import pickles

# Written by Python 2.7.18 with NumPy 1.11.3, `cPickle.dumps(x, protocol)`, of
# {'y': [1, 0], 'c': [(2**40, 1.5, None)], 's': set(['\xc3\xa9', u'\xe9']),
#  'w': np.array([[1.5, -2.5, 4.0]], 'f4'), 'n': np.int64(7)}
PYTHON_2 = {
    0: b"(dp1\nS'y'\n(lp2\nI1\naI0\nasS'c'\n(lp3\n(I1099511627776\nF1.5\nNtp4\nasS's'\n"
    b"c__builtin__\nset\np5\n((lp6\nV\xe9\naS'\\xc3\\xa9'\np7\natRp8\nsS'w'\ncnumpy.core.multiarray"
    b"\n_reconstruct\np9\n(cnumpy\nndarray\np10\n(I0\ntS'b'\ntRp11\n(I1\n(I1\nI3\ntcnumpy\ndtype\n"
    b"p12\n(S'f4'\nI0\nI1\ntRp13\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x00\\x00\\xc0?\\x00\\x00 "
    b"\\xc0\\x00\\x00\\x80@'\ntbsS'n'\ncnumpy.core.multiarray\nscalar\np14\n(g12\n(S'i8'\nI0\nI1\n"
    b"tRp15\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbS'\\x07\\x00\\x00\\x00\\x00\\x00\\x00\\x00'\ntRp16\ns.",
    2: b"\x80\x02}q\x01(U\x01y]q\x02(K\x01K\x00eU\x01c]q\x03I1099511627776\nG?\xf8\x00\x00\x00\x00"
    b"\x00\x00N\x87q\x04aU\x01sc__builtin__\nset\nq\x05]q\x06(X\x02\x00\x00\x00\xc3\xa9U\x02\xc3"
    b"\xa9q\x07e\x85Rq\x08U\x01wcnumpy.core.multiarray\n_reconstruct\nq\tcnumpy\nndarray\nq\nK\x00"
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
    assert value["s"] == {"é", "é".encode().decode("latin1")}
    assert value["w"].dtype == np.float32 and value["w"].tolist() == [[1.5, -2.5, 4.0]]
    assert value["n"] == 7


@pytest.mark.parametrize("protocol", range(6))
def test_load_reads_every_protocol(load, protocol):
    plain = [(1, -2.5, 3j, True, None), {"é": b"\xff", 2: b""}, {5}, frozenset([7]), 2**70]
    arrays = {
        "C": np.arange(6, dtype=np.float32).reshape(2, 3),
        "F": np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
        "big-endian": np.array([1, 256], ">i2"),
        "strided": np.arange(7)[::3],
        "bool": np.array([True, False]),
        "empty": np.zeros((0, 3)),
    }
    value = load(pickle.dumps((plain, arrays, np.float32(2.5), np.bool_(True)), protocol))
    assert value[0] == plain and value[2:] == (2.5, True) and value[2].dtype == np.float32
    for name, expected in arrays.items():
        found = value[1][name]
        assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
        assert found.shape == expected.shape and found.tolist() == expected.tolist()


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
        (array(STATED, (1,), b"A" * 8), "a structured dtype"),
        (Call(np._core.multiarray.scalar, STATED, b"A" * 8), "a structured dtype"),
        (Call(np._core.numeric._frombuffer, b"A" * 8, STATED, (1,), "C"), "a structured dtype"),
        (Call(np._core.multiarray.scalar, np.dtype("O"), [1]), "dtype 'O8'"),
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
    assert load(pickle.dumps(Call(np.ndarray, (10**15,), "b"), 2)).shape == (0,)


@pytest.mark.parametrize("name", ["numpy\ndtype", "numpy\nndarray", "_codecs\nencode", "__builtin__\nset"])
@pytest.mark.parametrize("state", [b"}U\x01aK\x01s", b"N}U\x01aK\x01s\x86", b"N}U\x09_functionK\x01s\x86"])
def test_load_leaves_functions_and_classes_as_they_are(load, name, state):
    module, attribute = name.split("\n")
    substitute = pickles.SUBSTITUTES[module, attribute]
    before = dir(substitute), getattr(substitute, "_function", None)
    with pytest.raises(UserError, match="expected a whole pickle"):
        load(b"\x80\x02c" + name.encode() + b"\n" + state + b"b.")
    assert (dir(substitute), getattr(substitute, "_function", None)) == before


def test_load_encodes_bytes_by_latin_1_alone(load):
    with pytest.raises(UserError, match="bytes in encoding 'rot13'"):
        load(b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.")
