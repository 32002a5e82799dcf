"""The text format of SMN (Wu et al. 2017) and DAM: the Ubuntu, Douban and E-commerce corpora.

One candidate per line, `label TAB utterance TAB ... TAB response`, oldest utterance first, words
separated by spaces; lines with the same context follow each other.
"""

from typing import NamedTuple

from colloquy.base.files import UserError
from colloquy.data.text_files import bad_line, existing_directory, read_lines
from colloquy.data.tokenizers import WHITESPACE

TOKENIZER = WHITESPACE
FORMAT = "`label TAB utterance TAB ... TAB response`"
# file names without endings
NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}
ENDINGS = ("", ".gz", ".txt", ".txt.gz", ".tsv", ".tsv.gz")


class Line(NamedTuple):
    """One candidate of one context."""

    label: int
    turns: list[str]
    response: str


def find_split(directory, split):
    """The file of a split: the first of `NAMES` with one of `ENDINGS`.

    It is `None` if dev or test is missing; a missing train is a `UserError`.
    """
    directory = existing_directory(directory)
    names = [name + ending for name in NAMES[split] for ending in ENDINGS]
    for name in names:
        if (directory / name).is_file():
            return directory / name
    if split == "train":
        raise UserError(f"{directory}: expected a training file, one of {', '.join(names)}")
    return None


def read(path, opener=open):
    """Yields each `Line` of a file; `opener`: see `data.text_files.read_lines`."""
    for number, line in read_lines(path, f"lines of {FORMAT}", opener=opener):
        label, *utterances = line.split("\t")
        if not utterances:
            raise bad_line(path, number, f"{FORMAT}, which has tabs", label)
        if label not in ("0", "1"):
            raise bad_line(path, number, "a label 0 or 1", label)
        *turns, response = utterances
        if not turns:
            raise bad_line(path, number, f"{FORMAT}, at least three fields", line)
        if not response.encode().strip():
            raise bad_line(path, number, "a response that is not empty", line)
        yield Line(int(label), turns, response)
