"""`data.pickles`: the values it reads and writes, and forged files that it refuses."""

import os
import pickle
import pickletools
import time

import numpy as np
import pytest
from fuzzing import accepts, mutated
from helpers import refusal
from helpers import unpickled as load
from hypothesis import example, given
from hypothesis import strategies as st

from colloquy.base.files import UserError
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
def test_load_reads_arrays_of_every_protocol(protocol):
    arrays = {
        "C": np.arange(6, dtype=np.float32).reshape(2, 3),
        "F": np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
        "big-endian": np.array([1, 256], ">i2"),
        "strided": np.arange(7)[::3],
        "no axes": np.array(5.0),
        "bool": np.array([True, False]),
        "empty": np.zeros((0, 3)),
    }
    together, number, truth = load(
        pickle.dumps((arrays, np.float32(2.5), np.bool_(True)), protocol)
    )
    assert (number, truth) == (2.5, True) and number.dtype == np.float32
    alone = {name: load(pickle.dumps(array, protocol)) for name, array in arrays.items()}
    for name, expected in arrays.items():
        for found in (together[name], alone[name]):
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


def test_load_rejects_missing_and_empty_files_and_directories(tmp_path):
    (tmp_path / "empty").touch()
    for name, reason in (
        ("absent", "No such file"),
        (".", "Is a directory"),
        ("empty", "an empty file"),
    ):
        assert f"expected a pickle. Received: {reason}" in refusal(pickles.load, tmp_path / name)


# === Forged files ===


class Call:
    """Pickles as the call of a function, then a state."""

    def __init__(self, function, *args, state=None):
        self.function = function
        self.args = args
        self.state = state

    def __reduce__(self):
        if self.state is None:
            return self.function, self.args
        return self.function, self.args, self.state


def array(dtype, shape, data):
    """The pickle of an array; its dtype is any pickled object."""
    reconstruct = np._core.multiarray._reconstruct
    return Call(reconstruct, np.ndarray, (0,), b"b", state=(1, shape, dtype, False, data))


def dtype(*state, name="i8"):
    """The pickle of a dtype with a state."""
    return Call(np.dtype, name, False, True, state=state)


# Eight bytes that are declared an object: reading the array would crash Python.
OBJECT = dtype(3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0, name="V8")
# The dtype of a number that turns into a structured one.
STRUCTURED = dtype(3, "|", None, ("a",), {"a": (np.dtype("i8"), 0)}, 8, 1, 0)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        np.array([None, "text"]),
        np.array(["text"]),
        np.zeros(3, complex),
        array(OBJECT, (1,), b"A" * 8),
        array(STRUCTURED, (1,), b"A" * 8),
        array(np.dtype("f8"), (3,), bytes(8)),
        array(np.dtype("f8"), (2**40, 2**10), bytes(8)),
        array(np.dtype("f8"), (-1,), b""),
        array(np.dtype("f8"), (0, 2**40, 2**40), b""),
        array(np.dtype("f8"), "a", b""),
        array("f8", (1,), bytes(8)),
        Call(np._core.multiarray.scalar, STRUCTURED, b"A" * 8),
        Call(np._core.numeric._frombuffer, b"A" * 8, STRUCTURED, (1,), "C"),
        Call(bytes, 10**15),
    ],
)
def test_load_rejects_arrays_of_other_than_numbers_or_of_another_size(protocol, value):
    message = refusal(load, pickle.dumps([value], protocol))
    assert f"{pickles.EXPECTED}. Received: " in message and len(message) < 500


