"""The text format of SMN (Wu et al. 2017) and DAM: the Ubuntu, Douban and E-commerce corpora.

One candidate per line, `label TAB utterance TAB ... TAB response`, oldest utterance first, words
separated by spaces; lines with the same context follow each other.
"""

import pathlib
from collections.abc import Iterator
from typing import NamedTuple

from colloquy.base.files import PathLike
from colloquy.data.mojibake import REPAIRED, repair
from colloquy.data.report import Report
from colloquy.data.text_files import bad_line, find_files, list_files, read_lines
from colloquy.data.tokenizers import WHITESPACE

TOKENIZER = WHITESPACE
FORMAT = "`label TAB utterance TAB ... TAB response`"
# file names without endings
NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}
ENDINGS = ("", ".txt", ".tsv")


class Line(NamedTuple):
    """One candidate of one context."""

    label: int
    turns: list[str]
    response: str


def find_split(directory: PathLike, split: str) -> pathlib.Path | None:
    """The file of a split: the first of `NAMES` with one of `ENDINGS`, also with `.gz`.

    It is `None` if dev or test is missing; a missing train is a `UserError`.
    """
    patterns = [name + ending for name in NAMES[split] for ending in ENDINGS]
    find = find_files if split == "train" else list_files
    files = find(directory, patterns)
    return files[0] if files else None


def read(path: pathlib.Path, report: Report | None = None) -> Iterator[Line]:
    """Yields each `Line` of a file.

    Args:
        report: Says whether texts were repaired by `data.mojibake`.
    """
    for number, line in read_lines(path, f"lines of {FORMAT}"):
        repaired = repair(line)
        if report and repaired != line:
            report.note(f"{path}: {REPAIRED}")
        label, *turns = repaired.split("\t")
        if len(turns) < 2:
            raise bad_line(path, number, f"{FORMAT}, at least three fields separated by tabs", line)
        if label not in ("0", "1"):
            raise bad_line(path, number, "a label 0 or 1", label)
        response = turns.pop()
        if not response.encode().strip():
            raise bad_line(path, number, "a response that is not empty", line)
        yield Line(int(label), turns, response)
