"""The forms of files with questions on paragraphs: nested as SQuAD's, or flat.

SQuAD nests its questions in paragraphs of articles:

    {"data": [{"paragraphs": [{
        "context": TEXT,
        "qas": [{"id": ID, "question": TEXT, "answers": [{"text": TEXT, "answer_start": N}]}]
    }]}]}

The flat form is that of Hugging Face, a JSON list or JSON lines of such objects:

    {"id": ID, "title": TEXT, "context": TEXT, "question": TEXT,
     "answers": {"text": [TEXT], "answer_start": [N]}}
"""

import contextlib
import itertools
import pathlib
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from colloquy.base.files import UserError
from colloquy.data.json_files import read_json, read_json_lines, validated

FLAT_LINE = '{"id": ID, "context": TEXT, "question": TEXT, "answers": {...}}'


class StrictModel(BaseModel):
    """Base of the objects in a file, whose values are not converted to other types."""

    model_config = ConfigDict(strict=True)


class _Paragraph(StrictModel):
    context: str
    qas: list[Any] = []


class _Article(StrictModel):
    paragraphs: list[_Paragraph]


class _File(StrictModel):
    data: list[_Article]


class _FlatAnswers(StrictModel):
    text: list[Any]
    answer_start: list[Any]


class _FlatQuestion(StrictModel):
    """A question in the flat form. Its other fields become the `value` of a `RawQuestion`."""

    model_config = ConfigDict(extra="allow")

    title: Any = None
    context: str
    answers: _FlatAnswers


class RawQuestion(NamedTuple):
    """A question whose value is not validated yet: if it is malformed, it alone is left out."""

    article: int
    """Number of the context's article in the file, from 1; 0 if the file does not say."""
    context: str
    value: Any
    """JSON as in the list `qas` of the nested form."""


def read_raw_questions(path: pathlib.Path) -> list[RawQuestion]:
    """Reads the questions of a file in any form."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        return _read_flat_lines(path)
    try:
        value = read_json(path)
    except UserError:
        # JSON lines may have the ending .json, too. For a file of neither form, the first error is
        # raised.
        with contextlib.suppress(UserError):
            return _read_flat_lines(path)
        raise

    values = value.get("data") if isinstance(value, dict) else value
    first = values[0] if isinstance(values, list) and values else None
    if isinstance(first, dict) and "context" in first:
        return _from_flat_form(validated(path, list[_FlatQuestion], values))
    return _from_nested_form(validated(path, _File, value))


def _read_flat_lines(path):
    return _from_flat_form(read_json_lines(path, _FlatQuestion, FLAT_LINE))


def _from_nested_form(file):
    raw_questions = []
    for number, article in enumerate(file.data, 1):
        for paragraph in article.paragraphs:
            for value in paragraph.qas:
                raw_questions.append(RawQuestion(number, paragraph.context, value))
    return raw_questions


def _from_flat_form(flat_questions):
    """Reads flat questions; each title is an article."""
    raw_questions = []
    articles_by_title: dict[str, int] = {}
    for flat in flat_questions:
        article = 0
        if flat.title is not None:
            article = articles_by_title.setdefault(str(flat.title), len(articles_by_title) + 1)
        answers = []
        # Where a text or an offset is missing, `zip_longest` gives `None`, which is no valid value.
        for text, start in itertools.zip_longest(flat.answers.text, flat.answers.answer_start):
            answers.append({"text": text, "answer_start": start})
        value = {**(flat.model_extra or {}), "answers": answers}
        raw_questions.append(RawQuestion(article, flat.context, value))
    return raw_questions
