r"""Dialog bAbI (Bordes, Boureau and Weston 2017): six tasks of restaurant talk.

A dialog file has `number text` on each line, numbered from 1 in each dialog, and a blank line after
each dialog:

    1 hi TAB hello what can i help you with today          a turn: user, then bot
    2 <SILENCE> TAB any preference on a type of cuisine    the user says nothing, or an empty part
    3 resto_rome_cheap_thai_2stars R_rating 2              a fact
    4 api_call no result                                   also a fact: a search found nothing

A candidates file has `1 text` on each line. A knowledge file has `1 subject R_relation TAB value`,
or a space for the tab.
"""

import pathlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from colloquy.base.files import PathLike, UserError
from colloquy.data.mojibake import note_unrepaired
from colloquy.data.report import Report
from colloquy.data.text_files import bad_line, find_files, list_files, read_lines

SILENCE = "<SILENCE>"
# split -> its part of file names
SPLITS = {"train": "trn", "dev": "dev", "test": "tst", "test-oov": "tst-OOV"}
OWN_TASK = "dialogs"
OWN_SPLITS = ("train", "dev", "test")
NUMBER = re.compile("[0-9]{1,9}")
LINE = "`number user TAB bot`, `number subject R_relation value` or `number api_call no result`"


class Fact(NamedTuple):
    """A line of a knowledge base: `("resto_rome_cheap_thai_2stars", "R_rating", "2")`."""

    subject: str
    relation: str
    value: str


class Turn(NamedTuple):
    """A sentence of a dialog."""

    speaker: str
    """`user`, `bot` or `fact`."""
    text: str


Dialog = list[Turn]


class Task(NamedTuple):
    """The files of one task."""

    name: str
    splits: dict[str, pathlib.Path]  # split -> file; `train` is always there
    candidates: pathlib.Path
    knowledge: pathlib.Path


def find_tasks(directory: PathLike) -> list[Task]:
    """The tasks in a directory, each with its candidates and knowledge base.

    A task's own files are `dialog-babi-taskN-*candidates.txt` and `dialog-babi-taskN-*kb.txt`;
    tasks 1 to 5 without them share `dialog-babi-candidates.txt` and `dialog-babi-kb-all.txt`.
    A directory with a `train.txt` is one task of one's own, `dialogs`: `train.txt`, perhaps
    `dev.txt` and `test.txt`, `candidates.txt` and `knowledge.txt`.
    """
    if list_files(directory, ["train.txt"]):
        patterns = {split: f"{split}.txt" for split in OWN_SPLITS}
        return [_find_task(directory, OWN_TASK, patterns, ["candidates.txt"], ["knowledge.txt"])]
    tasks = []
    for number in range(1, 7):
        prefix = f"dialog-babi-task{number}-*"
        patterns = {split: f"{prefix}-{ending}.txt" for split, ending in SPLITS.items()}
        if not list_files(directory, patterns.values()):
            continue
        candidates = [f"{prefix}candidates.txt"]
        knowledge = [f"{prefix}kb.txt"]
        if number < 6:
            candidates.append("dialog-babi-candidates.txt")
            knowledge.append("dialog-babi-kb-all.txt")
        tasks.append(_find_task(directory, f"task{number}", patterns, candidates, knowledge))
    if not tasks:
        find_files(directory, ["dialog-babi-taskN-*-trn.txt", "train.txt"])  # raises
    return tasks


def _find_task(directory, name, patterns, candidates, knowledge):
    """A task of the first files that match patterns, `{split: pattern}` and lists of others."""
    splits = {"train": find_files(directory, [patterns["train"]])[0]}
    for split, pattern in patterns.items():
        for path in list_files(directory, [pattern])[:1]:
            splits[split] = path
    return Task(
        name=name,
        splits=splits,
        candidates=find_files(directory, candidates)[0],
        knowledge=find_files(directory, knowledge)[0],
    )


