"""Conversations of one's own, and LCCC (Wang et al. 2020): one per line, its utterances separated by tabs.

    UTTERANCE TAB UTTERANCE TAB ...

LCCC's characters are separated by spaces, which the tokenizer of this corpus passes over.
"""

from base.files import UserError
from data.text_files import bad_line, existing_directory, find_files, read_lines

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
    directory = existing_directory(directory)
    return {split: find_files(directory, [f"{name}.txt" for name in names]) for split, names in NAMES.items()}


def read(paths, split):
    r"""Reads conversations.

    Args:
        paths: Files, UTF-8; those that end in `.gz` are decompressed.
        split: Not used: each split has its files.

    Returns:
        List of conversations, each a list of utterances, two or more.

    Raises:
        UserError: where a file is missing, damaged or empty, a line has no tab, an utterance is empty (to pass over it
            would make its neighbours answer each other), or every line begins with 0 or 1, as the lines of SMN do.
    """
    found = []
    for path in paths:
        first = len(found)
        for number, line in read_lines(path, "conversations"):
            turns = line.split("\t")
            if len(turns) < 2:
                raise bad_line(path, number, "utterances separated by tabs", line)
            if not all(turn.strip() for turn in turns):
                raise bad_line(path, number, "no empty utterance", line)
            found.append(turns)
        if all(turns[0] in ("0", "1") for turns in found[first:]):
            raise UserError(
                f"{path}: expected utterances. Received: lines that all begin with 0 or 1, as labels do: "
                "a file for --corpus=smn"
            )
    return found
