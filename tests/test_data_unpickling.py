"""`data.unpickling`: hostile files run nothing and cannot exhaust time or memory."""

import os
import pathlib
import pickle
import pickletools
import re
import resource
import subprocess
import time

import numpy as np
import pytest
from fuzzing import accepts, mutated
from helpers import refusal, written
from helpers import unpickled as load
from hypothesis import given
from hypothesis import strategies as st

from colloquy.data import pickles
from colloquy.data.unpickling import NAMES


class Call:
    """Pickles as the call of a function, then a state."""

    def __init__(self, function, *args, state=None):
        self.parts = (function, args) if state is None else (function, args, state)

    def __reduce__(self):
        return self.parts


# === Names ===


def by_line(module, name):
    return b"\x80\x02c%s\n%s\n" % (module.encode(), name.encode())


@pytest.mark.parametrize(
    "module, name",
    [
        ("builtins", "eval"),
        ("copyreg", "_reconstructor"),
        ("numpy", "ndarray.tofile"),
        ("numpy.core.multiarray", "_reconstruct.__class__"),
        ("numpy.core.numeric", "_reconstruct"),
        ("data.unpickling", "_empty_array"),
    ],
)
def test_load_rejects_every_other_name(module, name):
    by_stack = (
        b"\x80\x04"
        + b"".join(b"\x8c%c%s" % (len(t), t.encode()) for t in (module, name))
        + b"\x93."
    )
    for content in (by_line(module, name) + b".", by_stack):
        assert f"refused the name '{module}.{name}'" in refusal(load, content)


def test_the_allowed_names_are_these():
    numpy_names = ("multiarray _reconstruct", "multiarray scalar", "numeric _frombuffer")
    numpy_names = {
        f"{core}.{name}" for core in ("numpy.core", "numpy._core") for name in numpy_names
    }
    others = {
        "_codecs encode",
        "builtins bytes",
        "__builtin__ bytes",
        "numpy dtype",
        "numpy ndarray",
    }
    assert NAMES.keys() == numpy_names | others


@pytest.mark.parametrize("state", [b"}U\x01aK\x01s", b"N}U\x08__code__K\x01s\x86"])
def test_load_leaves_functions_as_they_are(state):
    for name in NAMES:
        assert "a state of something that has none" in refusal(
            load, by_line(*name.split()) + state + b"b."
        )


def array(dtype, shape, data):
    """The pickle of an array, its dtype being any pickled object."""
    reconstruct = np._core.multiarray._reconstruct
    return Call(reconstruct, np.ndarray, (0,), b"b", state=(1, shape, dtype, False, data))


def dtype(*state, of="i8"):
    """The pickle of a dtype with a state."""
    return Call(np.dtype, of, False, True, state=state)


FORGED = dtype(3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0, of="V8")
"""Eight bytes that are declared an object: reading the array crashes Python."""
STATED = dtype(3, "|", None, ("a",), {"a": (np.dtype("i8"), 0)}, 8, 1, 0)
"""A number's dtype that turns into a structured one."""


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    "value, reason",
    [
        (np.array([None, "text"]), "dtype 'O8'"),
        (np.array(["text"]), "dtype 'U4'"),
        (array(FORGED, (1,), b"A" * 8), "dtype 'V8'"),
        (array(STATED, (1,), b"A" * 8), "a dtype .* in a place of its own"),
        (Call(np._core.multiarray.scalar, STATED, b"A" * 8), "a dtype .* in a place of its own"),
        (
            Call(np._core.numeric._frombuffer, b"A" * 8, STATED, (1,), "C"),
            "a dtype .* in a place of its own",
        ),
        (np.zeros(3, complex), "dtype 'c16'"),
        (array(dtype(3, "|", None, ("a",), {}, 8, 1, 0), (1,), b"A" * 8), "a structured dtype"),
        *(
            (array(np.dtype("f8"), shape, bytes(8)), "8 bytes for an array")
            for shape in ((3,), (2**40, 2**10))
        ),
        (array(np.dtype("f8"), (1,), bytes(16)), "16 bytes for an array"),
        *(
            (array(np.dtype("f8"), shape, b""), "an array of shape")
            for shape in ((-1,), (2**62, 4), (0, 2**62))
        ),
        (array(np.dtype("f8"), (0, 2**40, 2**40), b""), "0 bytes for an array of shape"),
    ],
)
def test_load_rejects_arrays_of_other_than_numbers_or_of_another_size(protocol, value, reason):
    found = refusal(load, pickle.dumps([value], protocol))
    assert re.search(rf"expected a whole pickle .* Received: .*{reason}", found), found


