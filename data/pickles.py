"""Reads pickles, the file format of DAM's release, as untrusted files.

Files are read by a subclass of `pickle._Unpickler`, the unpickler that is written in Python. It
refuses the opcodes that plain values do not need. In place of NumPy's constructors it calls the
functions of `data.pickled_arrays`, so nothing that a file names is imported or called.

Memory is not bounded here: a small file can describe large values. `prepare.py` bounds it by
`--max_memory_gb`.
"""

import gc
import io
import pathlib
import pickle
import struct
from typing import Any, ClassVar

import numpy as np

from colloquy.base.files import PathLike, UserError, in_one_line
from colloquy.data.pickled_arrays import CONSTRUCTORS, DType, fill_array
from colloquy.data.text_files import readable

EXPECTED = "expected a whole pickle of lists, dicts, numbers, texts and arrays"
MAX_DEPTH = 32
"""Containers within containers."""
ITEMS_PER_BYTE = 64
"""Most items that a value may have for each byte of its file.

Without references, an item takes a byte or more. A reference to a list takes two bytes and counts
as all items of the list: honest files refer to a context from each of its lines.
"""
SMALL_VALUE = 2**20
"""A value may have this many items, however small its file is."""
CONTAINERS = {list, tuple, dict}
# NumPy's bool, integers and floats, by their letters.
SCALARS = {np.dtype(code).type for code in "?bhilqBHILQefdg"}
PLAIN_TYPES = {type(None), bool, int, float, str, bytes, np.ndarray} | CONTAINERS | SCALARS


def load(path: PathLike) -> Any:
    """Reads a pickle of plain values of any protocol.

    Text of Python 2 is read as latin-1: `text.encode("latin1").decode("utf-8")` gives its
    characters.

    Raises:
        UserError: The file is missing, incomplete, or has anything but lists, tuples, dicts,
            numbers, texts, bytes and arrays of numbers.
    """
    path = pathlib.Path(path)
    with readable(path, "a pickle"):
        content = path.read_bytes()
    if not content:
        raise UserError(f"{path}: expected a pickle. Received: an empty file")

    max_items = ITEMS_PER_BYTE * len(content) + SMALL_VALUE
    # The garbage collector would look through millions of lists again and again.
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        value = _Unpickler(io.BytesIO(content), encoding="latin1").load()
        _require_plain(value, max_items)
    except MemoryError as error:
        raise UserError(f"{path}: its values take more memory than this process may use") from error
    except Exception as error:  # damaged bytes can raise almost any exception
        kind = "" if type(error) is pickle.UnpicklingError else f"{type(error).__name__}: "
        reason = in_one_line(f"{kind}{error}", 200)
        raise UserError(f"{path}: {EXPECTED}. Received: {reason}") from error
    finally:
        if is_collecting:
            gc.enable()
    return value


def _require_plain(value, max_items):
    """Refuses a value that has a type outside `PLAIN_TYPES`, too many items or too much nesting.

    A list counts each time that it is referred to: a file of a few hundred bytes can describe a
    list of lists that no program could go through. A list that contains itself has endless nesting.
    """
    num_items = 0
    # The containers of one depth. The first one is made here and contains the whole value.
    containers = [[value]]
    for _ in range(1 + MAX_DEPTH):
        inner_containers = []
        for container in containers:
            items = container
            if type(container) is dict:
                items = [*container.keys(), *container.values()]
            num_items += len(items)
            if num_items > max_items:
                raise pickle.UnpicklingError(
                    f"references to more than {ITEMS_PER_BYTE} times what it holds"
                )

            item_types = set(map(type, items))
            if not item_types <= PLAIN_TYPES:
                raise pickle.UnpicklingError("a name or a dtype in the place of a value")
            if str in item_types:
                _require_unicode(items)
            if not item_types.isdisjoint(CONTAINERS):
                inner_containers.extend(item for item in items if type(item) in CONTAINERS)
        if not inner_containers:
            return
        containers = inner_containers
    raise pickle.UnpicklingError(f"lists, tuples and dicts nested deeper than {MAX_DEPTH}")


def _require_unicode(items):
    """Raises a `UnicodeEncodeError` if a text has half of a surrogate pair, as `"\\ud800"`."""
    # A set, because a file can refer to a long text many times.
    texts = {item for item in items if type(item) is str}
    "".join(texts).encode()


# === The unpickler ===

