"""SQuAD 1.1 (Rajpurkar et al. 2016) and its relatives: questions on paragraphs, answered by spans.

SQuAD nests its questions in paragraphs of articles:

    {"data": [{"paragraphs": [{
        "context": TEXT,
        "qas": [{"id": ID, "question": TEXT, "answers": [{"text": TEXT, "answer_start": N}]}]
    }]}]}

The flat form is that of Hugging Face, a JSON list or JSON lines of such objects:

    {"id": ID, "title": TEXT, "context": TEXT, "question": TEXT,
     "answers": {"text": [TEXT], "answer_start": [N]}}

An id may be a number. A question is unanswerable if `is_impossible` is true, if it has no answers,
or if all of them are in `NO_ANSWER_TEXTS`.

Offsets count characters, so no text is changed. JavaScript counts UTF-16 units instead; a file with
such offsets is recognized, since more of its answers are found that way, and they are converted.
"""

import bisect
import functools
import itertools
import pathlib
import re
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from colloquy.base.config import sentence
from colloquy.base.files import UserError, in_one_line
from colloquy.data.json_files import read_json, read_json_lines, validated
from colloquy.data.report import Report, shorten
from colloquy.data.text_files import PathLike, find_files
from colloquy.data.tokenizers import has_letter_or_digit

NO_ANSWER_TEXTS = ("", "CANNOTANSWER")
"""Texts of an answer that mean "no answer", written by annotation tools and by QuAC."""
MISPLACED = "the text of an answer is not at its offset"
NO_CONTEXT = "the context has no words"
REPEATED = "another question has the same id"
FLAT_LINE = '{"id": ID, "context": TEXT, "question": TEXT, "answers": {...}}'
OTHER_STARTS = "ambiguous_starts"
"""Part of the name of a file, see `_read_other_starts`."""
TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")
"""A character that UTF-16 writes as two units; it writes others as one."""


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
    """One span per reference answer, in the file's order; with other starts, one per possible
    place of each. Empty if the context does not answer the question.
    """
    article: int
    """Number of the context's article in the file, from 1; 0 if the file does not say."""


def find_splits(directory: PathLike) -> dict[str, pathlib.Path]:
    """The files of the splits `train` and `dev` in a directory."""
    return {split: _find_questions(directory, split) for split in ("train", "dev")}


def _find_questions(directory, split):
    """The first file of a split.

    The patterns also match files of other starts. One of these is returned only if there is no
    other file, and `read` refuses it.
    """
    patterns = [f"{split}-*.json", f"{split}.json", f"{split}*.jsonl"]
    paths = find_files(directory, patterns)
    for path in paths:
        if OTHER_STARTS not in path.name:
            return path
    return paths[0]


def read(path: pathlib.Path, split: str, report: Report) -> list[Question]:
    """Reads a file of questions in one of the forms above.

    A question that cannot be read is left out and counted.

    Args:
        split: For `train`, a file beside it may have the other starts of answers, see
            `_read_other_starts`.

    Raises:
        UserError: The file has another form, or no question that can be read.
    """
    report.add_file(path, "questions on paragraphs, as SQuAD has them")
    raw_questions = _read_raw_questions(path)
    starts_by_answer = _read_other_starts(path, report) if split == "train" else {}
    questions, left_out = _read_questions(raw_questions, starts_by_answer, has_utf16_offsets=False)
    if MISPLACED in left_out:
        by_units = _read_questions(raw_questions, starts_by_answer, has_utf16_offsets=True)
        if len(by_units[0]) > len(questions):
            questions, left_out = by_units
            how = "offsets count UTF-16 units, as JavaScript does, and were converted"
            report.note(f"{path.name}: {how}")
    for reason, ids in left_out.items():
        shown = shorten(in_one_line(id)[:40] for id in ids)
        report.leave_out(f"questions ({reason}: {shown})", len(ids))
    if not questions:
        received = f"none; left out: {report.reasons() or 'nothing'}"
        raise UserError(f"{path}: expected questions. Received: {received}")
    return questions


def _read_questions(raw_questions, starts_by_answer, has_utf16_offsets):
    """The questions of some `_RawQuestion`s, with offsets counted in one of the two ways.

    Returns:
        A list of `Question`, and `{reason: ids}` of those that cannot be read.
    """
    questions = []
    left_out: dict[str, list[str]] = {}
    texts_by_id: dict[str, tuple[str, str]] = {}
    for raw in raw_questions:
        try:
            question = _read_question(raw, has_utf16_offsets, starts_by_answer)
            _check_id(question, texts_by_id)
        except ValueError as error:
            left_out.setdefault(_reason(error), []).append(_shown_id(raw.value))
            continue
        questions.append(question)
    return questions, left_out


def _read_question(raw, has_utf16_offsets, starts_by_answer):
    """The `Question` of a `_RawQuestion`; a `ValueError` if it cannot be read."""
    item = _Item.model_validate(raw.value)
    if not has_letter_or_digit(raw.context):
        raise ValueError(NO_CONTEXT)
    answers = _find_answers(raw.context, item, has_utf16_offsets, starts_by_answer)
    return Question(item.id, raw.context, item.question, answers, raw.article)


def _check_id(question, texts_by_id):
    """Refuses an id that another question has, with other texts; adds the id to `texts_by_id`.

    The same question may occur twice: the official file repeats 14 of its questions.
    """
    texts = (question.context, question.text)
    if texts_by_id.setdefault(question.id, texts) != texts:
        raise ValueError(REPEATED)


