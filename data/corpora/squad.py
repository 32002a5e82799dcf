"""SQuAD 1.1 (Rajpurkar et al. 2016) and its relatives: questions on paragraphs, answered by spans.

    {"data": [{"paragraphs": [{
        "context": TEXT,
        "qas": [{"id": ID, "question": TEXT, "answers": [{"text": TEXT, "answer_start": N}]}]
    }]}]}

or a question a line, or a list of them, as Hugging Face writes it:

    {"id": ID, "title": TEXT, "context": TEXT, "question": TEXT,
     "answers": {"text": [TEXT], "answer_start": [N]}}

An id may be a number. `is_impossible`, no answers, empty answers and CANNOTANSWER make a question
unanswerable. Texts are kept character by character: every offset counts characters of the file's
text. A file whose offsets count UTF-16 units, as JavaScript does, is recognized by its answers.
"""

import itertools
import pathlib
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from colloquy.base.files import UserError, in_one_line
from colloquy.data.text_files import PathLike, find_files, read_json, read_json_lines, validated

NO_ANSWER_TEXTS = ("", "CANNOTANSWER")
"""Answers that mean that there is none: an empty one of annotation tools, and QuAC's."""
MISPLACED = "the text of an answer is not at its offset"
REPEATED = "another question has the same id"
FLAT_LINE = '{"id": ID, "context": TEXT, "question": TEXT, "answers": {...}}'
SHOWN_IDS = 3
LAST_NARROW = 0xFFFF
"""The last character that is one UTF-16 unit."""


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
    reference. None: the context does not answer the question.
    """
    article: int
    """Number of the context's article in the file, from 1; 0 if the file does not say."""


class Questions(NamedTuple):
    """The questions of a file."""

    questions: list[Question]
    left_out: dict[str, list[str]]
    """`{reason: ids}` of the questions that cannot be read."""
    has_utf16_offsets: bool

    def remarks(self) -> list[str]:
        """Sentences that say how the file was read and what was left out."""
        remarks = []
        if self.has_utf16_offsets:
            remarks.append("offsets count UTF-16 units, as JavaScript does, and were converted")
        for reason, ids in self.left_out.items():
            shown = ", ".join(in_one_line(id)[:40] for id in ids[:SHOWN_IDS])
            more = ", ..." if len(ids) > SHOWN_IDS else ""
            remarks.append(f"{len(ids):,} left out, {reason}: {shown}{more}")
        return remarks


Text = Annotated[str, Field(pattern=r"\S")]
Offset = Annotated[int, Field(ge=0, lt=2**31)]


def _as_text(id: Any) -> Any:
    return str(id) if type(id) is int else id


class _Json(BaseModel):
    model_config = ConfigDict(strict=True)


class _Answer(_Json):
    text: str
    answer_start: Offset


class _Item(_Json):
    id: Annotated[Text, BeforeValidator(_as_text)]
    question: Text
    is_impossible: bool = False
    answers: list[_Answer]


class _Paragraph(_Json):
    context: Text
    qas: list[Any]


class _Article(_Json):
    paragraphs: list[_Paragraph]


class _File(_Json):
    data: list[_Article]


class _FlatAnswers(_Json):
    text: list[str]
    answer_start: list[Offset]


class _FlatQuestion(_Json):
    id: Any = None
    title: str | None = None
    context: Text
    question: Any = None
    is_impossible: bool = False
    answers: _FlatAnswers


class _Starts(_Json):
    answer: int
    all: Annotated[list[Offset], Field(min_length=1)]


class _Row(NamedTuple):
    """A question as a file has it."""

    article: int
    context: str
    value: Any
    """What should be an `_Item`."""


Splits = dict[str, tuple[pathlib.Path, pathlib.Path | None]]


def find_splits(directory: PathLike) -> Splits:
    """The files of a directory, `{"train": (file, file of other starts or None), "dev": ...}`.

    Only `train*.json` may have other starts, in `train*.ambiguous_starts.json`.
    """
    train = _find_questions(directory, "train")
    dev = _find_questions(directory, "dev")
    stem = train.name.removesuffix(".gz").removesuffix(".json")
    other_starts = train.with_name(f"{stem}.ambiguous_starts.json")
    return {"train": (train, other_starts if other_starts.is_file() else None), "dev": (dev, None)}


def _find_questions(directory, split):
    """The first file of a split; one of other starts only if there is nothing else."""
    patterns = [f"{split}-*.json", f"{split}.json", f"{split}*.jsonl"]
    paths = find_files(directory, patterns, "SQuAD")
    return min(paths, key=lambda path: "ambiguous_starts" in path.name)


