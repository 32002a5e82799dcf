"""Reads JSON files, checks what is read, and writes them; `data.text_files` says their encoding."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter, ValidationError

from colloquy.base.config import sentence
from colloquy.base.files import PathLike, UserError, atomic_file, in_one_line
from colloquy.data.text_files import (
    BOM,
    CONVERT_CP1252,
    bad_line,
    bytes_around,
    read_json_content,
    read_lines,
)


def read_json_lines(path: pathlib.Path, value_type: Any, expected: str) -> Iterator[Any]:
    """Yields the value of each line that is not blank, as a type that pydantic knows.

    Args:
        expected: The form of a line, for messages.
    """
    adapter = TypeAdapter(value_type)
    for number, line in read_lines(path, "JSON lines"):
        if not line.strip():
            continue
        try:
            yield adapter.validate_json(line)
        except ValidationError as error:
            raise bad_line(path, number, expected, line) from error


def read_json(path: PathLike, value_type: Any = Any) -> Any:
    """Reads a JSON file in UTF-8, or UTF-16 with a mark, and checks its value by `validated`."""
    return validated(path, value_type, parse_json(path, read_json_content(path)))


def parse_json(path: PathLike, content: bytes) -> Any:
    """Parses the content of a JSON file in UTF-8.

    It refuses brackets nested too deep for Python's parser, numbers of thousands of digits and
    half of a surrogate pair (`"\\ud800"`).
    """
    try:
        text = content.removeprefix(BOM).decode()
        value = json.loads(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # raises for half of a surrogate pair
    except RecursionError as error:
        reason = "brackets nested too deep"
        raise UserError(f"{path}: expected JSON in UTF-8. Received: {reason}") from error
    except UnicodeDecodeError as error:
        received = repr(bytes_around(error))
        raise UserError(
            f"{path}: expected UTF-8; {CONVERT_CP1252}. Received: {received}"
        ) from error
    except ValueError as error:
        raise UserError(f"{path}: expected JSON in UTF-8. {in_one_line(error, 200)}") from error
    return value


def write_json(path: PathLike, value: object) -> None:
    """Writes a JSON file as `base.files.atomic_file` does.

    Raises:
        UserError: The file cannot be written, or a text of the value, such as a path, is not UTF-8.
    """
    try:
        with atomic_file(path) as file:
            json.dump(value, file, indent=1, ensure_ascii=False)
    except UnicodeEncodeError as error:
        received = ascii(error.object[max(0, error.start - 20) : error.end + 20])
        raise UserError(
            f"{path}: expected text in UTF-8, also in paths. Received: {received}"
        ) from error


def validated(path: PathLike, value_type: Any, value: object) -> Any:
    """Returns the value of a file as a `value_type`, any type that pydantic knows."""
    try:
        return TypeAdapter(value_type).validate_python(value)
    except ValidationError as error:
        raise UserError(f"{path}: {sentence(error)}") from error
