"""SQuAD 1.1 (Rajpurkar et al. 2016) and its relatives: questions on paragraphs, answered by spans.

`data.corpora.squad_forms` describes their files. An id may be a number. A question is unanswerable
if `is_impossible` is true, if it has no answers, or if all of them are in `NO_ANSWER_TEXTS`.

Offsets count characters, so no text is changed. Programs in JavaScript count UTF-16 units instead.
If more answers are found at their offsets when these count as units, the offsets are converted.
"""

import glob
import pathlib
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError

from colloquy.base.config import sentence
from colloquy.base.files import UserError, in_one_line
from colloquy.data.corpora.squad_forms import StrictModel, read_raw_questions
from colloquy.data.json_files import read_json
from colloquy.data.report import Report, shorten
from colloquy.data.text_files import PathLike, find_files, list_files
from colloquy.data.tokenizers import has_letter_or_digit

NO_ANSWER_TEXTS = ("", "CANNOTANSWER")
"""Texts of an answer that mean "no answer", written by annotation tools and by QuAC."""
MISPLACED = "the text of an answer is not at its offset"
NO_CONTEXT = "the context has no words"
REPEATED = "another question has the same id"
OTHER_STARTS = "ambiguous_starts"
"""Part of the name of a file, see `_read_other_starts`."""


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
    """One span per reference answer, in the file's order. An answer with other starts has one span
    per start. Empty if the context does not answer the question.
    """
    article: int
    """Number of the context's article in the file, from 1; 0 if the file does not say."""


# === Questions in a file ===

Text = Annotated[str, Field(pattern=r"\S")]
Offset = Annotated[int, Field(ge=0, lt=2**31)]


def _number_as_text(id: Any) -> Any:
    return str(id) if type(id) is int else id


class _Answer(StrictModel):
    text: str
    answer_start: Offset


class _Item(StrictModel):
    """A question, without its context."""

    id: Annotated[Text, BeforeValidator(_number_as_text)]
    question: Text
    is_impossible: bool = False
    answers: list[_Answer]


# === Reading ===


def find_splits(directory: PathLike) -> dict[str, pathlib.Path]:
    """The files of the splits `train` and `dev` in a directory."""
    return {split: _find_questions(directory, split) for split in ("train", "dev")}


def _find_questions(directory, split):
    """The first file of a split.

    The patterns also match files of other starts, see `_read_other_starts`. If there are no other
    files, one of these is returned, so that the error of `read` names it.
    """
    patterns = [f"{split}-*.json", f"{split}.json", f"{split}*.jsonl"]
    paths = find_files(directory, patterns)
    return next((path for path in paths if OTHER_STARTS not in path.name), paths[0])


def read(path: pathlib.Path, split: str, report: Report) -> list[Question]:
    """Reads a file of questions in one of the forms of `data.corpora.squad_forms`.

    A question that cannot be read is left out and counted.

    Args:
        split: For `train`, a file beside it may have the other starts of answers, see
            `_read_other_starts`.

    Raises:
        UserError: The file has another form, or no question that can be read.
    """
    report.add_file(path, "questions on paragraphs, as SQuAD has them")
    raw_questions = read_raw_questions(path)
    starts_by_answer = _read_other_starts(path, report) if split == "train" else {}
    questions, left_out = _read_questions(raw_questions, starts_by_answer, has_utf16_offsets=False)
    if MISPLACED in left_out:
        converted, left_out_converted = _read_questions(
            raw_questions, starts_by_answer, has_utf16_offsets=True
        )
        if len(converted) > len(questions):
            questions = converted
            left_out = left_out_converted
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
    """Validates questions, with offsets counted in one of the two ways.

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
    """The `Question` of a `RawQuestion`; a `ValueError` if it cannot be read."""
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

    The value that was received is cut off, so that questions with the same defect are counted
    together.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    return in_one_line(sentence(error).partition(". Received: ")[0])


def _shown_id(value):
    id = value.get("id") if isinstance(value, dict) else None
    return "without an id" if id is None else str(id)


# === Other starts of answers ===


class _OtherStarts(StrictModel):
    """All places where one answer of a question may be."""

    answer: int
    """Number of the answer, from 0."""
    all: Annotated[list[Offset], Field(min_length=1)]


def _read_other_starts(path, report):
    """Reads the possible offsets of answers, `{(id, number of the answer): offsets}`.

    They are in a file beside that of the questions, `train-v1.1.ambiguous_starts.json`:
    `{id: [{"answer": number of the answer, "all": [offset, ..]}]}`. An answer that it lists has all
    these offsets in place of its own `answer_start`, which is a guess if its text occurs several
    times.
    """
    stem = path.name.removesuffix(".gz").removesuffix(".json")
    starts_by_answer: dict[tuple[str, int], list[int]] = {}
    for file in list_files(path.parent, [f"{glob.escape(stem)}.{OTHER_STARTS}.json"]):
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
    text_before = text.encode("utf-16-le")[: 2 * utf16_offset]
    return len(text_before.decode("utf-16-le", errors="ignore"))
