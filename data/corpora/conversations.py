"""Conversations of one's own, and LCCC (Wang et al. 2020): one a line, its utterances parted by tabs.

    UTTERANCE TAB UTTERANCE TAB ...

LCCC's characters are parted by spaces, which the tokenizer of this corpus passes over.
"""

import gzip
import pathlib
import zlib

from base.files import UserError

TOKENIZER = "mixed"
NAMES = {"train": ("train*", "toy_train*"), "dev": ("dev*", "valid*", "toy_valid*")}
"""How the files of each split may be named, before their ending `.txt` or `.txt.gz`."""


def find_splits(directory):
    """Finds the files of a directory.

    Returns:
        `{"train": [files], "dev": [files]}`, see `NAMES`.

    Raises:
        UserError: where the directory or all files of a split are missing.
    """
    directory = existing(directory)
    return {split: find(directory, [f"{name}.txt" for name in names]) for split, names in NAMES.items()}


def read(paths, split):
    r"""Reads conversations.

    Args:
        paths: Files, UTF-8; those that end in `.gz` are decompressed.
        split: Not used: each split has its files.

    Returns:
        List of conversations, each a list of utterances, two or more.

    Raises:
        UserError: where a file is missing, damaged or empty, a line has no tab, or an utterance is empty: to pass over
            it would make its neighbours answer each other.
    """
    found = []
    for path in paths:
        for number, line in read_lines(path):
            turns = line.split("\t")
            if len(turns) < 2:
                raise UserError(f"{path}, line {number}: expected utterances parted by tabs. Received: {line!r:.60}")
            if not all(turn.strip() for turn in turns):
                raise UserError(f"{path}, line {number}: expected no empty utterance. Received: {line!r:.60}")
            found.append(turns)
    return found


# === For all corpora of conversations ===


def existing(directory):
    """The path of a directory that is there.

    Raises:
        UserError: where it is not.
    """
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        raise UserError(f"{directory}: expected the directory of a corpus. Received: no directory")
    return directory


def find(directory, patterns):
    """The files of a directory that match some patterns, in the order of the patterns, then of their names.

    A file with `.gz` matches too, where it does not lie there unpacked.

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


def read_lines(path, fallback=None):
    r"""Reads a file line by line; lines end at `\n` alone, and a `\r` before it is dropped.

    Args:
        path: UTF-8; one that ends in `.gz` is decompressed.
        fallback: The encoding of lines that are no UTF-8; `None`: there must be none.

    Yields:
        The number of the line, from 1, and its text.

    Raises:
        UserError: where the file is missing, empty or damaged, or a line is no UTF-8.
    """
    path = pathlib.Path(path)
    number = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                yield number, _decode(path, number, line.removesuffix(b"\n").removesuffix(b"\r"), fallback)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: expected a readable text file. Received: {reason}") from error
    if not number:
        raise UserError(f"{path}: expected conversations. Received: an empty file")


def _decode(path, number, line, fallback):
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if fallback:
            return line.decode(fallback, errors="replace")
        shown = line[max(0, error.start - 20) : error.start + 20]
        raise UserError(f"{path}, line {number}: expected UTF-8. Received: {shown!r}") from error
