"""SQuAD 1.1 (Rajpurkar et al. 2016): questions on paragraphs, answered by spans of them.

    {"data": [{"paragraphs": [{
        "context": TEXT,
        "qas": [{"id": ID, "question": TEXT, "answers": [{"text": TEXT, "answer_start": N}]}]
    }]}]}

An id may be a number. Texts are kept character by character: every offset counts characters of the
file's text.
"""

import re
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from colloquy.base.characters import SPACELESS
from colloquy.base.files import UserError, in_one_line
from colloquy.data.normalization import JOINERS, MARKS, normalize, normalize_with_offsets
from colloquy.data.text_files import find_files, read_json

# Combining marks are no letters to a regular expression; joiners that are left join letters.
_DIGITS = rf"\d[\d{MARKS}]*"
LETTER = rf"(?![{SPACELESS}])\w"
LATER_LETTER = rf"(?![{SPACELESS}])[\w{MARKS}{JOINERS}]"
TOKEN = re.compile(
    rf"{_DIGITS}(?:[.,]{_DIGITS})*|[{SPACELESS}]|{LETTER}(?:{LATER_LETTER})*|[^\w\s][{MARKS}]*"
)


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
    reference. None: SQuAD 2.0's questions that their context does not answer.
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


def _as_text(id):
    return str(id) if type(id) is int else id


class _Item(_Json):
    id: Annotated[Text, BeforeValidator(_as_text)]
    question: Text
    is_impossible: bool = False
    """Of SQuAD 2.0: no part of the context is an answer."""
    answers: list[_Answer]

    @field_validator("answers")
    @classmethod
    def _has_answers(cls, answers, info):
        if not answers and not info.data.get("is_impossible"):
            raise ValueError("expected an answer, or is_impossible, as in SQuAD 2.0")
        return answers


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
    train = _find_questions(directory, "train-*.json")
    dev = _find_questions(directory, "dev-*.json")
    stem = train.name.removesuffix(".gz").removesuffix(".json")
    other_starts = train.with_name(f"{stem}.ambiguous_starts.json")
    if not other_starts.is_file():
        other_starts = None
    return {"train": (train, other_starts), "dev": (dev, None)}


def _find_questions(directory, pattern):
    """The first file of a pattern; one of other starts only if there is nothing else."""
    paths = find_files(directory, [pattern], "SQuAD")
    return min(paths, key=lambda path: "ambiguous_starts" in path.name)


def tokenize(text):
    """The tokens of a text as `(start, end)`: numbers, words, and single signs.

    Each character of a script without spaces (Han, kana, Thai) is a token. Tokens are found in the
    text as `data.normalization` reads it; offsets are those of the text as given, whose words are
    `words_at` them.

    >>> text = "It's 3,000.5 m²!"
    >>> [text[start:end] for start, end in tokenize(text)]
    ['It', "'", 's', '3,000.5', 'm²', '!']
    >>> [text[start:end] for text in ["東京は2つ"] for start, end in tokenize(text)]
    ['東', '京', 'は', '2', 'つ']
    """
    if text.isascii():
        return [match.span() for match in TOKEN.finditer(text)]
    normalized = normalize_with_offsets(text)
    spans = []
    for match in TOKEN.finditer(normalized.text):
        spans.append((normalized.starts[match.start()], normalized.ends[match.end() - 1]))
    return spans


def words_at(text, spans):
    """The words, as a model reads them, at spans of a text.

    >>> words_at("Zu\u00adrich", tokenize("Zu\u00adrich"))
    ['Zurich']
    """
    return [normalize(text[start:end]) for start, end in spans]


def align(offsets, answer):
    """The first and the last token of `tokenize` that an `Answer` touches, or `None`.

    >>> align([(0, 2), (3, 8)], Answer(4, 6))
    (1, 1)
    """
    touching = []
    for token, (start, end) in enumerate(offsets):
        if start < answer.end and end > answer.start:
            touching.append(token)
    if not touching:
        return None
    return touching[0], touching[-1]


def read(path, other_starts=None):
    """Reads the questions of a SQuAD file, a list of `Question`.

    `other_starts` is a JSON file `{id: [{"answer": number of the answer, "all": [offset, ..]}]}`
    with all places where an answer's text may be meant, if the file's own `answer_start` is one of
    several guesses.
    """
    articles = read_json(path, _File).data
    starts_by_answer = _read_other_starts(other_starts) if other_starts else {}
    questions = []
    seen = {}
    for article_number, article in enumerate(articles, 1):
        for paragraph in article.paragraphs:
            for item in paragraph.qas:
                place = f"{path}, question {in_one_line(item.id)}"
                # The official file repeats 14 of its questions.
                texts = paragraph.context, item.question
                if seen.setdefault(item.id, texts) != texts:
                    raise UserError(
                        f"{place}: expected an id that no other question has. "
                        f"Received: {item.question!r:.60}"
                    )
                answers = _locate_answers(place, paragraph.context, item, starts_by_answer)
                question = Question(
                    id=item.id,
                    context=paragraph.context,
                    text=item.question,
                    answers=answers,
                    article=article_number,
                )
                questions.append(question)
    if not questions:
        raise UserError(f"{path}: expected questions. Received: none")
    return questions


def _read_other_starts(path):
    """Reads the possible offsets of answers, `{(id, number of the answer): offsets}`."""
    starts_by_answer = {}
    for id, entries in read_json(path, dict[str, list[_Starts]]).items():
        for entry in entries:
            starts_by_answer[id, entry.answer] = entry.all
    return starts_by_answer


def _locate_answers(place, context, item, starts_by_answer):
    """The spans of a question's answers, which must have the answers' texts."""
    spans = []
    for number, answer in enumerate(item.answers):
        starts = starts_by_answer.get((item.id, number), [answer.answer_start])
        for start in starts:
            end = start + len(answer.text)
            received = context[start:end]
            if received != answer.text:
                raise UserError(
                    f"{place}: expected {answer.text!r:.60} at offset {start}. "
                    f"Received: {received!r:.60}"
                )
            spans.append(Answer(start, end))
    return tuple(spans)
