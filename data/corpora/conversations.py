"""A user's own conversations, and LCCC (Wang et al. 2020).

    UTTERANCE TAB UTTERANCE TAB ...

One conversation per line, or a file of `data.corpora.chat_files`. LCCC's characters are separated
by spaces, which the tokenizer of this corpus ignores.
"""

import pathlib

from colloquy.base.files import UserError
from colloquy.data.corpora import chat_files
from colloquy.data.corpora.splits import ALL
from colloquy.data.text_files import bad_line, find_files, list_files, read_lines

TOKENIZER = "mixed"
NAMES = {
    "train": ("train*", "toy_train*"),
    "dev": ("dev*", "valid*", "toy_valid*"),
    "test": ("test*",),
}
"""File names of each split, without their ending."""
ENDINGS = (".txt", ".jsonl", ".csv")
OTHER_FORMS = "JSON lines of messages, a WhatsApp export or a .csv file: docs/own_conversations.md"


def find_splits(source):
    """Finds the files of each split, `{"train": [files], "dev": [files], ...}`.

    A directory without dev, and a file in its place, has `{ALL: [files]}`.
    """
    source = pathlib.Path(source)
    if source.is_file():
        return {ALL: [source]}
    files_by_split = {}
    for split, names in NAMES.items():
        files = list_files(source, _patterns(names), "conversations, or a file of them")
        if files:
            files_by_split[split] = files
    if "train" in files_by_split and "dev" in files_by_split:
        return files_by_split
    if "dev" in files_by_split or "test" in files_by_split:
        lacks = "dev" if "train" in files_by_split else "train"
        find_files(source, _patterns(NAMES[lacks]))  # raises
    if "train" in files_by_split:
        return {ALL: files_by_split["train"]}
    return {ALL: find_files(source, _patterns(["*"]))}


def _patterns(names):
    return [f"{name}{ending}" for name in names for ending in ENDINGS]


def read(paths, split):
    """Reads conversations, each a list of two or more utterances."""
    conversations = []
    for path in paths:
        read_file = _choose_reader(path)
        conversations += read_file(path)
    return conversations


def _choose_reader(path):
    """The function that reads a file: by its ending `.csv`, else by its first line."""
    if path.name.removesuffix(".gz").endswith(".csv"):
        return chat_files.read_table
    _, first_line = next(read_lines(path, "conversations"))
    if first_line.startswith("{"):
        return chat_files.read_role_messages
    if chat_files.is_whatsapp(first_line):
        return chat_files.read_whatsapp
    return _read_tabs


def _read_tabs(path):
    """Reads lines of utterances separated by tabs.

    An empty utterance is refused: without it, its neighbours would answer each other. So are files
    whose lines all begin with 0 or 1, as those of SMN do.
    """
    conversations = []
    first_turns = set()
    for number, line in read_lines(path, "conversations"):
        turns = line.split("\t")
        require_utterances(path, number, line, turns, f"tabs; or {OTHER_FORMS}")
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
