"""SQuAD 1.1 (Rajpurkar et al. 2016): questions on paragraphs, each answered by a span of its paragraph.

    {"data": [{"paragraphs": [{"context": TEXT, "qas": [{"id": ID, "question": TEXT,
                                                          "answers": [{"text": TEXT, "answer_start": N}]}]}]}]}

Texts are kept character by character: every offset counts characters of the file's text.
"""

import re
import reprlib
from typing import NamedTuple

from base.files import UserError
from data.text_files import existing_directory, find_files, read_json

MARKS = "\u0300-\u036f"  # combining ones, which are no letters to a regular expression
TOKEN = re.compile(rf"\d+(?:[.,]\d+)*|\w[\w{MARKS}]*|[^\w\s]")


class Answer(NamedTuple):
    """A span of a context, `context[start:end]`."""

    start: int
    end: int


class Question(NamedTuple):
    """A question and its reference answers."""

    id: str
    context: str
    text: str
    answers: tuple[Answer, ...]
    """One per reference, in the file's order; with `other_starts`, every possible place of a reference."""
    article: int
    """Number of the context's article in the file, from 1."""


def find_splits(directory):
    """The files of a directory, `{"train": (file, file of other starts or None), "dev": ...}`.

    Only `train-*.json` may have other starts, in `train-*.ambiguous_starts.json`.
    """
    directory = existing_directory(directory, "SQuAD")
    found = (find_files(directory, [f"{split}-*.json"]) for split in ("train", "dev"))
    train, dev = (min(paths, key=lambda path: "ambiguous_starts" in path.name) for paths in found)
    others = train.with_name(train.name.removesuffix(".gz").removesuffix(".json") + ".ambiguous_starts.json")
    return {"train": (train, others if others.is_file() else None), "dev": (dev, None)}


def tokenize(text):
    """The tokens of a text as `(start, end)`: numbers, words, and single signs.

    >>> [text[i:j] for text in ["It's 3,000.5 m²!"] for i, j in tokenize(text)]
    ['It', "'", 's', '3,000.5', 'm²', '!']
    """
    return [match.span() for match in TOKEN.finditer(text)]


def align(offsets, answer):
    """The first and the last token of `tokenize` that an `Answer` touches, or `None`.

    >>> align([(0, 2), (3, 8)], Answer(4, 6))
    (1, 1)
    """
    touching = [i for i, (start, end) in enumerate(offsets) if start < answer.end and end > answer.start]
    return (touching[0], touching[-1]) if touching else None


def read(path, other_starts=None):
    """Reads the questions of a SQuAD file, a list of `Question`.

    `other_starts` is a JSON file `{id: [{"answer": number of the answer, "all": [offset, ..]}]}` with all places where
    an answer's text may be meant, if the file's own `answer_start` is one of several guesses.
    """
    data = read_json(path)
    others = _read_starts(other_starts) if other_starts else {}
    questions, seen = [], {}
    for article, place, context, item in _items(path, data):
        id = _text(f"{path}, {place}", item, "id")
        place = f"{path}, question {id:.60}"
        text, answers = _text(place, item, "question"), item.get("answers")
        if seen.setdefault(id, (context, text)) != (context, text):  # the official file repeats 14 of its questions
            raise UserError(f"{place}: expected an id that no other question has. Received: {text!r:.60}")
        if not isinstance(answers, list) or not answers:
            raise UserError(f"{place}: expected a list of answers. Received: {reprlib.repr(answers)}")
        spans = []
        for number, answer in enumerate(answers):
            for start in others.get((id, number), [_field(answer, "answer_start")]):
                spans.append(_span(place, context, answer, start))
        questions.append(Question(id, context, text, tuple(spans), article))
    if not questions:
        raise UserError(f"{path}: expected questions. Received: none")
    return questions


def _read_starts(path):
    data, starts = read_json(path), {}
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected an object of lists of starts. Received: {reprlib.repr(data)}")
    for id, entries in data.items():
        for entry in entries if isinstance(entries, list) else [entries]:
            match entry:
                case {"answer": int(number), "all": [_, *_] as offsets}:
                    starts[id, number] = offsets
                case _:
                    raise UserError(
                        f'{path}, question {id:.60}: expected entries {{"answer": number, "all": [offset, ..]}}. '
                        f"Received: {reprlib.repr(entry)}"
                    )
    return starts


def _span(place, context, answer, start):
    text = _text(place, answer, "text")
    if type(start) is not int or not 0 <= start < 2**31:
        raise UserError(f"{place}: expected answer_start to be an offset. Received: {reprlib.repr(start)}")
    found = context[start : start + len(text)]
    if found != text:
        raise UserError(f"{place}: expected {text!r:.60} at offset {start}. Received: {found!r:.60}")
    return Answer(start, start + len(text))


def _items(path, data):
    """Yields every question as it is in the file, with its article, place and context."""
    if not isinstance(_field(data, "data"), list):
        raise UserError(f'{path}: expected SQuAD 1.1, an object with a list "data". Received: {type(data).__name__}')
    for a, article in enumerate(data["data"], 1):
        for p, paragraph in enumerate(_list(f"{path}, article {a}", article, "paragraphs"), 1):
            place = f"article {a}, paragraph {p}"
            context = _text(f"{path}, {place}", paragraph, "context")
            for item in _list(f"{path}, {place}", paragraph, "qas"):
                yield a, place, context, item


def _list(place, value, name):
    found = _field(value, name)
    if not isinstance(found, list):
        raise UserError(f'{place}: expected a list "{name}". Received: {reprlib.repr(found)}')
    return found


def _text(place, value, name):
    found = _field(value, name)
    if not isinstance(found, str) or not found.strip():
        raise UserError(f'{place}: expected a text "{name}" that is not empty. Received: {reprlib.repr(found)}')
    return found


def _field(value, name):
    return value.get(name) if isinstance(value, dict) else None
