"""Cornell Movie-Dialogs Corpus (Danescu-Niculescu-Mizil and Lee 2011).

movie_lines.txt           L49 +++$+++ u0 +++$+++ m0 +++$+++ BIANCA +++$+++ Did you change your hair?
movie_conversations.txt   u0 +++$+++ u2 +++$+++ m0 +++$+++ ['L194', 'L195', 'L196', 'L197']
"""

import html
import itertools
import pathlib
import re

from colloquy.base.files import PathLike
from colloquy.data.corpora.messages import Conversations
from colloquy.data.report import Report
from colloquy.data.text_files import Files, bad_line, find_files, read_lines

TOKENIZER = "words"
SEPARATOR = " +++$+++ "
FILES = ("movie_lines.txt", "movie_conversations.txt")
FALLBACK = "cp1252"  # encoding of lines that are not UTF-8: those of the official files
HELD_OUT = 20  # films whose number is a multiple of this are dev; there is no official split
FILM = re.compile("m[0-9]{1,9}")
LINE_IDS = re.compile(r"\['L\d+'(?:, 'L\d+')*\]")
TAG = re.compile("</?(?:u|i|b|pre)>", re.IGNORECASE)
LOST_APOSTROPHE = re.compile("([A-Za-z])\ufffd([A-Za-z])")


def find_splits(directory: PathLike) -> Files:
    """The two files of the corpus: the same for both splits, which `read` separates."""
    files = [find_files(directory, [name])[0] for name in FILES]
    return {"train": files, "dev": files}


def read(paths: list[pathlib.Path], split: str, report: Report) -> Conversations:
    """Reads conversations, each a list of two or more utterances.

    A conversation is split where a line is missing or empty, so that every utterance answers the
    previous one; an utterance without a neighbour is left out. Tags of emphasis are removed, and a
    lost character (U+FFFD) between letters, as in some copies, is read as an apostrophe.
    """
    lines_file, conversations_file = paths
    form = "lines of films, in Windows-1252 where they are not UTF-8; fields used: line and text"
    report.add_file(lines_file, form)
    report.add_file(conversations_file, "conversations of films; fields used: film and lines")
    lines = _read_lines(lines_file)
    conversations = []
    for number, line in read_lines(conversations_file, "conversations"):
        fields = line.split(SEPARATOR)
        film, line_ids = fields[2:4] if len(fields) == 4 else ("", "")
        if not FILM.fullmatch(film) or not LINE_IDS.fullmatch(line_ids):
            expected = "two speakers, a film and lines ['L1', ..] separated by +++$+++"
            raise bad_line(conversations_file, number, expected, line)
        film_split = "dev" if int(film.removeprefix("m")) % HELD_OUT == 0 else "train"
        if film_split == split:
            turns = [lines.get(id) for id in re.findall(r"L\d+", line_ids)]
            runs = _unbroken(turns)
            report.leave_out("lines missing, empty or alone", len(turns) - sum(map(len, runs)))
            conversations.extend(runs)
    return conversations


def _read_lines(path):
    """Reads the file of lines: `{"L49": text}`."""
    lines = {}
    for number, line in read_lines(path, "conversations", FALLBACK):
        fields = line.split(SEPARATOR, 4)
        if len(fields) != 5:
            raise bad_line(path, number, "5 fields separated by +++$+++", line)
        text = html.unescape(TAG.sub("", fields[4]))
        text = LOST_APOSTROPHE.sub(r"\1'\2", text)
        lines[fields[0]] = text.replace("\ufffd", " ").strip()
    return lines


def _unbroken(turns):
    """The longest runs of at least two turns that are neither missing nor empty.

    >>> _unbroken(["a", "b", None, "c", "", "d", "e", "f"])
    [['a', 'b'], ['d', 'e', 'f']]
    """
    runs = []
    for is_spoken, run in itertools.groupby(turns, bool):
        run = list(run)
        if is_spoken and len(run) > 1:
            runs.append(run)
    return runs
