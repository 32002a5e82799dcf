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

import json
import pathlib
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from colloquy.base.files import UserError, in_one_line
from colloquy.data.text_files import bad_line, find_files, read_json, read_lines, validated

NO_ANSWER_TEXTS = ("", "CANNOTANSWER")
"""Answers that mean that there is none: an empty one of annotation tools, and QuAC's."""
MISPLACED = "the text of an answer is not at its offset"
REPEATED = "another question has the same id"
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


def find_splits(directory):
    """The files of a directory, `{"train": (file, file of other starts or None), "dev": ...}`.

    Only `train*.json` may have other starts, in `train*.ambiguous_starts.json`.
    """
    train = _find_questions(directory, "train")
    dev = _find_questions(directory, "dev")
    stem = train.name.removesuffix(".gz").removesuffix(".json")
    other_starts = train.with_name(f"{stem}.ambiguous_starts.json")
    if not other_starts.is_file():
        other_starts = None
    return {"train": (train, other_starts), "dev": (dev, None)}


def _find_questions(directory, split):
    """The first file of a split; one of other starts only if there is nothing else."""
    patterns = [f"{split}-*.json", f"{split}.json", f"{split}*.jsonl"]
    paths = find_files(directory, patterns, "SQuAD")
    return min(paths, key=lambda path: "ambiguous_starts" in path.name)


def read(path, other_starts=None) -> Questions:
    """Reads a SQuAD file or a relative of it.

    A question that cannot be read is left out and counted; a file without questions, or in another
    form, is a `UserError`.

    `other_starts` is a JSON file `{id: [{"answer": number of the answer, "all": [offset, ..]}]}`
    with all places where an answer's text may be meant, if the file's own `answer_start` is one of
    several guesses.
    """
    articles = _read_articles(pathlib.Path(path))
    has_utf16_offsets = _counts_utf16_units(articles)
    starts_by_answer = _read_other_starts(other_starts) if other_starts else {}
    questions = []
    left_out: dict[str, list[str]] = {}
    texts_by_id: dict[str, tuple[str, str]] = {}
    for article_number, article in articles:
        for paragraph in article.paragraphs:
            places = _Places(paragraph.context, has_utf16_offsets)
            for value in paragraph.qas:
                item, reason = _valid_item(value)
                answers = None
                if item:
                    # The official file repeats 14 of its questions.
                    texts = paragraph.context, item.question
                    answers = places.answers(item, starts_by_answer)
                    if texts_by_id.setdefault(item.id, texts) != texts:
                        reason = REPEATED
                    elif answers is None:
                        reason = MISPLACED
                if reason:
                    left_out.setdefault(reason, []).append(_id_of(value))
                    continue
                question = Question(
                    id=item.id,
                    context=paragraph.context,
                    text=item.question,
                    answers=answers,
                    article=article_number,
                )
                questions.append(question)
    result = Questions(questions, left_out, has_utf16_offsets)
    if not questions:
        received = "; ".join(result.remarks()) or "none"
        raise UserError(f"{path}: expected questions. Received: {received}")
    return result


