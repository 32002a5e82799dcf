"""Text and JSON files of any origin: the one reader of lines, the one of JSON, and how both say what is wrong.

Lines end at `\\n` alone, and a `\\r` before it is dropped; U+0085, U+2028 and the like are text. A byte order mark at
the very start is dropped. A file that ends in `.gz` is decompressed. Neither a line nor what is decompressed is read
beyond the bounds below, so no file takes more memory than in proportion to its own size.
"""

import gzip
import io
import json
import pathlib
import zlib

from base.files import UserError

MAX_LINE = 2**20
"""Bytes of a line."""
MAX_RATIO, FREE = 20, 2**22
"""A compressed file may hold so many times its own size, and at least 4 MiB; text is compressed 3 to 10 times."""
BOM = "\ufeff".encode()


def bad_line(path, number, expected, received):
    """The error of a line that is not in a format: raise it.

    Args:
        path: The file.
        number: Of the line, from 1.
        expected: What the format has there.
        received: The line, or the part of it that is wrong; the first 60 characters are shown.
    """
    shown = repr(received[:60]) + (" ..." if len(received) > 60 else "")
    return UserError(f"{path}, line {number}: expected {expected}. Received: {shown}")


def existing_directory(directory, of="a corpus"):
    """The path of a directory that is there.

    Raises:
        UserError: where it is not.
    """
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        raise UserError(f"{directory}: expected the directory of {of}. Received: no directory")
    return directory


def find_files(directory, patterns):
    """The files of a directory that match some patterns, in the order of the patterns, then of their names.

    A file with `.gz` matches too, unless the same file without `.gz` is there.

    Raises:
        UserError: where there is none.
    """
    found = {}  # without `.gz` -> file
    for pattern in patterns:
        for path in [*sorted(directory.glob(pattern)), *sorted(directory.glob(f"{pattern}.gz"))]:
            found.setdefault(str(path).removesuffix(".gz"), path)
    if not found:
        raise UserError(f"{directory}: expected a file {' or '.join(patterns)}, also with .gz")
    return list(found.values())


def read_lines(path, of="text", fallback=None, opener=open):
    r"""Reads a file line by line, blank lines too: what these mean is for the format to say.

    Args:
        path: UTF-8; one that ends in `.gz` is decompressed.
        of: What the file should hold, for the message where it is empty; `None`: it may be.
        fallback: The encoding of lines that are no UTF-8; `None`: there must be none.
        opener: Called with `path` and `"rb"`; `rich.progress.Progress.open` shows how far it is.

    Yields:
        The number of the line, from 1, and its text.

    Raises:
        UserError: where the file is missing, empty or damaged, or a line is too long or no UTF-8.
    """
    path = pathlib.Path(path)
    number, limit = 0, None
    try:
        with opener(path, "rb") as raw:
            lines = gzip.open(raw) if path.suffix == ".gz" else raw
            while line := lines.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise bad_line(path, number, f"at most {MAX_LINE:,} bytes", line)
                if lines is not raw and number % 1000 == 1:
                    limit = limit or largest_content(path)
                    if lines.tell() > limit:
                        raise _too_large(path, limit)
                line = line.removesuffix(b"\n").removesuffix(b"\r")
                yield number, _decode(path, number, line.removeprefix(BOM) if number == 1 else line, fallback)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: expected a readable text file. Received: {reason}") from error
    if not number and of:
        raise UserError(f"{path}: expected {of}. Received: an empty file")


class Span(io.BufferedReader):
    """A part of a file, as if the file were no longer; to be read line by line.

    Args:
        path: The file, which is not compressed.
        start, stop: The part's bytes; a line begins at both.
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
    """How many bytes a compressed file may hold."""
    return max(FREE, MAX_RATIO * path.stat().st_size)


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


def read_json(path):
    """Reads a JSON file.

    Args:
        path: UTF-8; one that ends in `.gz` is decompressed.

    Raises:
        UserError: where the file is missing, damaged or no JSON, is nested deeper than Python's parser goes, has
            numbers of thousands of digits, half a surrogate pair (`"\\ud800"`), or little but brackets.
    """
    path = pathlib.Path(path)
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            limit = largest_content(path)
            raw = file.read(limit + 1) if path.suffix == ".gz" else file.read()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: expected a readable JSON file. Received: {reason}") from error
    if path.suffix == ".gz" and len(raw) > limit:
        raise _too_large(path, limit)
    if raw.count(b"[") + raw.count(b"{") > len(raw) // 8 + 2**19:
        raise UserError(f"{path}: expected JSON with texts and numbers in it. Received: little but brackets")
    try:
        value = json.loads(raw.decode("utf-8-sig"))
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except RecursionError as error:
        raise UserError(f"{path}: expected JSON in UTF-8. Received: brackets nested too deep") from error
    except ValueError as error:
        raise UserError(f"{path}: expected JSON in UTF-8. {str(error)[:200]}") from error
