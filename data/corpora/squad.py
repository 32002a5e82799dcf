"""SQuAD 1.1 (Rajpurkar et al. 2016): questions on paragraphs, each answered by a span of its
paragraph.

    {"data": [{"paragraphs": [{"context": TEXT, "qas": [{"id": ID, "question": TEXT,
                                                          "answers": [{"text": TEXT, "answer_start":
                                                          N}]}]}]}]}

Texts are kept character by character: every offset counts characters of the file's text.
"""

import re
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from colloquy.base.files import UserError
from colloquy.data.text_files import find_files, read_json

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
    """One per reference, in the file's order; with `other_starts`, every possible place of a
    reference.
    """
    article: int
    """Number of the context's article in the file, from 1."""


Text = Annotated[str, Field(pattern=r"\S")]
Offset = Annotated[int, Field(ge=0, lt=2**31)]


class _Json(BaseModel):
    model_config = ConfigDict(strict=True)


class _Answer(_Json):
    text: Text
    answer_start: Offset


class _Item(_Json):
    id: Text
    question: Text
    answers: Annotated[list[_Answer], Field(min_length=1)]


class _Paragraph(_Json):
    context: Text
    qas: list[_Item]


class _Article(_Json):
    paragraphs: list[_Paragraph]


class _File(_Json):
    data: list[_Article]


class _Starts(_Json):
    answer: int
    all: Annotated[list[Offset], Field(min_length=1)]


def find_splits(directory):
    """The files of a directory, `{"train": (file, file of other starts or None), "dev": ...}`.

    Only `train-*.json` may have other starts, in `train-*.ambiguous_starts.json`.
    """
    found = (find_files(directory, [f"{split}-*.json"], "SQuAD") for split in ("train", "dev"))
    train, dev = (min(paths, key=lambda path: "ambiguous_starts" in path.name) for paths in found)
    others = train.with_name(
        train.name.removesuffix(".gz").removesuffix(".json") + ".ambiguous_starts.json"
    )
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
    touching = [
        i for i, (start, end) in enumerate(offsets) if start < answer.end and end > answer.start
    ]
    return (touching[0], touching[-1]) if touching else None


def read(path, other_starts=None):
    """Reads the questions of a SQuAD file, a list of `Question`.

    `other_starts` is a JSON file `{id: [{"answer": number of the answer, "all": [offset, ..]}]}`
    with all places where an answer's text may be meant, if the file's own `answer_start` is one of
    several guesses.
    """
    articles = read_json(path, _File).data
    others = read_json(other_starts, dict[str, list[_Starts]]) if other_starts else {}
    others = {(id, each.answer): each.all for id, entries in others.items() for each in entries}
    questions, seen = [], {}
    for number, article in enumerate(articles, 1):
        for context, item in (
            (part.context, item) for part in article.paragraphs for item in part.qas
        ):
            place, spans = f"{path}, question {item.id:.60}", []
            said = context, item.question
            # the official file repeats 14 of its questions
            if seen.setdefault(item.id, said) != said:
                raise UserError(
                    f"{place}: expected an id that no other question has. Received: {item.question!r:.60}"
                )
            for n, answer in enumerate(item.answers):
                for start in others.get((item.id, n), [answer.answer_start]):
                    span = Answer(start, start + len(answer.text))
                    if (found := context[span.start : span.end]) != answer.text:
                        wrong = f"{answer.text!r:.60} at offset {start}. Received: {found!r:.60}"
                        raise UserError(f"{place}: expected {wrong}")
                    spans.append(span)
            questions.append(Question(item.id, context, item.question, tuple(spans), number))
    if not questions:
        raise UserError(f"{path}: expected questions. Received: none")
    return questions
