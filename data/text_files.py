"""Finds untrusted text files and reads their lines.

Files are UTF-8, or UTF-16 if they begin with its byte order mark. Lines end at `\\n` alone, and a
`\\r` before it is dropped; U+0085, U+2028 and the like are text. A byte order mark at the very
start is dropped. A file that ends in `.gz` is decompressed. Memory stays in proportion to the file.
"""

import codecs
import contextlib
import gzip
import io
import os
import pathlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from colloquy.base.files import PathLike, UserError

Files = dict[str, list[pathlib.Path]]
"""Split -> its files."""

MAX_LINE = 2**20
"""Most bytes of a line, without its end."""
MAX_RATIO = 250
"""Most bytes that a compressed file may contain, per byte of its own.

Text is compressed 3 to 10 times, up to 60 times where each of hundreds of lines repeats a long
context. Gzip reaches 1,030, of one byte repeated.
"""
MIN_CONTENT = 2**22
"""Bytes that a file may contain, however small it is."""
BOM = "\ufeff".encode()
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
CONVERT_UTF16 = "convert it: iconv -f UTF-16LE -t UTF-8 FILE > NEW (or UTF-16BE)"
CONVERT_LINE_ENDS = "convert it: tr '\\r' '\\n' < FILE > NEW"
CONVERT_CP1252 = "if it is Windows-1252, convert it: iconv -f CP1252 -t UTF-8 FILE > NEW"


def bad_line(path: PathLike, number: int, expected: str, received: Any) -> UserError:
    """The error for line `number`, from 1, of a file, with the start of what was received."""
    shown = repr(received[:60])
    if len(received) > 60:
        shown += " ..."
    return UserError(f"{path}, line {number}: expected {expected}. Received: {shown}")


def find_files(directory: PathLike, patterns: Iterable[str]) -> list[pathlib.Path]:
    """The files of `list_files`; a `UserError` if there are none."""
    paths = list_files(directory, patterns)
    if not paths:
        expected = f"a file {' or '.join(patterns)}, also with .gz"
        raise UserError(f"{directory}: expected {expected}. Received: none")
    return paths


def list_files(directory: PathLike, patterns: Iterable[str]) -> list[pathlib.Path]:
    """The files of a directory that match one of some patterns.

    They are ordered by pattern, then by name; files with `.gz`, which match too unless the same
    file without `.gz` exists, come after those without. Hidden files are left out: macOS writes a
    binary file `._NAME` beside each file on some disks.
    """
    directory = pathlib.Path(directory)
    # `Path.is_dir` would raise a `PermissionError` below a forbidden directory.
    if not os.path.isdir(directory):
        raise UserError(f"{directory}: expected the directory of a corpus. Received: no directory")
    paths_by_name: dict[str, pathlib.Path] = {}  # the key lacks `.gz`
    for pattern in patterns:
        paths = sorted(directory.glob(pattern)) + sorted(directory.glob(f"{pattern}.gz"))
        for path in paths:
            # A broken link is refused when it is read.
            if not path.name.startswith(".") and not os.path.isdir(path):
                paths_by_name.setdefault(str(path).removesuffix(".gz"), path)
    return list(paths_by_name.values())


def read_lines(
    path: PathLike,
    expected: str | None = "text",
    fallback: str | None = None,
) -> Iterator[tuple[int, str]]:
    """Yields the number, from 1, and the text of each line.

    A blank line is an empty text; those at the end of the file are left out.

    Args:
        expected: Expected content, for the message about an empty file; `None`: it may be empty.
        fallback: The encoding of lines that are not UTF-8; `None`: they are refused.
    """
    path = pathlib.Path(path)
    last_text = 0  # number of the last line that is not blank
    with readable(path, "a readable text file"), open(path, "rb") as raw:
        for number, line in _raw_lines(path, _as_utf8(path, raw)):
            if not line.strip():
                continue
            # Blank lines are yielded only now, since those at the end are left out.
            for blank in range(last_text + 1, number):
                yield blank, ""
            last_text = number
            yield number, _decode(path, number, line, fallback)
    if not last_text and expected:
        raise UserError(f"{path}: expected {expected}. Received: an empty file")