ARRAY = b"cnumpy\nndarray\n(K\x00\x85U\x01bt"  # and its arguments: R makes it, b fills it
DTYPE = b"cnumpy\ndtype\nU\x02i8\x85R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
STATE = b"(K\x01K\x01\x85" + DTYPE + b"\x89U\x08" + b"A" * 8 + b"t"
OF_BUFFER = b"cnumpy.core.numeric\n_frombuffer\n("
FROM_BUFFER = OF_BUFFER + b"C\x08" + b"A" * 8 + DTYPE + b"%sU\x01%stR"
BUFFER = FROM_BUFFER % (b"K\x01\x85", b"C")
NESTED_KEY = b"\x86".join([b"q%ch%c" % (i, i) for i in range(41)])
ALIKE_KEYS = b"".join(b"\x8a\x09%sN" % (i * (2**61 - 1)).to_bytes(9, "little") for i in range(99))
DOUBLING = b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(40))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        *(
            (content, "refused a persistent id in it; allowed are lists")
            for content in (b"\x80\x02U\x01aQ.", b"Pa\n.")
        ),
        # An array's memory: filled twice, viewed and then filled, written to through a view.
        (b"]" + ARRAY + b"R" + STATE + b"b" + STATE + b"ba.", "a state of something that has none"),
        (
            b"(" + ARRAY + b"Rq\x05" + STATE + b"bh\x05" + STATE + b"bt.",
            "a state of something that has none",
        ),
        (BUFFER + b"(K\x00K\x07u.", "something added to what is no dict"),
        (BUFFER + b"(K\x07e.", "something added to what is no list"),
        (
            OF_BUFFER + ARRAY + b"Rq\x01" + STATE + b"b" + DTYPE + b"K\x01\x85U\x01CtR.",
            "an array that is not made of",
        ),
        # Shapes.
        (FROM_BUFFER % (b"K\x02\x85", b"C") + b".", "8 bytes for an array of shape"),
        (FROM_BUFFER % (b"K\x01\x85", b"K") + b".", "an order of axes None"),
        (FROM_BUFFER % (b"(" + b"K\x01" * 33 + b"t", b"C") + b".", "an array of shape"),
        # Containers within themselves, and within more than ever needed.
        (b"]q\x00(h\x00K\x01e.", "a list that takes more after it was referred to"),
        (
            b"]q\x00" + b"]h\x00a" * 30 + b"h\x00a.",
            "entry|a list that takes more|no value at its end",
        ),
        (b"}q\x00U\x01ah\x00s.", "a dict that takes more after it was referred to"),
        (b"]" * 200_000 + b"a" * 199_999 + b".", "nested deeper than 32"),
        (b"N" + b"\x85" * 200_000 + b".", "nested deeper than 32"),
        (b"(" * 200_000 + b"t" * 200_000 + b".", "nested deeper than 32"),
        (b"cnumpy\ndtype\n" + b"\x85" * 200_000 + b".", "a tuple of names within a tuple"),
        (b"]" + DTYPE + b"a.", "a dtype .* in a place of its own"),
        # Values below a mark are out of reach.
        (b"cnumpy\ndtype\n(U\x02i8\x85R.", "fewer than the 2 values"),
        # Keys: nested ones hash for ever, some numbers all alike.
        (b"}K\x01" + NESTED_KEY + b"K\x01s.", "a key of type tuple|64 times"),
        (b"}(" + ALIKE_KEYS + b"u.", "a key of type int"),
        (b"}(K\x01u.", "ValueError"),
        # The memo, and what it gives.
        (b"Nr" + (2**27).to_bytes(4, "little") + b".", "more memory than 10 times its 7 bytes"),
        (b"h\x00.", "entry 0 of a memo that has none"),
        (b"Kq(" + b"2" * 9 + b"t.", "an opcode b'2'"),
        (
            b"](" + b"]q\x00(" + b"K\x01" * 30_000 + b"e" + b"h\x00" * 30_000 + b"e.",
            "references to more than 64 times",
        ),
        (b"](K\x01\x85q\x00" + DOUBLING + b"e.", "64 times"),
        (
            b"](X\x40\x42\x0f\x00" + b"a" * 1_000_000 + b"q\x00" + b"h\x00" * 1_000_000 + b"e.",
            "more than 64 times",
        ),
        (
            b"]]q\x00]a" + (b"(" + b"K\x01" * 1000 + b"e") * 30 + b"a(" + b"h\x00" * 30_000 + b"e.",
            "64 times",
        ),
        # Numbers and texts.
        *((b"%c" % code + b"9" * 5_000 + b"\n.", "Exceeds the limit") for code in b"IL"),
        (b"](" + b"I1\na" * 9_000 + b"I1\nN.", "something added to what is no list"),
        (b"X\x03\x00\x00\x00\xed\xa0\x80.", "UnicodeEncodeError"),
        (b"V\\ud800\n.", "UnicodeEncodeError"),
        (b"X\xff\xff\xff\x7fabc.", "only 4 remain"),
        *(
            (b"%c\xff\xff\xff\xff\xff\xff\xff\x7fabc." % code, "only 4 remain")
            for code in b"\x8d\x8e\x96"
        ),
        (b"\x8f(K\x01\x90.", "an opcode"),
        # Calls that would allocate, or change what they are given.
        (pickle.dumps(Call(bytes, 10**15), 2), "bytes made from something else"),
        (
            by_line("_codecs", "encode") + b"X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
            "bytes in encoding 'rot13'",
        ),
    ],
)
def test_load_refuses_at_once_what_would_exhaust_or_corrupt_it(content, reason):
    start = time.process_time()
    message = refusal(load, content)
    assert re.search(reason, message) and len(message) < 500
    assert time.process_time() - start < 3
    # KiB; the memo alone would take as much
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 * 2**20


