"""A user's own conversations, and LCCC (Wang et al. 2020).

    UTTERANCE TAB UTTERANCE TAB ...

One conversation per line, or another form: `chat_files`, `tables`, `whatsapp`. LCCC's characters
are separated by spaces, which the tokenizer of this corpus ignores.
"""

import pathlib
import re
import string

from colloquy.base.files import PathLike, UserError, in_one_line
from colloquy.data.corpora.chat_files import PARLAI, read_json_file, read_json_lines, read_parlai
from colloquy.data.corpora.messages import Conversations
from colloquy.data.corpora.splits import ALL
from colloquy.data.corpora.tables import is_table, read_table
from colloquy.data.corpora.whatsapp import is_whatsapp, read_whatsapp
from colloquy.data.report import Report
from colloquy.data.text_files import (
    Files,
    bad_line,
    find_files,
    list_files,
    read_beginning,
    read_lines,
)

TOKENIZER = "mixed"
NAMES = {
    "train": ("train*", "*_train*"),
    "dev": ("dev*", "val", "val[-_.0-9]*", "valid*", "*_dev*", "*_val", "*_valid*"),
    "test": ("test*", "*_test*"),
}
"""File names of each split, without their ending."""
ENDINGS = (".txt", ".jsonl", ".json", ".csv", ".tsv")
OTHER_FORMS = "JSON, a table, a WhatsApp export or ParlAI's: docs/own_conversations.md"
MARK = re.compile(r"([A-Za-z_]{1,20}|[0-9]{1,9}):")
"""Begin of a field of another format, such as `A:`."""
REMOVE = "remove this column"


def find_splits(source: PathLike) -> Files:
    """Finds the files of each split, `{"train": [files], "dev": [files], ...}`.

    A directory without dev, and a file in its place, has `{ALL: [files]}`.
    """
    source = pathlib.Path(source)
    if source.is_file():
        return {ALL: [source]}
    files_by_split = {}
    for split, names in NAMES.items():
        files_by_split[split] = list_files(source, _patterns(names))
    has_train = bool(files_by_split["train"])
    if has_train and files_by_split["dev"]:
        return {split: files for split, files in files_by_split.items() if files}
    if files_by_split["dev"] or files_by_split["test"]:
        find_files(source, _patterns(NAMES["dev" if has_train else "train"]))  # raises
    return {ALL: files_by_split["train"] or find_files(source, _patterns(["*"]))}


def _patterns(names):
    return [f"{name}{ending}" for name in names for ending in ENDINGS]


def read(paths: list[pathlib.Path], split: str, report: Report) -> Conversations:
    """Reads conversations, each a list of two or more utterances."""
    conversations = []
    for path in paths:
        read_file = _choose_reader(path)
        conversations += read_file(path, report)
    return conversations


def _choose_reader(path):
    """The function that reads a file: by its ending, else by its first line."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".jsonl"):
        return read_json_lines
    if name.endswith(".csv"):
        return read_table
    first_line = read_beginning(path)
    if first_line.startswith(("{", '["')):
        return read_json_lines
    if name.endswith(".json"):
        return read_json_file
    if is_whatsapp(first_line):
        return read_whatsapp
    if first_line.startswith(PARLAI) and "\tlabels:" in first_line:
        return read_parlai
    if is_table(first_line):
        return read_table
    return _read_tabs


def _read_tabs(path, report):
    """Reads lines of utterances separated by tabs.

    An empty utterance is refused: without it, its neighbours would answer each other.
    """
    report.add_file(path, "utterances separated by tabs, a conversation per line")
    conversations = []
    for number, line in read_lines(path, "conversations"):
        turns = line.split("\t")
        require_utterances(path, number, line, turns, f"tabs; or {OTHER_FORMS}")
        conversations.append(turns)
    received = _find_marks(conversations)
    if received:
        raise UserError(f"{path}: expected utterances. Received: {received}")
    return conversations


def _find_marks(conversations):
    """What no utterance looks like: labels, numbers, ids, times or marks; else `None`.

    The first line may have names of columns, so it decides nothing if there are others.
    """
    lines = conversations[1:] or conversations
    first_turns = {turns[0] for turns in lines}
    if first_turns <= {"0", "1"}:
        return "lines that all begin with 0 or 1, as labels do: a file for --corpus=smn"

    # Of two columns, a question and a number may be what is said.
    has_more_columns = all(len(turns) > 2 for turns in lines)
    for place, verb in ((0, "begin"), (-1, "end")):
        if has_more_columns and not any(_has_word(turns[place]) for turns in lines):
            example = in_one_line(lines[-1][place], 40)
            return f"lines that all {verb} with a number, id or time, as {example}: {REMOVE}"

    marks = {match[0] for turn in first_turns if (match := MARK.match(turn))}
    is_marked = all(MARK.match(turn) for turn in first_turns)
    if is_marked and len(first_turns) > 2 * len(marks):
        shown = ", ".join(sorted(marks)[:3])
        return f"lines that all begin with {shown}, as fields of another format do"
    return None


def _has_word(turn):
    """Whether a turn has more than numbers, signs and ids such as `conv_7`."""
    for word in turn.split():
        has_digit = any(map(str.isdigit, word))
        if not has_digit and word.strip(string.punctuation):
            return True
    return False


def require_utterances(
    path: pathlib.Path, number: int, line: str, turns: list[str], separator: str
) -> None:
    """Refuses a line with fewer than two turns, or with an empty one."""
    if len(turns) < 2:
        raise bad_line(path, number, f"utterances separated by {separator}", line)
    if not all(turn.strip() for turn in turns):
        raise bad_line(path, number, "no empty utterance", line)
