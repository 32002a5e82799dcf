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
# File names without endings, the preferred one first.
NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}
ENDINGS = ("", ".txt", ".tsv")


class Line(NamedTuple):
    """One candidate of one context."""

    label: int
    """1 for a correct response of the context, 0 for a wrong one."""
    turns: list[str]
    response: str


def find_split(directory: PathLike, split: str) -> pathlib.Path | None:
    """The file of a split, also with `.gz`.

    Names are tried in the order of `NAMES`, each with all `ENDINGS`. Returns `None` if dev or test
    is missing; a missing train is a `UserError`.
    """
    patterns = [name + ending for name in NAMES[split] for ending in ENDINGS]
    # Unlike `list_files`, `find_files` refuses a directory without such a file.
    find = find_files if split == "train" else list_files
    files = find(directory, patterns)
    return files[0] if files else None


def read(path: pathlib.Path, report: Report | None = None) -> Iterator[Line]:
    """Yields a `Line` for each line of a file.

    Args:
        report: Gets a note if `data.mojibake` repairs a line.
    """
    for number, line in read_lines(path, f"lines of {FORMAT}"):
        # Each field alone: two lines with one context keep it, although their responses differ.
        fields = [repair(field) for field in line.split("\t")]
        if report and "\t".join(fields) != line:
            report.note(f"{path}: {REPAIRED}")
        label, *texts = fields
        if len(texts) < 2:
            raise bad_line(path, number, f"{FORMAT}, at least three fields separated by tabs", line)
        if label not in ("0", "1"):
            raise bad_line(path, number, "a label 0 or 1", label)
        *turns, response = texts
        # `bytes.strip` removes ASCII white space alone, as the tokenizer does: an ideographic space
        # is a word.
        if not response.encode().strip():
            raise bad_line(path, number, "a response that is not empty", line)
        yield Line(int(label), turns, response)