SMALL_INTEGERS = list(range(2**16))
"""The integers of two bytes, such as word ids. All lists share these objects, while Python's
unpickler makes a new object of 32 bytes for each occurrence of an id.
"""
INHERITED_OPCODES = """
    PROTO FRAME MARK
    NONE NEWTRUE NEWFALSE
    FLOAT BINFLOAT
    INT BININT BININT1
    LONG LONG1 LONG4
    STRING BINSTRING SHORT_BINSTRING
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    BINBYTES SHORT_BINBYTES BINBYTES8
    EMPTY_DICT
    EMPTY_LIST LIST APPEND APPENDS
    EMPTY_TUPLE TUPLE
    TUPLE1 TUPLE2 TUPLE3
    BINPUT LONG_BINPUT MEMOIZE
    GET BINGET LONG_BINGET
    GLOBAL STACK_GLOBAL
""".split()
"""Names of the opcodes that do here what they do in Python's unpickler, one kind on a line.

`STRING` and its relatives are text or bytes of Python 2.
"""


def _inherited_methods():
    """Opcode, a byte -> the method of Python's unpickler."""
    methods = {}
    for name in INHERITED_OPCODES:
        (opcode,) = getattr(pickle, name)
        methods[opcode] = pickle._Unpickler.dispatch[opcode]
    return methods


class _Unpickler(pickle._Unpickler):
    """Python's unpickler without anything that plain values do not need."""

    def load_binint2(self):
        """Reads an integer of two bytes."""
        low, high = self.read(2)
        self.append(SMALL_INTEGERS[low + 256 * high])

    def find_class(self, module, name):
        full_name = f"{module}.{name}"
        if full_name not in CONSTRUCTORS:
            raise pickle.UnpicklingError(f"the name {full_name[:100]!r}")
        return CONSTRUCTORS[full_name]

    def load_reduce(self):
        """Calls one of `CONSTRUCTORS`."""
        arguments = self.stack.pop()
        constructor = self.stack.pop()
        is_constructor = any(constructor is known for known in CONSTRUCTORS.values())
        if not is_constructor or type(arguments) is not tuple:
            raise pickle.UnpicklingError("a call of something else than a constructor")
        self.append(constructor(*arguments))

    def load_build(self):
        """Gives a dtype or an array its state."""
        state = self.stack.pop()
        instance = self.stack[-1]
        if type(state) is not tuple:
            raise pickle.UnpicklingError("a state that is not a tuple")
        if type(instance) is DType:
            instance.set_state(state)
        elif type(instance) is np.ndarray:
            fill_array(instance, state)
        else:
            raise pickle.UnpicklingError("a state of something else than an array or a dtype")

    def load_setitem(self):
        value = self.stack.pop()
        key = self.stack.pop()
        self._update([key, value])

    def load_setitems(self):
        self._update(self.pop_mark())

    def load_dict(self):
        items = self.pop_mark()
        self.append({})
        self._update(items)

    def _update(self, items):
        """Puts keys and values, `[key, value, key, value, ...]`, into the dict on the stack.

        Many keys of equal hashes would make the dict slow. Python's hashes of texts and bytes
        differ in each process, and small integers are their own hashes, so no file can choose many
        that are equal. It could with large integers and with tuples.
        """
        target = self.stack[-1]
        if type(target) is not dict:
            raise pickle.UnpicklingError("a key of something else than a dict")
        keys = items[::2]
        values = items[1::2]
        for key in keys:
            is_small_integer = type(key) is int and -(2**31) <= key < 2**31
            if not is_small_integer and type(key) not in (str, bytes):
                raise pickle.UnpicklingError("a key that is not text, bytes or a 32-bit integer")
        target.update(zip(keys, values, strict=True))

    def load_put(self):
        """Stores a value under a number, for later references.

        The memo is a dict, so its large numbers are refused as the keys of `_update` are.
        """
        index = int(self.readline())
        if not 0 <= index < 2**32:
            raise pickle.UnpicklingError("an entry of the memo that is not a 32-bit integer")
        self.memo[index] = self.stack[-1]

    def load_bytearray8(self):
        """Reads the content of an array, as protocol 5 writes it.

        Python's own would first reserve as much memory as the file claims to need.
        """
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(self.read(size))

    def load_stop(self):
        """Ends the file, which must have described one value."""
        if len(self.stack) != 1 or self.metastack:
            raise pickle.UnpicklingError("something else than one value")
        super().load_stop()

    def refuse_opcode(self):
        raise pickle.UnpicklingError("an opcode that plain values do not need")

    # Opcode, a byte -> the method that Python's unpickler calls for it. Later entries count.
    dispatch: ClassVar[dict[int, Any]] = {
        **dict.fromkeys(range(256), refuse_opcode),
        **_inherited_methods(),
        pickle.BININT2[0]: load_binint2,
        pickle.REDUCE[0]: load_reduce,
        pickle.BUILD[0]: load_build,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
        pickle.DICT[0]: load_dict,
        pickle.PUT[0]: load_put,
        pickle.BYTEARRAY8[0]: load_bytearray8,
        pickle.STOP[0]: load_stop,
    }
