"""Reads the header and the rows of a table in CSV, and names the line of what is wrong."""

import csv
import pathlib
import re
from typing import NamedTuple

from colloquy.base.files import UserError, in_one_line
from colloquy.data.text_files import bad_line, read_lines

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SEPARATOR_LINE = re.compile(r"sep=([,;\t|])", re.IGNORECASE)
"""First line of a table by which Excel is told its delimiter."""
END = "\0"
"""A line that is added at the end. If a quotation mark is not closed, a value contains it."""


class Table(NamedTuple):
    """The content of a table."""

    delimiter: str
    header_line: int
    """Number of the header's line in the file, from 1."""
    names: list[str]
    """The names of the columns."""
    rows: list[list[str]]
    """The values of each row, as many as there are names."""


def read_rows(path: pathlib.Path) -> Table:
    """Reads a table; empty lines are left out."""
    lines = [line for _, line in read_lines(path, "conversations")]
    place, delimiter = _find_header(lines)
    # The lines above the header become empty instead of being dropped, so that `csv` counts the
    # lines as the file does.
    lines[:place] = [""] * place
    names: list[str] = []
    rows = []
    for number, values in _split_rows(path, lines, delimiter):
        # The first row is the header.
        if not names:
            names = values
            continue
        if len(values) != len(names):
            expected = f"{len(names)} fields, as in the header"
            raise bad_line(path, number, expected, delimiter.join(values))
        rows.append(values)
    return Table(delimiter, place + 1, names, rows)


def _find_header(lines):
    """Returns the index of the header's line, and the delimiter.

    A first line `sep=;` names the delimiter. Otherwise it is the most frequent one of the header.
    """
    named = SEPARATOR_LINE.fullmatch(lines[0].strip(" \r"))
    place = 1 if named else 0
    while place < len(lines) - 1 and not lines[place].strip():
        place += 1
    return place, named[1] if named else find_delimiter(lines[place])


def find_delimiter(line: str) -> str:
    """The most frequent delimiter of a line."""
    return max(DELIMITERS, key=line.count)


def _split_rows(path, lines, delimiter):
    """Yields the number of the last line of each row, from 1, and the row's values.

    A row has several lines if there is a line feed inside of quotation marks.
    """
    reader = csv.reader((f"{line}\n" for line in [*lines, END]), delimiter=delimiter)
    lines_before = 0  # lines before the row
    try:
        for values in reader:
            is_last = reader.line_num > len(lines)
            if is_last and values != [END]:
                raise bad_line(path, lines_before + 1, 'a `"` that is closed', lines[lines_before])
            lines_before = reader.line_num
            if values and not is_last:
                yield reader.line_num, values
    except csv.Error as error:
        where = f"{path}, line {reader.line_num}"
        raise UserError(f"{where}: expected a CSV row. {in_one_line(error, 100)}") from error