def repeated(part, start=b"](", stop=b"e."):
    """Makes a pickle of a size from a part, in which `%d` or `%b`, four bytes, is a number of its
    own.
    """

    def content(size):
        numbers = range(
            70_000, 70_000 + size // len(part.replace(b"%b", b"....").replace(b"%d", b"....."))
        )
        if b"%" not in part:
            return start + part * len(numbers) + stop
        parts = (
            part.replace(b"%b", n.to_bytes(4, "little")).replace(b"%d", b"%d" % n) for n in numbers
        )
        return start + b"".join(parts) + stop

    return content


NAMED_ARRAY = b"](cnumpy\nndarray\nq\x00"
WEIGHTY = {
    "None": repeated(b"N"),
    "nested tuples": repeated(b"N" + b"\x85" * 30),
    "lists": repeated(b"]"),
    "nested lists": repeated(b"]" * 30 + b"a" * 29),
    "empty tuples": repeated(b"(t"),
    "dicts": repeated(b"}K\x01Ns"),
    "pairs": repeated(b"J%bN", start=b"}(", stop=b"u."),
    "numbers": repeated(b"J%b"),
    "numbers in a tuple": repeated(b"J%b", start=b"(", stop=b"t."),
    "long numbers": repeated(b"\x8a\x03abc"),
    "numbers of two bytes": repeated(b"M\xff\x7f"),
    "lines of numbers": repeated(b"I%d\na", start=b"]I1\na", stop=b"."),
    "floats": repeated(b"F1\n"),
    "texts": repeated(b"\x8c\x02ab"),
    "wide text": lambda size: (
        b"X" + (size + 4).to_bytes(4, "little") + b"a" * size + "\U0001f600".encode() + b"."
    ),
    "memo": repeated(b"N\x94"),
    "a far entry of the memo": lambda size: (
        b"](Nr" + size.to_bytes(4, "little") + b"N" * size + b"e."
    ),
    "fetched lists": repeated(b"]r%bj%b"),
    "unfinished arrays": repeated(b"h\x00)R", start=NAMED_ARRAY),
    "names in tuples": repeated(b"h\x00\x85", start=NAMED_ARRAY),
    "arrays": repeated(
        b"h\x00h\x01R", start=b"](" + BUFFER.replace(b"\n(", b"\nq\x00(")[:-1] + b"q\x01R"
    ),
}
"""Pickles of a given size that would need much more memory; to read or refuse one takes at most
`fuzzing.MEMORY`.
"""
LARGE = "None", "nested tuples", "a far entry of the memo"


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        *((kind, 3) for kind in ("nested tuples", "texts", "fetched lists")),
        *(pytest.param(kind, 20, marks=pytest.mark.slow) for kind in WEIGHTY),
        *(pytest.param(kind, 60, marks=pytest.mark.slow) for kind in LARGE),
    ],
)
def test_memory_is_bounded_by_the_size_of_the_file(kind, size, tmp_path):
    path = written(tmp_path / "a.pkl", WEIGHTY[kind](size * 10**6))
    accepts(lambda: len(pickles.load(path)), path.stat().st_size)


# === Any file ===