def read_beginning(path: pathlib.Path) -> str:
    """Returns the first line of a file that is not blank, without the white space before it; only
    the first 4,000 bytes are read.
    """
    text = _read_beginning(path, 4000).decode(errors="ignore")
    return text.lstrip().partition("\n")[0].removesuffix("\r")


def is_utf8(path: pathlib.Path) -> bool:
    """True if the first megabyte of a file is UTF-8, or if the file is UTF-16 with a mark.

    A binary file and damaged UTF-16 are a `UserError`.
    """
    beginning = _read_beginning(path, 2**20)
    try:
        # An incremental decoder accepts a last character that is cut.
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return False
    return True


def _read_beginning(path, count):
    """The first bytes of a file, in UTF-8."""
    with readable(path, "a readable text file"), open(path, "rb") as raw:
        return _as_utf8(path, raw).read(count)


def _as_utf8(path, raw):
    """The content of an open file: decompressed, in UTF-8, without a byte order mark."""
    file = gzip.open(raw) if path.suffix == ".gz" else raw
    beginning = file.read(1000)
    if beginning.startswith(UTF16_MARKS):
        file.seek(0)
        try:
            text = _read_content(path, file).decode("utf-16")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: expected UTF-16, by its mark. {error.reason}") from error
        # The mark of UTF-32 begins like that of UTF-16.
        if "\0" in text[:1000]:
            raise UserError(f"{path}: expected UTF-16, by its mark. Received: a zero character")
        return io.BytesIO(text.encode())
    # In UTF-16, each ASCII character has a zero byte beside it. Two lines are searched, because the
    # first one may be empty.
    first_lines = b"".join(beginning.splitlines(keepends=True)[:2])
    if b"\0" in first_lines:
        received = f"a binary file, or UTF-16 without a mark; {CONVERT_UTF16}"
        raise UserError(f"{path}: expected UTF-8. Received: {received}")
    file.seek(len(BOM) if beginning.startswith(BOM) else 0)
    return file


def _raw_lines(path, file):
    """Yields the number and the bytes of each line of an open file, without its end."""
    limit = largest_content(path)
    number = 0
    size = 0
    # Two bytes more than a line may have: a line feed, and one by which a longer line is noticed.
    while line := file.readline(MAX_LINE + 2):
        number += 1
        size += len(line)
        if number == 1 and not line.endswith(b"\n") and b"\r" in line.strip():
            received = f"lines that end with a carriage return; {CONVERT_LINE_ENDS}"
            raise UserError(
                f"{path}: expected lines that end with a line feed. Received: {received}"
            )
        if len(line.removesuffix(b"\n")) > MAX_LINE:
            raise bad_line(path, number, f"at most {MAX_LINE:,} bytes", line)
        if size > limit:
            raise _too_large(path)
        yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def _read_content(path, file):
    """All bytes of an open file."""
    limit = largest_content(path)
    content = bytearray()
    # In parts: reading `limit` bytes at once would take as much memory for a small file.
    while chunk := file.read(2**20):
        content += chunk
        if len(content) > limit:
            raise _too_large(path)
    return bytes(content)


def read_json_content(path: PathLike) -> bytes:
    """All bytes of a JSON file, decompressed and in UTF-8."""
    path = pathlib.Path(path)
    with readable(path, "a readable JSON file"), open(path, "rb") as raw:
        return _read_content(path, _as_utf8(path, raw))


def largest_content(path: pathlib.Path) -> int:
    """Most bytes that a file may contain when it is decompressed."""
    return max(MIN_CONTENT, MAX_RATIO * path.stat().st_size)


@contextlib.contextmanager
def readable(path: PathLike, expected: str) -> Iterator[None]:
    """Turns a missing or unreadable file into a `UserError`."""
    try:
        yield
    # A .gz file raises an `EOFError` if it is cut off, and a `zlib.error` if it is damaged.
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: expected {expected}. Received: {reason}") from error


def _too_large(path):
    limit = largest_content(path)
    return UserError(f"{path}: expected at most {limit:,} bytes when decompressed. Received: more")


def _decode(path, number, line, fallback):
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if fallback:
            return line.decode(fallback, errors="replace")
        raise bad_line(path, number, f"UTF-8; {CONVERT_CP1252}", bytes_around(error)) from error


def bytes_around(error):
    """The bytes around those that cannot be decoded."""
    return error.object[max(0, error.start - 20) : error.start + 20]
