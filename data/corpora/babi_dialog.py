r"""Dialog bAbI (Bordes, Boureau and Weston 2017): six tasks of restaurant talk, with a knowledge base and candidates.

A dialog file: `number text` per line, numbered from 1 in each dialog, a blank line after each dialog.

    1 hi TAB hello what can i help you with today       a turn: user, then bot; an empty user part is `<SILENCE>`
    2 resto_rome_cheap_thai_2stars R_rating 2           a fact
    3 api_call no result                                a search that found nothing, also a fact

A candidates file: `1 text` per line. A knowledge file: `1 subject R_relation TAB value`, or a space for the tab.
"""

import pathlib
import re
from typing import NamedTuple

from base.files import UserError
from data.text_files import bad_line, existing_directory, read_lines

SILENCE = "<SILENCE>"
SPLITS = {"train": "trn", "dev": "dev", "test": "tst", "test-oov": "tst-OOV"}
"""Our names of the splits and the corpus's."""
NUMBER = re.compile("[0-9]{1,9}")
LINE = "`number user TAB bot`, `number subject R_relation value` or `number api_call no result`"


class Fact(NamedTuple):
    """A knowledge line: `("resto_rome_cheap_thai_2stars", "R_rating", "2")`."""

    subject: str
    relation: str
    value: str

    @property
    def text(self):
        return " ".join(self)


class Turn(NamedTuple):
    """What a user says, or `<SILENCE>`, and what the bot answers."""

    number: int
    """Line of the file, from 1."""
    user: str
    bot: str


class Task(NamedTuple):
    """The files of one task."""

    number: int
    splits: dict[str, pathlib.Path]
    """Split to file; `train` is always there."""
    candidates: pathlib.Path
    knowledge: pathlib.Path


def find_tasks(directory):
    """Finds the tasks in a directory, each with its candidates and knowledge base.

    A task takes `dialog-babi-taskN-*candidates.txt` and `dialog-babi-taskN-*kb.txt`, and where there is none the
    `dialog-babi-candidates.txt` and `dialog-babi-kb-all.txt` that tasks 1 to 5 share; task 6 has no part in those.

    Raises:
        UserError: where the directory or a file of a task is missing.
    """
    directory = existing_directory(directory, "dialog bAbI")
    tasks = []
    for number in range(1, 7):
        splits = {}
        for split, ending in SPLITS.items():
            files = sorted(directory.glob(f"dialog-babi-task{number}-*-{ending}.txt"))
            files = files or sorted(directory.glob(f"dialog-babi-task{number}-*-{ending.lower()}.txt"))
            if files:
                splits[split] = files[0]
        if not splits:
            continue
        if "train" not in splits:
            raise UserError(f"{directory}: expected a training file dialog-babi-task{number}-*-trn.txt")
        shared = ("dialog-babi-candidates.txt", "dialog-babi-kb-all.txt") if number < 6 else (None, None)
        own = (f"dialog-babi-task{number}-*candidates.txt", f"dialog-babi-task{number}-*kb.txt")
        files = []
        for kind, pattern, fallback in zip(("candidates", "knowledge base"), own, shared, strict=True):
            found = sorted(directory.glob(pattern)) or [directory / name for name in (fallback,) if name]
            if not found or not found[0].is_file():
                names = " or ".join(filter(None, (pattern, fallback)))
                raise UserError(f"{directory}: task {number} needs its {kind}, {names}")
            files.append(found[0])
        tasks.append(Task(number, splits, *files))
    if not tasks:
        raise UserError(f"{directory}: expected files dialog-babi-taskN-*-trn.txt. Received: none")
    return tasks


def read_dialogs(path):
    """Reads a dialog file.

    Args:
        path: UTF-8 text.

    Returns:
        List of dialogs, each a list of `Turn` and `Fact` in the file's order. Texts keep their words; white space is
        made single spaces.

    Raises:
        UserError: at the first line that is not in the format.
    """
    dialogs, expected = [], 1
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
            raise bad_line(path, number, "number 1" if expected == 1 else f"number {expected} or 1", line)
        dialogs[-1].append(_entry(path, number, rest))
        expected = int(id) + 1
    if not any(isinstance(entry, Turn) for dialog in dialogs for entry in dialog):
        raise UserError(f"{path}: expected dialogs. Received: no turn")
    return dialogs