CANARY = pathlib.Path("canary")
COMMAND = f"touch {CANARY}"
CALLS = [
    Call(os.system, COMMAND),
    Call(eval, f"open('{CANARY}', 'w').close()"),
    Call(exec, f"open('{CANARY}', 'w').close()"),
    Call(subprocess.check_call, ["touch", str(CANARY)]),
]
SPLIT = {"y": [1, 0, 1], "c": [[5, 300, 70_000], [7]], "r": [[1, 2], [3]]}
PLAINS = [
    *(
        (SPLIT, SPLIT, SPLIT),
        np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
        [np.ones((3, 5), np.float32), SPLIT],
    ),
    *((1.5, None, True, "caf\u00e9", b"\xff"), {"a": {"b": [[1, 2], (3,)]}}, [list(range(1500))]),
]
TEXT = b"X%c\x00\x00\x00%s" % (len(COMMAND), COMMAND.encode())
BY_HAND = [
    b"(S'" + COMMAND.encode() + b"'\nios\nsystem\n.",  # INST
    b"(cos\nsystem\n" + TEXT + b"o.",  # OBJ
    b"cos\nsystem\n" + TEXT + b"\x85\x81.",  # NEWOBJ
    b"\x80\x04\x8c\x05posix\x8c\x06system\x93" + TEXT + b"\x85R.",  # STACK_GLOBAL
    b"\x80\x04\x8c\x02os\x8c\x06system\x93" + TEXT + b"\x85}\x92.",  # NEWOBJ_EX
    b"]" + TEXT + b"a}U\x0c__setstate__cos\nsystem\nsb" + TEXT + b"b.",  # BUILD
    b"cnumpy\nndarray\n(K\x00\x85U\x01btR}U\x0c__setstate__cos\nsystem\nsb" + TEXT + b"b.",
    b"\x82\x01.",  # EXT1
    TEXT + b"Q.",  # a persistent id
]


def wrapped(call):
    objects = np.array([call, None], object)
    forged = dtype(3, "|", None, ("a",), {"a": (call, 0)}, 8, 1, 0, of="V8")
    return [
        call,
        [call],
        {"y": [1], "c": call},
        ({"y": [call]},),
        {1: (call,)},
        objects,
        array(forged, (1,), b"A" * 8),
    ]


ATTACKS = [pickle.dumps(value, p) for call in CALLS for value in wrapped(call) for p in range(6)]
GOOD = [pickle.dumps(value, protocol) for value in PLAINS for protocol in range(6)]
PARTS = [bytes([ord(op.code)]) for op in pickletools.opcodes]
NAMED = [
    b"c%s\n%s\n" % tuple(name.encode().split()) for name in [*NAMES, "os system", "builtins exec"]
]
BOMBS = [
    b"\xff\xff\xff\x7f",
    b"(" * 100_000,
    b"." * 9,
    *(WEIGHTY[kind](100_000)[:-2] for kind in ("None", "lists", "texts")),
]


@st.composite
def soup(draw):
    """Opcodes in any order with arguments of some size."""
    size = st.sampled_from([0, 1, 3, 200])
    lines = st.sampled_from(
        [b"0", b"1", b"7", b"'a'", b"00", b"01", b"5L", b"1.5", b"x", b"9" * 30, b"-1"]
    )
    common = [op for op in pickletools.opcodes if op.code in "NK]}()aeutsq\x94\x85\x86\x87h"]
    parts = []
    for op in draw(
        st.lists(
            st.one_of(st.sampled_from(common), st.sampled_from(pickletools.opcodes)), max_size=60
        )
    ):
        kind, argument = op.arg and op.arg.name, b""
        if kind == "stringnl_noescape_pair":
            argument = draw(st.sampled_from(NAMED))[1:]
        elif kind and kind[-1] in "1248":
            width = op.arg.n if op.arg.n > 0 else int(kind[-1])
            count = draw(st.one_of(st.integers(0, 8), size))
            argument = count.to_bytes(width, "little") + (b"" if op.arg.n > 0 else b"a" * count)
        elif kind:
            argument = draw(lines) + b"\n"
        parts.append(op.code.encode("latin1") + argument)
    return b"".join(part for part in parts if part != b".") + b"."


@pytest.fixture(scope="module")
def in_a_directory(tmp_path_factory):
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("canary"))
    yield
    os.chdir(before)


def test_the_attacks_are_attacks(in_a_directory):
    for call in CALLS:
        pickle.loads(pickle.dumps(call))
        CANARY.unlink()


@pytest.mark.parametrize("content", [*ATTACKS[::7], *BY_HAND])
def test_no_attack_runs(in_a_directory, content):
    assert not accepts(lambda: load(content), len(content)) and not CANARY.exists()


def changed(content):
    return st.one_of(mutated(content), mutated(content, PARTS + NAMED + BOMBS))


@given(
    st.one_of(soup(), *(st.sampled_from(of).flatmap(changed) for of in (GOOD, ATTACKS, BY_HAND)))
)
def test_any_file_is_read_or_refused(in_a_directory, content):
    accepts(lambda: load(content), len(content))
    assert not CANARY.exists()
