"""DailyDialog (Li et al. 2017), and its translations in XDailyDialog (Liu et al. 2023).

    UTTERANCE __eou__ UTTERANCE __eou__ ... __eou__

One conversation per line; or JSON lines `{"dialog": [UTTERANCE, ...]}`, as on Hugging Face.
XDailyDialog omits the last `__eou__`, or adds labels after a tab, which are ignored; it is prepared
with the tokenizer of its language, `mixed` for Chinese.
"""

import pathlib
import re

from colloquy.base.files import PathLike
from colloquy.data.corpora.chat_files import read_json_lines
from colloquy.data.corpora.messages import Conversations
from colloquy.data.corpora.utterance_lines import require_utterances
from colloquy.data.report import Report
from colloquy.data.text_files import Files, find_files, read_beginning, read_lines

TOKENIZER = "words"
END = "__eou__"
FORM = f"utterances separated by {END}, a conversation per line"
NAMES = {
    "train": (
        "train/dialogues_train.txt",
        "dialogues_train.txt",
        "*_train_human.txt",
        "dialogues_text_*.txt",
        "train.json*",
    ),
    "dev": (
        "validation/dialogues_validation.txt",
        "dialogues_validation.txt",
        "*_dev_human.txt",
        "validation.json*",
    ),
}
APOSTROPHE = "['\u2018\u2019\u2032]"
CLITIC = re.compile(rf"([a-z]) ?{APOSTROPHE} ?(s|t|m|d|ll|re|ve)\b", re.IGNORECASE)
OTHER = re.compile(rf"\b(o|ma) ?{APOSTROPHE} ?(clock|am)\b", re.IGNORECASE)


def find_splits(directory: PathLike) -> Files:
    """The files of a directory, `{"train": [file], "dev": [file]}`: the first of `NAMES`."""
    return {split: find_files(directory, names)[:1] for split, names in NAMES.items()}


def read(paths: list[pathlib.Path], split: str, report: Report) -> Conversations:
    r"""Reads conversations, each a list of two or more utterances.

    The corpus separates apostrophes from their words, and writes `I \u2019 Ve`. They are joined
    here alone: elsewhere an apostrophe between spaces may be a quotation mark.
    """
    conversations = []
    for path in paths:
        read_file = read_json_lines if read_beginning(path).startswith("{") else _read_lines
        for turns in read_file(path, report):
            conversations.append([join_apostrophes(turn) for turn in turns])
    return conversations


def _read_lines(path, report):
    conversations = []
    unused = []
    for number, line in read_lines(path, "conversations"):
        text, tab, _ = line.partition("\t")
        if tab:
            unused = ["labels after a tab"]
        turns = [turn.strip() for turn in text.split(END)]
        if not turns[-1]:
            turns.pop()
        require_utterances(path, number, line, turns, END)
        conversations.append(turns)
    report.add_file(path, FORM, unused)
    return conversations


def join_apostrophes(text: str) -> str:
    """Joins `s`, `t`, `m`, `d`, `ll`, `re`, `ve`, `o'clock` and `ma'am` with their apostrophes.

    >>> join_apostrophes("I \u2019 Ve said , don ' t say \u2018 Tom' s at six o \u2019 clock .")
    "I've said , don't say \u2018 Tom's at six o'clock ."
    """
    text = CLITIC.sub(lambda match: f"{match[1]}'{match[2].lower()}", text)
    return OTHER.sub(r"\1'\2", text)