ARRAY = b"cnumpy\nndarray\n(K\x00\x85U\x01bt"  # and its arguments: R makes it, b fills it
DTYPE = b"cnumpy\ndtype\nU\x02i8\x85R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
NESTED_KEY = b"\x86".join([b"q%ch%c" % (i, i) for i in range(41)])
EQUAL_HASHES = [(i * (2**61 - 1)).to_bytes(9, "little") for i in range(99)]
DOUBLING = b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(40))
TEXT = b"X\x04\x00\x00\x00true"  # a command
REFUSED = [
    *("INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"),
    *("EMPTY_SET", "ADDITEMS", "FROZENSET", "NEXT_BUFFER", "READONLY_BUFFER"),
    *("DUP", "POP", "POP_MARK"),
]
"""Opcodes that plain values do not need."""
FORGED = {
    "global": (b"\x80\x02cbuiltins\neval\n.", "the name 'builtins.eval'"),
    "stack global": (
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93" + TEXT + b"\x85R.",
        "the name 'posix.system'",
    ),
    "dotted name": (b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.", "the name"),
    "name of ours": (b"ccolloquy.data.pickles\n_empty_array\n.", "the name"),
    "name that is no text": (b"\x80\x04K\x01K\x02\x93.", "STACK_GLOBAL requires str"),
    "call of a value": (b"U\x01aK\x01\x85R.", "a call of something else"),
    "call without a tuple": (b"cnumpy\ndtype\nU\x02i8R.", "a call of something else"),
    **{name: (getattr(pickle, name) + b".", "an opcode") for name in REFUSED},
    "state of a list": (b"]}U\x0c__setstate__" + TEXT + b"sb.", "a state that is not a tuple"),
    "state of a name": (b"cnumpy\ndtype\nN}U\x08__code__K\x01s\x86b.", "a state of something"),
    "state in a state": (ARRAY + b"R(K\x01K\x01\x85]}" + b"b\x89U\x01atb.", "a state that is not"),
    "array without bytes": (ARRAY + b"R(K\x01K\x01\x85" + DTYPE + b"\x89]tb.", "an array that is"),
    "item of an array": (ARRAY + b"RK\x00K\x07s.", "a key of something else than a dict"),
    "items of a list": (b"]K\x00a(K\x00K\x07u.", "a key of something else than a dict"),
    "list of a name": (b"cnumpy\ndtype\n(K\x07e.", "AttributeError"),
    "name as value": (b"](cnumpy\ndtype\ne.", "a name or a dtype in the place of a value"),
    "dtype as value": (b"}U\x01a" + DTYPE + b"s.", "a name or a dtype in the place of a value"),
    "name in the end": (b"cnumpy\ndtype\n.", "a name or a dtype in the place of a value"),
    "nested key": (b"}K\x01" + NESTED_KEY + b"\x86K\x01s.", "a key that is not text"),
    "nested key of DICT": (b"(K\x01\x85K\x01d.", "a key that is not text"),
    "equal hashes": (b"}(" + b"".join(b"\x8a\x09%bN" % x for x in EQUAL_HASHES) + b"u.", "a key"),
    "equal hashes in the memo": (b"Np%d\n." % 2**61, "an entry of the memo"),
    "key without a value": (b"}(K\x01u.", "ValueError"),
    "memo that is empty": (b"h\x00.", "Memo value not found at index 0"),
    "list in itself": (b"]q\x00(h\x00K\x01e.", "nested deeper than 32"),
    "deep list": (b"]" * 200_000 + b"a" * 199_999 + b".", "nested deeper than 32"),
    "deep tuple": (b"N" + b"\x85" * 200_000 + b".", "nested deeper than 32"),
    "doubled tuples": (b"](K\x01\x85q\x00" + DOUBLING + b"e.", "more than 64 times|deeper than 32"),
    "marks": (b"(" * 200_000 + b".", "something else than one value"),
    "two values": (b"K\x01K\x02.", "something else than one value"),
    "open mark": (b"(K\x01.", "something else than one value"),
    "digits": (b"I" + b"9" * 5_000 + b"\n.", "Exceeds the limit"),
    "half a surrogate pair": (b"X\x03\x00\x00\x00\xed\xa0\x80.", "UnicodeEncodeError"),
    "long text": (b"X\xff\xff\xff\x7fabc.", "EOFError"),
    "long array": (b"\x96\xff\xff\xff\xff\xff\xff\xff\x7fabc.", "EOFError"),
    "encoding": (b"c_codecs\nencode\nU\x01aU\x05rot13\x86R.", "bytes in an encoding"),
    "bytes": (b"cbuiltins\nbytes\nJ\xff\xff\xff\x7f\x85R.", "TypeError"),
}
"""Name -> a file, and what its error says."""


@pytest.mark.parametrize("name", FORGED)
def test_load_refuses_a_forged_file_at_once(name):
    content, reason = FORGED[name]
    start = time.process_time()
    with pytest.raises(UserError, match=reason) as error:
        load(content)
    assert len(str(error.value)) < 500
    assert time.process_time() - start < 3


def test_references_to_a_long_text_take_no_memory_for_each():
    """Together, the texts that this file of 320 KB describes have eleven billion characters."""
    text = b"X" + (10**5).to_bytes(4, "little") + b"a" * 10**5
    content = b"](" + text + b"q\x00" + b"h\x00" * 110_000 + b"e."
    assert accepts(lambda: load(content), len(content))


def attacks():
    """Pickles that call a function, in many places and protocols."""
    command = "touch canary"
    calls = [
        Call(os.system, command),
        Call(eval, "open('canary', 'w').close()"),
        Call(exec, "open('canary', 'w').close()"),
    ]
    contents = []
    for call in calls:
        forged_dtype = dtype(3, "|", None, ("a",), {"a": (call, 0)}, 8, 1, 0, name="V8")
        places = [
            call,
            [call],
            {"y": [1], "c": call},
            {1: (call,)},
            np.array([call, None], object),
            array(forged_dtype, (1,), b"A" * 8),
        ]
        for place in places:
            contents.extend(pickle.dumps(place, protocol) for protocol in range(6))
    return contents


def whole_files():
    """Pickles of plain values in every protocol."""
    split = {"y": [1, 0, 1], "c": [[5, 300, 70_000], [7]], "r": [[1, 2], [3]]}
    values = [
        (split, split, split),
        [np.ones((3, 5), np.float32), split],
        [1.5, None, True, "caf\u00e9", b"\xff", np.float32(2.5), {"a": {"b": [(3,)]}}],
        [list(range(1500))],
    ]
    return [pickle.dumps(value, protocol) for value in values for protocol in range(6)]


def test_no_attack_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for content in attacks():
        assert refusal(load, content)
    assert not os.path.exists("canary")


FILES = [*whole_files(), *attacks(), *(content for content, _ in FORGED.values())]
OPCODES = [opcode.code.encode("latin1") for opcode in pickletools.opcodes]


@given(st.sampled_from(FILES).flatmap(lambda content: mutated(content, OPCODES)))
def test_any_file_is_read_or_refused(content):
    accepts(lambda: load(content), len(content))
    assert not os.path.exists("canary")
