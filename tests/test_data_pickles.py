"""`data.pickles`: what it reads and writes."""

import gc
import io
import pickle
import pickletools

import numpy as np
import pytest
from helpers import refusal
from helpers import unpickled as load
from hypothesis import example, given
from hypothesis import strategies as st

from colloquy.data import pickles

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


@pytest.mark.parametrize("protocol", [0, 2])
def test_load_reads_python_2(protocol):
    value = load(PYTHON_2[protocol])
    assert value["y"] == [1, 0] and value["c"] == [(2**40, 1.5, None)]
    assert value["s"] == ["é", "é".encode().decode("latin1")]
    assert value["w"].dtype == np.float32 and value["w"].tolist() == [[1.5, -2.5, 4.0]]
    assert value["n"] == 7


@pytest.mark.parametrize("protocol", range(6))
def test_load_reads_every_protocol(protocol):
    plain = [
        (1, -2.5, True, None),
        {"é": b"\xff", 2: b""},
        (),
        2**70,
        -(2**35),
        [0, -1, 255, 65536],
    ]
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
    alone = {name: load(pickle.dumps(array, protocol)) for name, array in arrays.items()}
    for name, expected in arrays.items():
        for found in (value[1][name], alone[name]):
            assert type(found) is np.ndarray and found.flags.writeable
            assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
            assert found.shape == expected.shape and found.tolist() == expected.tolist()


KEYS = st.one_of(st.text(), st.binary(), st.integers(-(2**31), 2**31 - 1))
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
    ),
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(KEYS, inner)
    ),
)


@given(VALUES, st.integers(0, 5))
# in several parts
@example([list(range(2500)), [[1], [2]] * 600, [*range(1000), "a", [5]], [True, 0, False, 1]], 2)
def test_load_reads_any_plain_value(value, protocol):
    found = load(pickle.dumps(value, protocol))
    assert found == value and repr(found) == repr(value)  # True is no 1


def test_what_is_referred_to_again_is_the_same_object():
    turn, names = [5, 300, 70_000], {"a": 1}
    value = load(pickle.dumps([[turn, turn], names, [names], (turn, turn)], 2))
    assert value == [[turn, turn], names, [names], (turn, turn)]
    assert value[0][0] is value[0][1] is value[3][0] and value[1] is value[2][0]


def test_load_leaves_the_collector_as_it_was():
    gc.disable()
    load(b"N.")
    assert not gc.isenabled()
    gc.enable()
    assert refusal(load, b"N") and gc.isenabled()


def test_dump_writes_names_that_python_2_and_old_numpy_have():
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


@pytest.mark.parametrize(
    "value", [np.int64(3), np.array([None]), np.array(["a"]), np.zeros(2, "i4,f4")]
)
def test_dump_rejects_other_than_plain_numbers(value):
    with pytest.raises(TypeError, match=r"Plain numbers .* Received: <class 'numpy\..*dtype="):
        pickles.dump([value], io.BytesIO())


def test_load_rejects_missing_and_empty_files_and_directories(tmp_path):
    (tmp_path / "empty").touch()
    for name, reason in (
        ("absent", "No such file"),
        (".", "Is a directory"),
        ("empty", "an empty file"),
    ):
        assert f"expected a pickle. Received: {reason}" in refusal(pickles.load, tmp_path / name)


@pytest.mark.parametrize("protocol", range(6))
def test_load_rejects_a_file_cut_off_anywhere(protocol):
    content = pickle.dumps([{"y": [1, 300]}, np.arange(3), np.float32(2)], protocol)
    for end in range(1, len(content)):
        assert "data.pkl: expected a whole pickle of lists" in refusal(load, content[:end])