def read_dialogs(
    path: pathlib.Path, candidates: pathlib.Path | None = None, report: Report | None = None
) -> list[Dialog]:
    """Reads the dialogs of a file.

    In each text, runs of white space become a single space.

    Args:
        candidates: A candidates file, which must have each response; `None`: any response is read.
        report: Gets the number of dialogs left out, and a note on wrongly decoded texts.

    Returns:
        Dialogs, lists of `Turn`.
    """
    known_responses = set(read_candidates(candidates)) if candidates else set()
    dialogs: list[Dialog] = []
    expected_id = 1
    for number, line in read_lines(path, None):
        if not line.strip():
            expected_id = 1
            continue
        digits, space, rest = line.partition(" ")
        if not NUMBER.fullmatch(digits) or not space:
            raise bad_line(path, number, LINE, line)
        id = int(digits)
        if id == 1:
            dialogs.append([])
        elif id != expected_id:
            expected = "number 1" if expected_id == 1 else f"number {expected_id} or 1"
            raise bad_line(path, number, expected, line)

        turns = _parse_turns(path, number, rest)
        last = turns[-1]
        if candidates and last.speaker == "bot" and last.text not in known_responses:
            raise bad_line(path, number, f"a response of {candidates.name}", last.text)
        dialogs[-1].extend(turns)
        expected_id = id + 1

    with_user = []
    for dialog in dialogs:
        if any(turn.speaker == "user" for turn in dialog):
            with_user.append(dialog)
    if not with_user:
        raise UserError(f"{path}: expected dialogs. Received: facts alone")
    if report:
        report.leave_out("dialogs of facts alone", len(dialogs) - len(with_user))
        texts = [turn.text for dialog in with_user for turn in dialog]
        note_unrepaired(texts, path, "the candidates have the same characters", report)
    return with_user


def _parse_turns(path, number, rest):
    """The `Turn`s of a line: a user's and the bot's, or a fact."""
    fields = rest.split("\t")
    if len(fields) == 2 and fields[1].split():
        user = " ".join(fields[0].split())
        bot = " ".join(fields[1].split())
        return [Turn("user", user or SILENCE), Turn("bot", bot)]
    words = rest.split(" ")
    is_fact = words == ["api_call", "no", "result"]
    if len(words) == 3 and all(words):
        is_fact = is_fact or words[1].startswith("R_")
    if len(fields) == 1 and is_fact:
        return [Turn("fact", rest)]
    raise bad_line(path, number, LINE, rest)


def read_candidates(path: pathlib.Path) -> list[str]:
    """Reads the list of all responses, in the file's order."""
    seen: dict[str, int] = {}
    for number, line in read_lines(path, "candidates"):
        id, _, text = line.partition(" ")
        text = " ".join(text.split())
        if not (NUMBER.fullmatch(id) and text):
            raise bad_line(path, number, "`number text`", line)
        if seen.setdefault(text, number) != number:
            raise bad_line(path, number, f"a new candidate; line {seen[text]} has this one", line)
    return list(seen)


def read_knowledge(path: pathlib.Path) -> list[Fact]:
    """Reads a knowledge base: a list of `Fact`."""
    facts = []
    for number, line in read_lines(path, "facts"):
        digits, *fact = re.split(r"[ \t]", line)
        is_fact = len(fact) == 3 and all(fact) and fact[1].startswith("R_")
        if not NUMBER.fullmatch(digits) or not is_fact:
            raise bad_line(path, number, "`number subject R_relation value`", line)
        facts.append(Fact(*fact))
    return facts


def unseen_entities(train: list[Dialog], knowledge: list[Fact]) -> dict[str, str]:
    """Pairs each cuisine and place of the training dialogs with one that none of them contains.

    In tasks 1 to 5, half of the knowledge base's cuisines and places occur in the training dialogs,
    the other half in the out-of-vocabulary tests. Dialogs with their words replaced by these pairs
    are like those tests.

    Returns:
        `{word: other word}`. It is empty if the dialogs contain no cuisine or no place, or if the
        knowledge base has fewer others (task 6).
    """
    words = set()
    for dialog in train:
        for turn in dialog:
            words.update(turn.text.split())

    pairs: dict[str, str] = {}
    for relation in ("R_cuisine", "R_location"):
        values = sorted({fact.value for fact in knowledge if fact.relation == relation})
        seen = [value for value in values if value in words]
        unseen = [value for value in values if value not in words]
        if not seen or len(unseen) < len(seen):
            return {}
        pairs.update(zip(seen, unseen[: len(seen)], strict=True))
    return pairs


def move(dialogs: list[Dialog], pairs: Mapping[str, str]) -> list[Dialog]:
    """Dialogs with words replaced by the pairs of `unseen_entities`, at least one.

    >>> [[turn]] = move([[Turn("user", "thai in rome")]], {"rome": "hanoi"})
    >>> turn.text
    'thai in hanoi'
    """
    # A value may be the start of another, so the longest is tried first.
    longest_first = sorted(pairs, key=len, reverse=True)
    values = "|".join(re.escape(value) for value in longest_first)
    # `[^\W_]` is a letter or a digit: `rome` is replaced in `resto_rome_cheap`, not in `romeo`.
    pattern = re.compile(rf"(?<![^\W_])({values})(?![^\W_])")

    moved = []
    for dialog in dialogs:
        turns = []
        for speaker, text in dialog:
            turns.append(Turn(speaker, pattern.sub(lambda match: pairs[match[1]], text)))
        moved.append(turns)
    return moved