def _reason(error):
    """Why a question is left out.

    Questions with the same defect get the same words, so that they are counted together.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    return in_one_line(sentence(error).partition(". Received: ")[0])


def _shown_id(value):
    id = value.get("id") if isinstance(value, dict) else None
    return "without an id" if id is None else str(id)


# === Forms of files ===

Text = Annotated[str, Field(pattern=r"\S")]
Offset = Annotated[int, Field(ge=0, lt=2**31)]


def _number_as_text(id: Any) -> Any:
    return str(id) if type(id) is int else id


class _StrictModel(BaseModel):
    """Base of the objects in a file, whose values are not converted to other types."""

    model_config = ConfigDict(strict=True)


class _Answer(_StrictModel):
    text: str
    answer_start: Offset


class _Item(_StrictModel):
    """A question, without its context."""

    id: Annotated[Text, BeforeValidator(_number_as_text)]
    question: Text
    is_impossible: bool = False
    answers: list[_Answer]


class _Paragraph(_StrictModel):
    context: str
    qas: list[Any] = []


class _Article(_StrictModel):
    paragraphs: list[_Paragraph]


class _File(_StrictModel):
    data: list[_Article]


class _FlatAnswers(_StrictModel):
    text: list[Any]
    answer_start: list[Any]


class _FlatQuestion(_StrictModel):
    """A question in the flat form. `_Item` validates the other fields."""

    model_config = ConfigDict(extra="allow")

    title: Any = None
    context: str
    answers: _FlatAnswers


class _OtherStarts(_StrictModel):
    """All places where one answer of a question may be."""

    answer: int
    """Number of the answer, from 0."""
    all: Annotated[list[Offset], Field(min_length=1)]


class _RawQuestion(NamedTuple):
    """A question that is not validated yet, so that `read` can leave it out if it is malformed."""

    article: int
    context: str
    value: Any
    """JSON that `_Item` validates."""


def _read_raw_questions(path):
    """The `_RawQuestion`s of a file in any form."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        return _read_flat_lines(path)
    try:
        value = read_json(path)
    except UserError as error:
        # A file of JSON lines may be called .json, too.
        try:
            return _read_flat_lines(path)
        except UserError:
            raise error from None

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
                raw_questions.append(_RawQuestion(number, paragraph.context, value))
    return raw_questions


def _from_flat_form(flat_questions):
    """The `_RawQuestion`s of `_FlatQuestion`s; each title is an article."""
    raw_questions = []
    articles_by_title: dict[str, int] = {}
    for flat in flat_questions:
        article = 0
        if flat.title is not None:
            article = articles_by_title.setdefault(str(flat.title), len(articles_by_title) + 1)
        answers = []
        # Where a text or an offset is missing, `zip_longest` gives `None`, which `_Item` refuses.
        for text, start in itertools.zip_longest(flat.answers.text, flat.answers.answer_start):
            answers.append({"text": text, "answer_start": start})
        value = {**(flat.model_extra or {}), "answers": answers}
        raw_questions.append(_RawQuestion(article, flat.context, value))
    return raw_questions


def _read_other_starts(path, report):
    """Reads the possible offsets of answers, `{(id, number of the answer): offsets}`.

    They are in a file beside that of the questions, `train-v1.1.ambiguous_starts.json`:
    `{id: [{"answer": number of the answer, "all": [offset, ..]}]}`. An answer that it lists has all
    these offsets in place of its own `answer_start`, which is a guess if its text occurs several
    times.
    """
    stem = path.name.removesuffix(".gz").removesuffix(".json")
    file = path.with_name(f"{stem}.{OTHER_STARTS}.json")
    starts_by_answer: dict[tuple[str, int], list[int]] = {}
    if not file.is_file():
        return starts_by_answer
    report.add_file(file, "other places of their answers")
    for id, entries in read_json(file, dict[str, list[_OtherStarts]]).items():
        for entry in entries:
            starts_by_answer[id, entry.answer] = entry.all
    return starts_by_answer


# === Places of answers ===


def _find_answers(context, item, has_utf16_offsets, starts_by_answer):
    """The spans of a question's answers; a `ValueError` if a text is not at its offset."""
    if item.is_impossible:
        return ()
    spans = []
    for number, answer in enumerate(item.answers):
        if answer.text.strip() in NO_ANSWER_TEXTS:
            continue
        offsets = starts_by_answer.get((item.id, number), [answer.answer_start])
        for offset in offsets:
            start = _character_offset(context, offset) if has_utf16_offsets else offset
            end = start + len(answer.text)
            if context[start:end] != answer.text:
                raise ValueError(MISPLACED)
            spans.append(Answer(start, end))
    return tuple(spans)


def _character_offset(text, utf16_offset):
    """Converts an offset that counts UTF-16 units into one that counts characters.

    >>> _character_offset("\U0001f44d!", 2)
    1
    """
    return utf16_offset - bisect.bisect_left(_units_of_pairs(text), utf16_offset)


# The questions of a paragraph follow each other.
@functools.lru_cache(maxsize=1)
def _units_of_pairs(text):
    """The offsets, in UTF-16 units, of the characters that are two units."""
    places = [match.start() for match in TWO_UNITS.finditer(text)]
    return [place + number for number, place in enumerate(places)]
