"""Untrusted text and JSON files: the one reader of lines, and the one of JSON.

Lines end at `\\n` alone, and a `\\r` before it is dropped; U+0085, U+2028 and the like are text. A
byte order mark at the very start is dropped. A file that ends in `.gz` is decompressed. Memory
stays in proportion to the file.
"""

import contextlib
import gzip
import io
import json
import pathlib
import zlib

from pydantic import TypeAdapter, ValidationError

from colloquy.base.config import sentence
from colloquy.base.files import UserError, atomic_file

MAX_LINE = 2**20  # bytes of a line
MAX_RATIO, FREE = 20, 2**22
"""A compressed file may contain `MAX_RATIO` times its size, and at least 4 MiB; text is compressed
3 to 10 times.
"""
BOM = "\ufeff".encode()


def bad_line(path, number, expected, received):
    """The error for line `number`, from 1, of a file; the first 60 characters of `received` are
    shown.
    """
    shown = repr(received[:60]) + (" ..." if len(received) > 60 else "")
    return UserError(f"{path}, line {number}: expected {expected}. Received: {shown}")


def in_one_line(error, length=200):
    """The message of an error without line ends, cut at a length."""
    return " ".join(str(error).split())[:length]


def existing_directory(directory, of="a corpus"):
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        raise UserError(f"{directory}: expected the directory of {of}. Received: no directory")
    return directory


def find_files(directory, patterns, of="a corpus"):
    """The files of a directory that match some patterns, ordered by pattern, then by name; a
    `UserError` if none.

    A file with `.gz` matches too, unless the same file without `.gz` exists.
    """
    directory, found = existing_directory(directory, of), {}  # without `.gz` -> file
    for pattern in patterns:
        for path in [*sorted(directory.glob(pattern)), *sorted(directory.glob(f"{pattern}.gz"))]:
            found.setdefault(str(path).removesuffix(".gz"), path)
    if not found:
        raise UserError(f"{directory}: expected a file {' or '.join(patterns)}, also with .gz")
    return list(found.values())


def read_lines(path, of="text", fallback=None, opener=open):
    """Yields the number, from 1, and the text of each line; blank ones are empty, and left out at
    the end of the file.

    Args:
        of: Expected content, for the message about an empty file; `None`: it may be empty.
        fallback: The encoding of lines that are not UTF-8; `None`: they are refused.
        opener: Called with `path` and `"rb"`; `rich.progress.Progress.open` shows the progress.
    """
    path = pathlib.Path(path)
    number, blank, limit = 0, 0, None
    with readable(path, "a readable text file"), opener(path, "rb") as raw:
        lines = gzip.open(raw) if path.suffix == ".gz" else raw
        while line := lines.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise bad_line(path, number, f"at most {MAX_LINE:,} bytes", line)
            if lines is not raw and number % 1000 == 1:
                limit = limit or largest_content(path)
                if lines.tell() > limit:
                    raise _too_large(path, limit)
            if not line.strip():
                blank += 1
                continue
            yield from ((before, "") for before in range(number - blank, number))
            blank, line = 0, line.removesuffix(b"\n").removesuffix(b"\r")
            yield (
                number,
                _decode(path, number, line.removeprefix(BOM) if number == 1 else line, fallback),
            )
    if number == blank and of:
        raise UserError(f"{path}: expected {of}. Received: an empty file")


class Span(io.BufferedReader):
    """The bytes from `start` to `stop` of an uncompressed file, read line by line; a line begins at
    both.
    """

    def __init__(self, path, start, stop):
        super().__init__(io.FileIO(path))
        self.seek(start)
        self._left = stop - start

    def readline(self, size=-1):
        line = super().readline(size) if self._left > 0 else b""
        self._left -= len(line)
        return line


def largest_content(path):
    """Most bytes that a compressed file may contain."""
    return max(FREE, MAX_RATIO * path.stat().st_size)


@contextlib.contextmanager
def readable(path, expected):
    """Turns a missing or unreadable file into a `UserError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: expected {expected}. Received: {reason}") from error


def _too_large(path, limit):
    return UserError(f"{path}: expected at most {limit:,} bytes when decompressed. Received: more")


def _decode(path, number, line, fallback):
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if fallback:
            return line.decode(fallback, errors="replace")
        around = line[max(0, error.start - 20) : error.start + 20]
        raise bad_line(path, number, "UTF-8", around) from error


def read_json(path, kind=None):
    """Reads a JSON file, UTF-8, see `validated` for its `kind`.

    Refused are also nesting deeper than Python's parser goes, numbers of thousands of digits, half
    a surrogate pair (`"\\ud800"`), and little but brackets.
    """
    path = pathlib.Path(path)
    with (
        readable(path, "a readable JSON file"),
        (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file,
    ):
        limit = largest_content(path)
        raw = file.read(limit + 1) if path.suffix == ".gz" else file.read()
    if path.suffix == ".gz" and len(raw) > limit:
        raise _too_large(path, limit)
    if raw.count(b"[") + raw.count(b"{") > len(raw) // 8 + 2**19:
        raise UserError(f"{path}: expected JSON with texts and numbers. Received: mostly brackets")
    try:
        value = json.loads(raw.decode("utf-8-sig"))
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise UserError(
            f"{path}: expected JSON in UTF-8. Received: brackets nested too deep"
        ) from error
    except ValueError as error:
        raise UserError(f"{path}: expected JSON in UTF-8. {in_one_line(error)}") from error
    return value if kind is None else validated(path, kind, value)


def write_json(path, value):
    """Writes a JSON file as `base.files.atomic_file` does."""
    with atomic_file(path) as file:
        json.dump(value, file, indent=1, ensure_ascii=False)


def validated(path, kind, value):
    """The value of a file as a `kind`, any type that pydantic knows; a `UserError` if it is
    something else.
    """
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise UserError(f"{path}: {sentence(error)}") from error
