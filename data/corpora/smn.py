"""The text format of SMN (Wu et al. 2017) and DAM: the Ubuntu, Douban and E-commerce corpora.

One candidate a line, `label TAB utterance TAB ... TAB response`, oldest utterance first, words
parted by spaces; lines with the same context follow each other.
"""

import gzip
import pathlib
import zlib
from typing import NamedTuple

from base.files import UserError

FORMAT = "`label TAB utterance TAB ... TAB response`"
NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}
"""How the files of each split may be named, before their ending."""
ENDINGS = tuple(text + gz for text in ("", ".txt", ".tsv") for gz in ("", ".gz"))


class Line(NamedTuple):
    """One candidate of one context."""

    number: int
    """Where it stands in its file, from 1."""
    label: int
    """1 right, 0 wrong."""
    turns: list[str]
    response: str


def tokenize(text):
    r"""Splits at ASCII white space alone, as `tf.strings.split` does in an exported model.

    >>> tokenize(" good\u00a0morning ,  sir ")
    ['good\xa0morning', ',', 'sir']
    """
    return [token.decode() for token in text.encode().split()]


def find_split(directory, split):
    """Finds the file of a split.

    Args:
        directory: Where the corpus lies.
        split: `"train"`, `"dev"` or `"test"`.

    Returns:
        The path of the first that exists of `train`, `train.gz`, `train.txt`, `train.txt.gz`,
        `train.tsv`, `train.tsv.gz` (dev may also be `valid` or `validation`); `None` if none does.

    Raises:
        UserError: where `directory` is none, or has no training file.
    """
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        raise UserError(f"{directory}: expected the directory of a corpus. Received: no directory")
    names = [name + ending for name in NAMES[split] for ending in ENDINGS]
    for name in names:
        if (directory / name).is_file():
            return directory / name
    if split == "train":
        raise UserError(f"{directory}: expected a training file, one of {', '.join(names)}")
    return None


def read(path, opener=open):
    r"""Reads a file line by line.

    Lines end at `\n` alone, and a `\r` before it is dropped; U+2028 and the like are text.

    Args:
        path: A UTF-8 file; one that ends in `.gz` is decompressed.
        opener: Called with `path` and `"rb"`; `rich.progress.Progress.open` shows how far it is.

    Yields:
        `Line`.

    Raises:
        UserError: at the first line that is not in the format; where the file is missing, empty or
            damaged.
    """
    path = pathlib.Path(path)
    number = 0
    try:
        with opener(path, "rb") as raw:
            lines = gzip.open(raw) if path.suffix == ".gz" else raw
            for number, line in enumerate(lines, 1):
                yield _parse(path, number, line)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: expected a readable text file. Received: {reason}") from error
    if not number:
        raise UserError(f"{path}: expected lines of {FORMAT}. Received: an empty file")


def _parse(path, number, line):
    def fail(expected, received):
        shown = repr(received[:60]) + (" ..." if len(received) > 60 else "")
        raise UserError(f"{path}, line {number}: expected {expected}. Received: {shown}")

    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        label, *utterances = line.decode().split("\t")
    except UnicodeDecodeError as error:
        fail("UTF-8", line[max(0, error.start - 20) : error.start + 20])
    if not utterances:
        fail(f"{FORMAT}, which has tabs", label)
    if label not in ("0", "1"):
        fail("a label 0 or 1", label)
    *turns, response = utterances
    if not turns:
        fail(f"{FORMAT}, at least three fields", line.decode())
    if not response.encode().strip():
        fail("a response that is not empty", line.decode())
    return Line(number, int(label), turns, response)
