"""A user's own conversations, and LCCC (Wang et al. 2020).

    UTTERANCE TAB UTTERANCE TAB ...

One conversation per line, or another form: `chat_files`, `tables`, `whatsapp`. LCCC's characters
are separated by spaces, which the tokenizer of this corpus ignores.
"""

import pathlib

from colloquy.base.files import PathLike
from colloquy.data.corpora.chat_files import PARLAI, read_json_file, read_json_lines, read_parlai
from colloquy.data.corpora.messages import Conversations
from colloquy.data.corpora.splits import ALL
from colloquy.data.corpora.tables import is_table, read_table
from colloquy.data.corpora.utterance_lines import read_tabs
from colloquy.data.corpora.whatsapp import is_whatsapp, read_whatsapp
from colloquy.data.report import Report
from colloquy.data.text_files import Files, find_files, list_files, read_beginning

TOKENIZER = "mixed"
TRAIN = ("train*", "*_train*")
DEV = ("dev*", "val", "val[-_.0-9]*", "valid*", "*_dev*", "*_val", "*_valid*")
TEST = ("test*", "*_test*")
"""File names of each split, without their ending."""
ENDINGS = (".txt", ".jsonl", ".json", ".csv", ".tsv")


def find_splits(source: PathLike) -> Files:
    """Finds the files of each split, `{"train": [files], "dev": [files], ...}`.

    A file, or a directory without files of dev and test, has no splits: `{ALL: [files]}`.
    """
    source = pathlib.Path(source)
    if source.is_file():
        return {ALL: [source]}
    dev_files = list_files(source, _patterns(DEV))
    test_files = list_files(source, _patterns(TEST))
    if not dev_files and not test_files:
        train_files = list_files(source, _patterns(TRAIN))
        return {ALL: train_files or find_files(source, _patterns(["*"]))}

    # `find_files` refuses a directory that lacks the files of one of these splits.
    files_by_split = {
        "train": find_files(source, _patterns(TRAIN)),
        "dev": find_files(source, _patterns(DEV)),
    }
    if test_files:
        files_by_split["test"] = test_files
    return files_by_split


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
    return read_tabs
