r"""Dialog bAbI (Bordes, Boureau and Weston 2017): six tasks of restaurant talk, with a knowledge
base and candidates.

A dialog file: `number text` per line, numbered from 1 in each dialog, a blank line after each
dialog.

    1 hi TAB hello what can i help you with today       a turn: user, then bot; an empty user part
    is `<SILENCE>` 2 resto_rome_cheap_thai_2stars R_rating 2           a fact 3 api_call no result
    a search that found nothing, also a fact

A candidates file: `1 text` per line. A knowledge file: `1 subject R_relation TAB value`, or a space
for the tab.
"""

import pathlib
import re
from typing import NamedTuple

from colloquy.base.files import UserError
from colloquy.data.text_files import bad_line, existing_directory, read_lines

SILENCE = "<SILENCE>"
# split -> its part of file names
SPLITS = {"train": "trn", "dev": "dev", "test": "tst", "test-oov": "tst-OOV"}
NUMBER = re.compile("[0-9]{1,9}")
LINE = "`number user TAB bot`, `number subject R_relation value` or `number api_call no result`"


class Fact(NamedTuple):
    """A line of a knowledge base: `("resto_rome_cheap_thai_2stars", "R_rating", "2")`."""

    subject: str
    relation: str
    value: str


class Task(NamedTuple):
    """The files of one task."""

    number: int
    splits: dict[str, pathlib.Path]  # split -> file; `train` is always there
    candidates: pathlib.Path
    knowledge: pathlib.Path


def find_tasks(directory):
    """The tasks in a directory, each with its candidates and knowledge base.

    A task's own files are `dialog-babi-taskN-*candidates.txt` and `dialog-babi-taskN-*kb.txt`;
    tasks 1 to 5 without them share `dialog-babi-candidates.txt` and `dialog-babi-kb-all.txt`.
    """
    directory = existing_directory(directory, "dialog bAbI")
    tasks = [task for number in range(1, 7) if (task := _find_task(directory, number))]
    if not tasks:
        raise UserError(f"{directory}: expected files dialog-babi-taskN-*-trn.txt. Received: none")
    return tasks


def _find_task(directory, number):
    task, splits = f"dialog-babi-task{number}", {}
    for split, ending in SPLITS.items():
        if file := _first(directory, f"{task}-*-{ending}.txt", f"{task}-*-{ending.lower()}.txt"):
            splits[split] = file
    if not splits:
        return None
    if "train" not in splits:
        raise UserError(f"{directory}: expected a training file {task}-*-trn.txt")
    files = []
    for kind, ending, shared in (
        ("candidates", "candidates", "candidates"),
        ("knowledge base", "kb", "kb-all"),
    ):
        names = [f"{task}-*{ending}.txt", *([f"dialog-babi-{shared}.txt"] if number < 6 else [])]
        if not (file := _first(directory, *names)):
            raise UserError(f"{directory}: task {number} needs its {kind}, {' or '.join(names)}")
        files.append(file)
    return Task(number, splits, *files)


def _first(directory, *patterns):
    files = [
        path for pattern in patterns for path in sorted(directory.glob(pattern)) if path.is_file()
    ]
    return files[0] if files else None


def read_dialogs(path, candidates=None):
    """Reads a dialog file: dialogs with turns, lists of `(speaker, text)`, the speakers `user`,
    `bot` and `fact`.

    White space becomes single spaces. Each response must be in the file `candidates`; `None`: any
    is read.
    """
    dialogs, expected, known = [], 1, candidates and set(read_candidates(candidates))
    for number, line in read_lines(path, None):
        if not line.strip():
            expected = 1
            continue
        id, space, rest = line.partition(" ")
        if not (NUMBER.fullmatch(id) and space):
            raise bad_line(path, number, LINE, line)
        if int(id) == 1:
            dialogs.append([])
        elif int(id) != expected:
            raise bad_line(
                path, number, "number 1" if expected == 1 else f"number {expected} or 1", line
            )
        said = _said(path, number, rest)
        speaker, text = said[-1]
        if known and speaker == "bot" and text not in known:
            raise bad_line(path, number, f"a response of {candidates.name}", text)
        dialogs[-1] += said
        expected = int(id) + 1
    dialogs = [said for said in dialogs if "user" in dict(said)]
    if not dialogs:
        raise UserError(f"{path}: expected dialogs. Received: no turn")
    return dialogs


def _said(path, number, rest):
    fields = rest.split("\t")
    if len(fields) == 2 and fields[1].split():
        user, bot = (" ".join(field.split()) for field in fields)
        return [("user", user or SILENCE), ("bot", bot)]
    words = rest.split(" ")
    if len(fields) == 1 and len(words) == 3 and all(words):
        if words[1].startswith("R_") or words == ["api_call", "no", "result"]:
            return [("fact", rest)]
    raise bad_line(path, number, LINE, rest)


def read_candidates(path):
    """Reads the list of all responses, in the file's order."""
    seen = {}
    for number, line in read_lines(path, "candidates"):
        id, _, text = line.partition(" ")
        text = " ".join(text.split())
        if not (NUMBER.fullmatch(id) and text):
            raise bad_line(path, number, "`number text`", line)
        if seen.setdefault(text, number) != number:
            raise bad_line(path, number, f"a new candidate; line {seen[text]} has this one", line)
    return list(seen)


def read_knowledge(path):
    """Reads a knowledge base: a list of `Fact`."""
    facts = []
    for number, line in read_lines(path, "facts"):
        words = re.split(r"[ \t]", line)
        if len(words) != 4 or not all(words) or not words[2].startswith("R_"):
            raise bad_line(path, number, "`number subject R_relation value`", line)
        facts.append(Fact(*words[1:]))
    return facts


def unseen_entities(train, knowledge):
    """Pairs each cuisine and place of the training dialogs with one that none of them contains:
    `{word: other word}`.

    Tasks 1 to 5 have a knowledge base of two worlds: one of the training dialogs, one of the
    out-of-vocabulary tests. Dialogs with words replaced by these pairs are in the other world, and
    their responses are still candidates. Empty if the knowledge base has too few others (task 6).
    """
    words = {word for said in train for _, text in said for word in text.split()}
    pairs = {}
    for relation in ("R_cuisine", "R_location"):
        values = sorted({fact.value for fact in knowledge if fact.relation == relation})
        seen, unseen = [v for v in values if v in words], [v for v in values if v not in words]
        if not seen or len(unseen) < len(seen):
            return {}
        pairs.update(zip(seen, unseen[: len(seen)], strict=True))
    return pairs


def move(dialogs, pairs):
    """Dialogs with words replaced by the pairs of `unseen_entities`.

    >>> move([[("user", "thai in rome"), ("bot", "ok"), ("fact", "resto_rome_thai R_price cheap")]], {"rome": "hanoi"})
    [[('user', 'thai in hanoi'), ('bot', 'ok'), ('fact', 'resto_hanoi_thai R_price cheap')]]
    """
    longest_first = sorted(pairs, key=len, reverse=True)
    part = re.compile(r"(?<![^\W_])(" + "|".join(map(re.escape, longest_first)) + r")(?![^\W_])")
    return [
        [(by, part.sub(lambda match: pairs[match[1]], text)) for by, text in said]
        for said in dialogs
    ]