def read(path: PathLike, other_starts: PathLike | None = None) -> Questions:
    """Reads a SQuAD file or a relative of it.

    A question that cannot be read is left out and counted; a file without questions, or in another
    form, is a `UserError`.

    `other_starts` is a JSON file `{id: [{"answer": number of the answer, "all": [offset, ..]}]}`
    with all places where an answer's text may be meant, if the file's own `answer_start` is one of
    several guesses.
    """
    rows = _read_rows(pathlib.Path(path))
    has_utf16_offsets = _counts_utf16_units(rows)
    starts_by_answer = _read_other_starts(other_starts) if other_starts else {}
    questions = []
    left_out: dict[str, list[str]] = {}
    texts_by_id: dict[str, tuple[str, str]] = {}
    for row in rows:
        try:
            item = _Item.model_validate(row.value)
            answers = _find_answers(row.context, item, has_utf16_offsets, starts_by_answer)
            # The official file repeats 14 of its questions.
            texts = row.context, item.question
            if texts_by_id.setdefault(item.id, texts) != texts:
                raise ValueError(REPEATED)
        except ValueError as error:
            left_out.setdefault(_reason(error), []).append(_id_of(row.value))
            continue
        questions.append(Question(item.id, row.context, item.question, answers, row.article))

    result = Questions(questions, left_out, has_utf16_offsets)
    if not questions:
        received = "; ".join(result.remarks()) or "none"
        raise UserError(f"{path}: expected questions. Received: {received}")
    return result


# === Forms of files ===


def _read_rows(path):
    """The questions of a file in any form."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        return _rows_of_lines(path)
    try:
        value = read_json(path)
    except UserError as error:
        # A file of lines may be called .json, too.
        try:
            return _rows_of_lines(path)
        except UserError:
            raise error from None
    values = value.get("data") if isinstance(value, dict) else value
    first = values[0] if isinstance(values, list) and values else None
    if isinstance(first, dict) and "context" in first:
        return _rows_of_flat(validated(path, list[_FlatQuestion], values))

    rows = []
    for number, article in enumerate(validated(path, _File, value).data, 1):
        for paragraph in article.paragraphs:
            rows += [_Row(number, paragraph.context, question) for question in paragraph.qas]
    return rows


def _rows_of_lines(path):
    return _rows_of_flat(read_json_lines(path, _FlatQuestion, FLAT_LINE))


def _rows_of_flat(flat_questions):
    """The rows of Hugging Face's form; each title is an article."""
    rows = []
    numbers: dict[str, int] = {}
    for flat in flat_questions:
        number = 0
        if flat.title is not None:
            number = numbers.setdefault(flat.title, len(numbers) + 1)
        answers = []
        # A missing offset or text makes the question invalid.
        for text, start in itertools.zip_longest(flat.answers.text, flat.answers.answer_start):
            answers.append({"text": text, "answer_start": start})
        value = {
            "id": flat.id,
            "question": flat.question,
            "is_impossible": flat.is_impossible,
            "answers": answers,
        }
        rows.append(_Row(number, flat.context, value))
    return rows


def _read_other_starts(path):
    """Reads the possible offsets of answers, `{(id, number of the answer): offsets}`."""
    starts_by_answer = {}
    for id, entries in read_json(path, dict[str, list[_Starts]]).items():
        for entry in entries:
            starts_by_answer[id, entry.answer] = entry.all
    return starts_by_answer


def _reason(error):
    """Why a question is left out, in the same words for all that lack the same."""
    if not isinstance(error, ValidationError):
        return str(error)
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"]) or "question"
    return in_one_line(f"{field}: {problem['msg'][0].lower()}{problem['msg'][1:]}")


def _id_of(value):
    id = value.get("id") if isinstance(value, dict) else None
    return "without an id" if id is None else str(id)


# === Places of answers ===


def _find_answers(context, item, has_utf16_offsets, starts_by_answer):
    """The spans of a question's answers; a `ValueError` if a text is not at its offset."""
    if item.is_impossible:
        return ()
    spans = []
    for number, answer in enumerate(item.answers):
        if answer.text.strip() in NO_ANSWER_TEXTS:
            continue
        for start in starts_by_answer.get((item.id, number), [answer.answer_start]):
            if has_utf16_offsets:
                start = _character_at_unit(context, start)
            end = start + len(answer.text)
            if context[start:end] != answer.text:
                raise ValueError(MISPLACED)
            spans.append(Answer(start, end))
    return tuple(spans)


def _character_at_unit(text, unit):
    """The number of the character at a UTF-16 unit.

    >>> _character_at_unit("\U0001f44d!", 2)
    1
    """
    before = text.encode("utf-16-le")[: 2 * unit]
    return len(before.decode("utf-16-le", errors="ignore"))


def _counts_utf16_units(rows):
    """Whether offsets count UTF-16 units: some answers are there alone, none by characters alone.

    Only contexts with characters of two units tell.
    """
    by_units = 0
    by_characters = 0
    for row in rows:
        if ord(max(row.context)) <= LAST_NARROW:
            continue
        is_at_unit = _has_answers_at(row, has_utf16_offsets=True)
        is_at_character = _has_answers_at(row, has_utf16_offsets=False)
        by_units += is_at_unit and not is_at_character
        by_characters += is_at_character and not is_at_unit
    return by_units > 0 and by_characters == 0


def _has_answers_at(row, has_utf16_offsets):
    try:
        item = _Item.model_validate(row.value)
        return bool(_find_answers(row.context, item, has_utf16_offsets, {}))
    except ValueError:
        return False
