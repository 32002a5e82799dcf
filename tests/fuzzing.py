"""Hostile inputs for Hypothesis; every reader must accept them or refuse them in one line."""

import contextlib
import json
import pathlib
import resource
import time

import numpy as np
from hypothesis import strategies as st

from colloquy.base.files import UserError

MEMORY = 200 * 10**6, 10
"""Memory that reading an input may take: bytes, and a multiple of its size."""
SECONDS = 20
"""Processor time for one input."""
LONGEST = 400
"""Characters of a message."""
ENCODINGS = [b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"\0", b"\\u0000"]
LINES = [b"\t", b"\n", b"\r\n", b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\x0b", b"\x1c", b"\xc2\xa0"]
NUMBERS = [b"9" * 5000, b"-1", b"0", b"1", b"1e999", b"NaN", b"null", b"True"]
JSON_PARTS = [b"[" * 100_000, b'{"a":' * 2000, b'"', b"\\", b"[]", b"{}"]
LONG = [b"\t" * 3000, b" " * 3000, b"_" * 300, b"x" * (2**20 + 1)]
WORDS = [b"_EOS_", b"__eou__", b" +++$+++ ", b"R_", b"api_call ", "\u0130\u4f60".encode()]
TOKENS = [*ENCODINGS, *LINES, *NUMBERS, *JSON_PARTS, *LONG, *WORDS]
"""What mutations insert into texts."""
MANY = [3, 1] * 2000
ODD_NUMBERS = [0.9, 5.7, 10**400, -1, 2**40, True, float("nan")]
ODD_TEXTS = ["1", "x" * 999, b"ab", "\u2028", "", ["a"]]
ODD_CONTAINERS = [None, [], {}, [[]], (), {"y": []}, [1, [2]], MANY]
ODD_ARRAYS = [np.ones(3), np.ones((2, 2), int), np.zeros(3, complex)]
ODD = [*ODD_NUMBERS, *ODD_TEXTS, *ODD_CONTAINERS, *ODD_ARRAYS]
"""What replaces parts of values."""


def accepts(read, size):
    """Whether `read()` accepts an input of `size` bytes, not refuses it by a `UserError`.

    The message must be one short line. Any other exception fails.
    """
    start = time.process_time()
    try:
        with limited_memory(MEMORY[0] + MEMORY[1] * size):
            value = read()
            parts = value if isinstance(value, list | tuple) else [value]
            for part in parts:
                str(part)[:10_000].encode()
        return True
    except UserError as error:
        message = str(error)
        assert "MemoryError" not in message, message
        assert len(message) <= LONGEST, message
        assert len(message.splitlines()) == 1, message
        return False
    finally:
        assert time.process_time() - start < SECONDS


def read_if_accepted(read, size):
    """The value of `read()`; `None` if it refuses its input, see `accepts`."""
    values = []

    def read_and_keep():
        values.append(read())
        return values[0]

    return values[0] if accepts(read_and_keep, size) else None


@contextlib.contextmanager
def limited_memory(count):
    """Makes Python raise a `MemoryError` where more than `count` bytes are taken."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@st.composite
def mutated(draw, content, tokens=TOKENS):
    """Draws changes of some bytes, one to five.

    A bit is flipped, a part removed, repeated, moved or inserted, or the end cut off.
    """
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(content)))
        part = content[at : at + draw(st.sampled_from([1, 1, 2, 5, 20, 200]))]
        match draw(st.integers(0, 5)):
            case 0 if part:
                content[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del content[at : at + len(part)]
            case 2:
                content[at:at] = part * draw(st.sampled_from([1, 2, 50]))
            case 3:
                content[at:at] = draw(st.sampled_from(tokens))
            case 4:
                del content[at : at + len(part)]
                to = draw(st.integers(0, len(content)))
                content[to:to] = part
            case 5:
                del content[at:]
    return bytes(content)


def any_json(content):
    """Some JSON with an odd part, maybe with half of a surrogate pair, as bytes."""
    value = with_an_odd_part(json.loads(content), repeats=100)
    separator = st.sampled_from(["\\ud800", "\\u2028"])

    def encode(value, separator):
        text = json.dumps(value, default=str)
        return text.replace("\\u2028", separator).encode()

    return st.builds(encode, value, separator)


@st.composite
def with_an_odd_part(draw, value, repeats=3000, top=True):
    """A value of lists, tuples and dicts with one part replaced by something else, or missing.

    `repeats`: the length of the largest list in its place. A pickle refers to what a list repeats,
    JSON writes it again.
    """
    if (
        not isinstance(value, list | tuple | dict)
        or not value
        or (not top and draw(st.integers(0, 3)) == 0)
    ):
        number = draw(st.integers(0, len(ODD)))
        return ODD[number] if number < len(ODD) else [MANY] * repeats
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = draw(st.sampled_from(keys))
    is_missing = draw(st.integers(0, 9)) == 0
    changed = dict(value) if isinstance(value, dict) else list(value)
    if is_missing:
        del changed[key]
    else:
        changed[key] = draw(with_an_odd_part(value[key], repeats, top=False))
    return type(value)(changed)
