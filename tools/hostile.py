"""Hostile files, drawn at random: pickles that want to run, crash, hang or fill the memory, and mutated texts.

Everything here is a generator of bytes from a `random.Random`; `tools.fuzz` lets the readers loose on them.
"""

import gzip
import io
import json
import os
import pickle
import pickletools
import subprocess

import numpy as np

from data import pickles

BIG = b"1\ta b\tc d\n"
TOKENS = [
    *(b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"\0", b"\t", b"\n", b"\r\n", b"\r", b"\xc2\x85"),
    *(b"\xe2\x80\xa8", b"\x0b", b"\x1c", b"\xc2\xa0", b"9" * 5000, b"-1", b"0", b"1", b"1e999", b"NaN", b"null"),
    *(b"[" * 100_000, b'{"a":' * 2000, b"\t" * 3000, b" " * 3000, b'"', b"\\", b"[]", b"{}", b"_EOS_", b"\\u0000"),
    *("\u0130\u4f60".encode(), b"__eou__", b" +++$+++ ", b"_" * 300, b"x" * (2**20 + 1), b"True", b"R_", b"api_call "),
]
"""What mutations put into texts."""


# === Bytes ===


def mutated(rng, content, tokens=TOKENS):
    """Some bytes with one to five of: a bit flipped, a part removed, repeated, moved or put in, the end cut off."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(content) + 1)
        length = min(rng.choice([1, 1, 2, 5, 20, 200]), len(content) - at)
        match rng.randrange(6):
            case 0 if at < len(content):
                content[at] ^= 1 << rng.randrange(8)
            case 1:
                del content[at : at + length]
            case 2:
                content[at:at] = content[at : at + length] * rng.choice([1, 2, 50])
            case 3:
                content[at:at] = rng.choice(tokens)
            case 4:
                part = content[at : at + length]
                del content[at : at + length]
                to = rng.randrange(len(content) + 1)
                content[to:to] = part
            case 5:
                del content[at:]
    return bytes(content)


def compressed(rng, content):
    """Some bytes by gzip, one time in three damaged, one time in fifty the beginning of far more."""
    if rng.random() < 0.02:
        content = rng.choice([BIG * 2**23, b"1\t" + b"a" * 2**26, b" " * 2**26 + b"[]"])
    packed = gzip.compress(content, 1)
    return mutated(rng, packed, [b"\x1f\x8b\x08", b"\0" * 20]) if rng.random() < 0.3 else packed


# === Pickles ===


class _Call:
    def __init__(self, function, *args, state=None):
        self.parts = (function, args) if state is None else (function, args, state)

    def __reduce__(self):
        return self.parts


def hostile_pickle(rng, canary):
    """One pickle, to be refused or to be read as plain values.

    Args:
        rng: `random.Random`.
        canary: Path of a file that code in the pickle would make.
    """
    kinds = (_mutated_pickle, _soup, _bomb, lambda rng: _attack(rng, canary))
    return rng.choices(kinds, (30, 25, 20, 25))[0](rng)


def plain_value(rng):
    """A value of the kinds that prepared datasets hold."""
    ids = [[rng.randrange(rng.choice([9, 300, 70_000])) for _ in range(rng.randrange(30))] for _ in range(5)]
    arrays = [
        np.arange(24).reshape(2, 3, 4).astype(rng.choice(["f4", "f8", "i8", ">i2", "?"])),
        np.asfortranarray(np.ones((3, 5), np.float32)),
        np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
        np.zeros((0, 3)),
    ]
    split = {"y": [1, 0, 1], "c": [ids[0], ids[0], ids[1]], "r": ids[2:]}
    others = [(1.5, None, True, "caf\u00e9", b"\xff"), {"a": {"b": [[1, 2], (3,)]}}, [list(range(1500))], ids]
    return rng.choice([(split, split, split), rng.choice(arrays), [rng.choice(arrays), split], *others])


def dumped(rng, value):
    """A value as Python or `data.pickles` writes it, by any protocol."""
    if rng.random() < 0.3:
        file = io.BytesIO()
        pickles.dump(value, file)
        return file.getvalue()
    return pickle.dumps(value, rng.randrange(6))


PARTS = [bytes([op.code.encode("latin1")[0]]) for op in pickletools.opcodes]
NAMES = [
    *(b"os\nsystem\n", b"builtins\nexec\n", b"builtins\neval\n", b"numpy\ndtype\n", b"numpy\nndarray\n"),
    *(b"numpy.core.multiarray\n_reconstruct\n", b"numpy.core.multiarray\nscalar\n", b"builtins\nbytearray\n"),
    *(b"numpy.core.numeric\n_frombuffer\n", b"_codecs\nencode\n", b"builtins\nbytes\n", b"copyreg\n_reconstructor\n"),
]


def _mutated_pickle(rng):
    return mutated(rng, dumped(rng, plain_value(rng)), [*PARTS, *NAMES, b"\xff\xff\xff\x7f", b"(" * 100_000, b"." * 9])


def _argument(rng, kind):
    """An argument for an opcode, by its name in `pickletools`."""
    size = rng.choice([0, 1, 3, 200])
    if kind is None:
        return b""
    fixed = {"uint1": 1, "uint2": 2, "int4": 4, "uint4": 4, "uint8": 8, "float8": 8}
    if kind in fixed:
        small = rng.randrange(9).to_bytes(fixed[kind], "little")
        return small if rng.random() < 0.8 else rng.randbytes(fixed[kind])
    for ending, width in (("1", 1), ("4", 4), ("8", 8)):
        if kind.endswith(ending):
            told = size if rng.random() < 0.8 else rng.randrange(256**width)
            return told.to_bytes(width, "little") + b"a" * size
    if kind == "stringnl_noescape_pair":
        return rng.choice(NAMES)
    return rng.choice([b"0", b"1", b"7", b"'a'", b"00", b"01", b"5L", b"1.5", b"x", b"9" * 30, b"-1"]) + b"\n"


def _soup(rng):
    """Opcodes in any order: mostly plain ones, so that there is something on the stack."""
    common = [op for op in pickletools.opcodes if op.code in "NK]}()aeutsq\x94\x85\x86\x87h"]
    parts = []
    for _ in range(rng.choice([5, 20, 100, 400])):
        op = rng.choice(common if rng.random() < 0.75 else pickletools.opcodes)
        if op.name != "STOP":
            parts.append(op.code.encode("latin1") + _argument(rng, op.arg.name if op.arg else None))
    return b"".join(parts) + b"."


def _attack(rng, canary):
    """A pickle that runs something where names are called, in one of the ways that pickles have."""
    command = f"touch {canary}"
    make = [
        _Call(os.system, command),
        _Call(eval, f"open({str(canary)!r}, 'w')"),
        _Call(exec, f"open({str(canary)!r}, 'w')"),
        _Call(open, str(canary), "w"),
        _Call(subprocess.check_call, ["touch", str(canary)]),
        _Call(getattr, _Call(__import__, "os"), "system"),
    ]
    call = rng.choice(make)
    dtype = _Call(np.dtype, "V8", False, True, state=(3, "|", None, ("a",), {"a": (call, 0)}, 8, 1, 0))
    array = _Call(np._core.multiarray._reconstruct, np.ndarray, (0,), b"b", state=(1, (1,), dtype, False, b"A" * 8))
    objects = np.array([call, None], object)
    wrapped = [call, [call], {"y": [1], "c": call, "r": [[1]]}, ({"y": [call]},), {1: (call,)}, array, objects]
    if rng.random() < 0.6:
        return pickle.dumps(rng.choice(wrapped), rng.randrange(6))
    text = f"X{len(command).to_bytes(4, 'little').decode('latin1')}".encode("latin1") + command.encode()
    by_hand = [
        b"(S'" + command.encode() + b"'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\n" + text + b"o.",  # OBJ
        b"cos\nsystem\n" + text + b"\x85\x81.",  # NEWOBJ
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93" + text + b"\x85R.",  # STACK_GLOBAL
        b"\x80\x04\x8c\x02os\x8c\x06system\x93" + text + b"\x85}\x92.",  # NEWOBJ_EX
        b"]" + text + b"a}U\x0c__setstate__cos\nsystem\nsb" + text + b"b.",  # BUILD
        b"cnumpy\nndarray\n(K\x00\x85U\x01btR}U\x0c__setstate__cos\nsystem\nsb" + text + b"b.",
        b"\x82\x01.",  # EXT1
        text + b"Q.",  # a persistent id
    ]
    content = rng.choice(by_hand)
    return content if rng.random() < 0.5 else mutated(rng, content, [*PARTS, *NAMES])


def _bomb(rng):
    """Few bytes that want much memory, time or stack."""
    n = rng.choice([50, 1000, 30_000, 200_000])
    byte = rng.randrange(256)
    number = rng.choice([2**27, 2**31 - 1, 2**32 - 1]).to_bytes(4, "little")
    doubling = b"".join(b"h%ch%c%cq%c" % (i, i, rng.choice(b"\x86\x86\x87t"), i + 1) for i in range(40))
    dtype = b"cnumpy\ndtype\nU\x02i8\x85R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = b"(" + b"".join(b"\x8a\x08" + rng.choice([0, 1, 2**40, 2**62]).to_bytes(8, "little") for _ in "abc") + b"t"
    state = b"(K\x01" + shape + dtype + b"\x89U\x08" + b"A" * 8 + b"t"
    array = b"cnumpy\nndarray\n(K\x00\x85U\x01btR"
    one = b"(K\x01K\x01\x85" + dtype + b"\x89U\x08" + b"A" * 8 + b"tb"
    return rng.choice(
        [
            b"]" * n + b"a" * n + b".",
            b"N" + b"\x85" * n + b".",
            b"}N" + b"\x85" * n + b"K\x01s.",
            b"(" * n + b"t" * n + b".",
            b"](" + b"]" * n + b"e.",
            b"](" + b"}" * n + b"e.",
            b"](" + b"]q\x00(" + b"K\x01" * n + b"e" + b"h\x00" * n + b"e.",
            b"](K\x01\x85q\x00" + doubling + b"e.",
            b"}K\x01\x85q\x00" + doubling + b"K\x01s.",
            b"]q\x00h\x00a.",
            b"]q\x00" + b"]h\x00a" * 30 + b"h\x00a.",
            b"Nr" + number + b".",
            b"Np" + b"9" * rng.choice([5, 20, 5000]) + b"\n.",
            b"X" + number + b"abc.",
            b"\x8e" + number + bytes([byte] * 4) + b"abc.",
            b"\x96" + number + bytes([byte] * 4) + b"abc.",
            b"\x8b" + number + b"1.",
            b"I" + b"9" * n + b"\n.",
            b"L" + b"9" * n + b"L\n.",
            b"}("
            + b"".join(b"\x8a\x0a" + (i * (2**61 - 1)).to_bytes(10, "little") + b"N" for i in range(n // 9))
            + b"u.",
            array + state + b"b.",
            array + b"q\x01" + one + one + b".",
            b"(" + array + b"q\x01" + one + b"h\x01" + one + b"t.",
            array + one + b"K\x00K\x07s.",
            b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
            b"cbuiltins\nbytes\n\x8a\x06\xff\xff\xff\xff\xff\x7f\x85R.",
            b"](X" + n.to_bytes(4, "little") + b"a" * n + b"q\x00" + b"h\x00" * n + b"e.",
            b"](" + b"I1\na" * n + b"I1\nN.",
        ]
    )


# === Values ===


def hostile_value(rng, value, depth=0):
    """A plain value with one part replaced by something that does not belong there."""
    odd = [
        *(0.9, 5.7, 10**400, -1, 2**40, True, None, "1", "x" * 999, b"ab", [], {}, [[]], (), float("nan")),
        *(["a"], {"y": []}, [1, [2]], np.ones(3), np.ones((2, 2), int), np.zeros(3, complex), "\u2028", ""),
    ]
    many = [3, 1] * rng.choice([5, 2000])
    odd += [[many] * rng.choice([3, 3000]), many]
    if depth and (rng.random() < 0.25 or not isinstance(value, list | tuple | dict) or not value):
        return rng.choice(odd)
    if isinstance(value, dict):
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: hostile_value(rng, value[key], depth + 1)}
    if isinstance(value, list | tuple) and value:
        at = rng.randrange(len(value))
        part = hostile_value(rng, value[at], depth + 1)
        changed = [*value[:at], part, *value[at + 1 :]]
        if rng.random() < 0.1:
            del changed[at]
        return type(value)(changed)
    return rng.choice(odd)


def hostile_json(rng, text):
    """A JSON text with a value replaced, or mutated as bytes."""
    if rng.random() < 0.5:
        return mutated(rng, text.encode())
    value = hostile_value(rng, json.loads(text))
    return json.dumps(value, default=str).replace("\\u2028", rng.choice(["\\ud800", "\\u2028"])).encode()
