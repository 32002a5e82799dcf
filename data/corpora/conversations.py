"""A user's own conversations, and LCCC (Wang et al. 2020): one per line, its utterances separated
by tabs.

    UTTERANCE TAB UTTERANCE TAB ...

LCCC's characters are separated by spaces, which the tokenizer of this corpus ignores.
"""

from colloquy.base.files import UserError
from colloquy.data.text_files import bad_line, find_files, read_lines

TOKENIZER = "mixed"
NAMES = {"train": ("train*", "toy_train*"), "dev": ("dev*", "valid*", "toy_valid*")}
"""File names of each split, without their ending `.txt` or `.txt.gz`."""


def find_splits(directory):
    """The files of a directory, `{"train": [files], "dev": [files]}`."""
    return {
        split: find_files(directory, [f"{name}.txt" for name in names])
        for split, names in NAMES.items()
    }


def read(paths, split):
    """Reads conversations, each a list of two or more utterances.

    An empty utterance is refused: without it, its neighbours would answer each other. So are files
    whose lines all begin with 0 or 1, as those of SMN do.
    """
    found = []
    for path in paths:
        first = len(found)
        for number, line in read_lines(path, "conversations"):
            found.append(utterances(path, number, line, line.split("\t"), "tabs"))
        if all(turns[0] in ("0", "1") for turns in found[first:]):
            received = "lines that all begin with 0 or 1, as labels do: a file for --corpus=smn"
            raise UserError(f"{path}: expected utterances. Received: {received}")
    return found


def utterances(path, number, line, turns, separator):
    """The turns of a line, checked to be two or more and none of them empty."""
    if len(turns) < 2:
        raise bad_line(path, number, f"utterances separated by {separator}", line)
    if not all(turn.strip() for turn in turns):
        raise bad_line(path, number, "no empty utterance", line)
    return turns
