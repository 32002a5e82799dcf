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
# Encoding of the lines that are not UTF-8. The official files have such lines.
FALLBACK = "cp1252"
# There is no official split: films whose number is a multiple of this are dev.
HELD_OUT = 20
FILM = re.compile("m[0-9]{1,9}")
LINE_IDS = re.compile(r"\['L\d+'(?:, 'L\d+')*\]")
TAG = re.compile("</?(?:u|i|b|pre)>", re.IGNORECASE)
# U+FFFD between two letters was an apostrophe, as in "don\ufffdt".
LOST_APOSTROPHE = re.compile("([A-Za-z])\ufffd([A-Za-z])")


def find_splits(directory: PathLike) -> Files:
    """Finds the two files of the corpus. Both splits list them; `read` separates the films."""
    files = [find_files(directory, [name])[0] for name in FILES]
    return {"train": files, "dev": files}


def read(paths: list[pathlib.Path], split: str, report: Report) -> Conversations:
    """Reads conversations, each a list of two or more utterances.

    A conversation is split where a line is missing or empty, so that every utterance answers the
    previous one; an utterance without a neighbour is left out. Tags of emphasis are removed. A lost
    character (U+FFFD), as in some copies, is read as an apostrophe between letters and as a space
    elsewhere.
    """
    lines_file, conversations_file = paths
    form = "lines of films, in Windows-1252 where they are not UTF-8; fields used: line and text"
    report.add_file(lines_file, form)
    report.add_file(conversations_file, "conversations of films; fields used: film and lines")
    lines = _read_lines(lines_file)
    conversations = []
    for number, line in read_lines(conversations_file, "conversations"):
        fields = line.split(SEPARATOR)
        is_valid = (
            len(fields) == 4
            and FILM.fullmatch(fields[2]) is not None
            and LINE_IDS.fullmatch(fields[3]) is not None
        )
        if not is_valid:
            expected = "two speakers, a film and lines ['L1', ..] separated by +++$+++"
            raise bad_line(conversations_file, number, expected, line)
        _, _, film, line_ids = fields
        film_number = int(film.removeprefix("m"))
        film_split = "dev" if film_number % HELD_OUT == 0 else "train"
        if film_split != split:
            continue
        turns = [lines.get(line_id) for line_id in re.findall(r"L\d+", line_ids)]
        runs = _unbroken_runs(turns)
        num_kept = sum(len(run) for run in runs)
        report.leave_out("lines missing, empty or alone", len(turns) - num_kept)
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


def _unbroken_runs(turns):
    """All runs of two or more turns without a gap: a missing (`None`) or an empty turn.

    >>> _unbroken_runs(["a", "b", None, "c", "", "d", "e", "f"])
    [['a', 'b'], ['d', 'e', 'f']]
    """
    runs = []
    for is_spoken, run in itertools.groupby(turns, bool):
        run = list(run)
        if is_spoken and len(run) > 1:
            runs.append(run)
    return runs