def _entry(path, number, rest):
    fields = rest.split("\t")
    if len(fields) == 2 and fields[1].split():
        user, bot = (" ".join(field.split()) for field in fields)
        return Turn(number, user or SILENCE, bot)
    words = rest.split(" ")
    if len(fields) == 1 and len(words) == 3 and all(words):
        if words[1].startswith("R_") or words == ["api_call", "no", "result"]:
            return Fact(*words)
    raise bad_line(path, number, LINE, rest)


def read_candidates(path):
    """Reads the list of all responses, in the file's order.

    Raises:
        UserError: at a line that is not `number text`, or repeats another.
    """
    seen = {}
    for number, line in read_lines(path, None):
        id, _, text = line.partition(" ")
        text = " ".join(text.split())
        if not (NUMBER.fullmatch(id) and text):
            raise bad_line(path, number, "`number text`", line)
        if seen.setdefault(text, number) != number:
            raise bad_line(path, number, f"a candidate that line {seen[text]} does not have already", line)
    if not seen:
        raise UserError(f"{path}: expected candidates. Received: an empty file")
    return list(seen)


def read_knowledge(path):
    """Reads a knowledge base, in either of the two formats.

    Returns:
        List of `Fact`.

    Raises:
        UserError: at a line that is not in the format.
    """
    facts = []
    for number, line in read_lines(path, None):
        words = re.split(r"[ \t]", line)
        if len(words) != 4 or not all(words) or not words[2].startswith("R_"):
            raise bad_line(path, number, "`number subject R_relation value`", line)
        facts.append(Fact(*words[1:]))
    if not facts:
        raise UserError(f"{path}: expected facts. Received: an empty file")
    return facts


def unseen_entities(train, knowledge):
    """Pairs each cuisine and place of the training dialogs with one that none of them has.

    Tasks 1 to 5 come with a knowledge base of two worlds, of which training dialogs know one; the out-of-vocabulary
    test files play in the other. A dialog whose words are replaced by these pairs, also inside the names of
    restaurants, does so too, and its responses are still candidates.

    Args:
        train: Dialogs.
        knowledge: List of `Fact`.

    Returns:
        `{word: other word}`, in sorted order; empty where the knowledge base has not enough others (task 6).
    """
    words = {word for dialog in train for entry in dialog for word in _text(entry).split()}
    pairs = {}
    for relation in ("R_cuisine", "R_location"):
        values = sorted({fact.value for fact in knowledge if fact.relation == relation})
        seen, unseen = [v for v in values if v in words], [v for v in values if v not in words]
        if not seen or len(unseen) < len(seen):
            return {}
        pairs.update(zip(seen, unseen[: len(seen)], strict=True))
    return pairs


def move(dialogs, pairs):
    """Dialogs with words replaced by those that `unseen_entities` paired them with.

    >>> move([[Turn(1, "thai in rome", "ok"), Fact("resto_rome_thai", "R_price", "cheap")]], {"rome": "hanoi"})[0]
    [Turn(number=1, user='thai in hanoi', bot='ok'),
     Fact(subject='resto_hanoi_thai', relation='R_price', value='cheap')]
    """
    longest_first = sorted(pairs, key=len, reverse=True)
    part = re.compile(r"(?<![^\W_])(" + "|".join(map(re.escape, longest_first)) + r")(?![^\W_])")

    def other(text):
        return part.sub(lambda match: pairs[match[1]], text)

    def moved(entry):
        if isinstance(entry, Turn):
            return Turn(entry.number, other(entry.user), other(entry.bot))
        return Fact(*map(other, entry))

    return [[moved(entry) for entry in dialog] for dialog in dialogs]


def _text(entry):
    return f"{entry.user} {entry.bot}" if isinstance(entry, Turn) else entry.text