def _read_articles(path):
    """The articles of a file in any form, as `(number, article)`."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        return _articles_of_rows(path, _read_rows(path))
    try:
        value = read_json(path)
    except UserError as error:
        # A file of lines may be called .json, too.
        try:
            return _articles_of_rows(path, _read_rows(path))
        except UserError:
            raise error from None
    rows = value.get("data") if isinstance(value, dict) else value
    is_flat = isinstance(rows, list) and rows and isinstance(rows[0], dict) and "context" in rows[0]
    if is_flat:
        return _articles_of_rows(path, rows)
    return list(enumerate(validated(path, _File, value).data, 1))


def _read_rows(path):
    """The values of a file of JSON lines."""
    rows = []
    for number, line in read_lines(path, "a question a line, as JSON"):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise bad_line(path, number, "JSON", line) from error
    return rows


def _articles_of_rows(path, rows):
    """The articles of a file with a question a row; each title is one."""
    rows = validated(path, list[_FlatQuestion], rows)
    numbers = {}
    qas = {}
    for row in rows:
        number = 0
        if row.title is not None:
            number = numbers.setdefault(row.title, len(numbers) + 1)
        answers = []
        for text, start in zip(row.answers.text, row.answers.answer_start, strict=False):
            answers.append({"text": text, "answer_start": start})
        item = {
            "id": row.id,
            "question": row.question,
            "is_impossible": row.is_impossible,
            "answers": answers,
        }
        qas.setdefault((number, row.context), []).append(item)

    articles = []
    for (number, context), items in qas.items():
        paragraph = _Paragraph(context=context, qas=items)
        articles.append((number, _Article(paragraphs=[paragraph])))
    return articles


def _valid_item(value):
    """A question, or `None` and the reason why it is none."""
    try:
        return _Item.model_validate(value), None
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"]) or "question"
        return None, in_one_line(f"{field}: {problem['msg'][0].lower()}{problem['msg'][1:]}")


def _id_of(value):
    id = value.get("id") if isinstance(value, dict) else None
    return "without an id" if id is None else str(id)


def _read_other_starts(path):
    """Reads the possible offsets of answers, `{(id, number of the answer): offsets}`."""
    starts_by_answer = {}
    for id, entries in read_json(path, dict[str, list[_Starts]]).items():
        for entry in entries:
            starts_by_answer[id, entry.answer] = entry.all
    return starts_by_answer


class _Places:
    """Finds answers in a context by their offsets."""

    def __init__(self, context, has_utf16_offsets):
        self.context = context
        self.character_at_unit = None
        """The character at each UTF-16 unit; `None` where each has one."""
        if has_utf16_offsets and _has_wide_characters(context):
            self.character_at_unit = []
            for number, char in enumerate(context):
                units = 2 if ord(char) > LAST_NARROW else 1
                self.character_at_unit += [number] * units

    def answers(self, item, starts_by_answer):
        """The spans of a question's answers; `None` if a text is not at its offset."""
        texts = [answer.text.strip() for answer in item.answers]
        if item.is_impossible or all(text in NO_ANSWER_TEXTS for text in texts):
            return ()
        spans = []
        for number, answer in enumerate(item.answers):
            if texts[number] in NO_ANSWER_TEXTS:
                continue
            for start in starts_by_answer.get((item.id, number), [answer.answer_start]):
                span = self.span(answer.text, start)
                if span is None:
                    return None
                spans.append(span)
        return tuple(spans)

    def span(self, text, start):
        """The span of a text at an offset; `None` if it is not there."""
        if self.character_at_unit is not None:
            if start >= len(self.character_at_unit):
                return None
            start = self.character_at_unit[start]
        end = start + len(text)
        return Answer(start, end) if self.context[start:end] == text else None


def _has_wide_characters(text):
    """Whether a text has characters of two UTF-16 units, such as an emoji."""
    return bool(text) and ord(max(text)) > LAST_NARROW


def _counts_utf16_units(articles):
    """Whether offsets count UTF-16 units: some answers are there alone, none by characters alone.

    Only contexts with characters of two units tell.
    """
    by_units = 0
    by_characters = 0
    for _, article in articles:
        for paragraph in article.paragraphs:
            if not _has_wide_characters(paragraph.context):
                continue
            unit_places = _Places(paragraph.context, has_utf16_offsets=True)
            character_places = _Places(paragraph.context, has_utf16_offsets=False)
            for value in paragraph.qas:
                item, _ = _valid_item(value)
                if item is None:
                    continue
                is_at_unit = bool(unit_places.answers(item, {}))
                is_at_character = bool(character_places.answers(item, {}))
                by_units += is_at_unit and not is_at_character
                by_characters += is_at_character and not is_at_unit
    return by_units > 0 and by_characters == 0
