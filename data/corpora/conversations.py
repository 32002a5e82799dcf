"""A user's own conversations, and LCCC (Wang et al. 2020).

    UTTERANCE TAB UTTERANCE TAB ...

One conversation per line. LCCC's characters are separated by spaces, which the tokenizer of this
corpus ignores.
"""

from colloquy.base.files import UserError
from colloquy.data.text_files import bad_line, find_files, read_lines

TOKENIZER = "mixed"
NAMES = {"train": ("train*", "toy_train*"), "dev": ("dev*", "valid*", "toy_valid*")}
"""File names of each split, without their ending `.txt` or `.txt.gz`."""


def find_splits(directory):
    """The files of a directory, `{"train": [files], "dev": [files]}`."""
    splits = {}
    for split, names in NAMES.items():
        splits[split] = find_files(directory, [f"{name}.txt" for name in names])
    return splits


def read(paths, split):
    """Reads conversations, each a list of two or more utterances.

    An empty utterance is refused: without it, its neighbours would answer each other. So are files
    whose lines all begin with 0 or 1, as those of SMN do.
    """
    conversations = []
    for path in paths:
        first_turns = set()
        for number, line in read_lines(path, "conversations"):
            turns = line.split("\t")
            require_utterances(path, number, line, turns, "tabs")
            first_turns.add(turns[0])
            conversations.append(turns)
        if first_turns <= {"0", "1"}:
            received = "lines that all begin with 0 or 1, as labels do: a file for --corpus=smn"
            raise UserError(f"{path}: expected utterances. Received: {received}")
    return conversations


def require_utterances(path, number, line, turns, separator):
    """Refuses a line with fewer than two turns, or with an empty one."""
    if len(turns) < 2:
        raise bad_line(path, number, f"utterances separated by {separator}", line)
    if not all(turn.strip() for turn in turns):
        raise bad_line(path, number, "no empty utterance", line)
