"""SQuAD 1.1 (Rajpurkar et al. 2016): questions on paragraphs, each answered by a span of its paragraph.

    {"data": [{"paragraphs": [{"context": TEXT, "qas": [{"id": ID, "question": TEXT,
                                                          "answers": [{"text": TEXT, "answer_start": N}]}]}]}]}

Texts are kept letter by letter: every offset counts characters of the text as the file has it.
"""

import gzip
import json
import pathlib
import re
import zlib
from typing import NamedTuple

from base.files import UserError

MARKS = "\u0300-\u036f"  # combining ones, which are no letters to a regular expression
TOKEN = re.compile(rf"\d+(?:[.,]\d+)*|\w[\w{MARKS}]*|[^\w\s]")


class Answer(NamedTuple):
    """A span of a context: `context[start:end]` is the text."""

    start: int
    end: int


class Question(NamedTuple):
    """A question and its reference answers."""

    id: str
    context: str
    text: str
    answers: tuple[Answer, ...]
    """One a reference, in the file's order; with `other_starts`, every place where a reference may stand."""


def find_splits(directory):
    """Finds the files of a directory.

    Returns:
        `{"train": (file, file of other starts or None), "dev": ...}`: `train-*.json` and `dev-*.json`, also with `.gz`;
        beside each, where there is one, `*.ambiguous_starts.json`. Those of dev are not used: there every reference
        stands where it says.

    Raises:
        UserError: where the directory or one of the two is missing.
    """
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        raise UserError(f"{directory}: expected the directory of SQuAD. Received: no directory")
    files = {}
    for split in ("train", "dev"):
        found = [p for ending in ("json", "json.gz") for p in sorted(directory.glob(f"{split}-*.{ending}"))]
        found = [path for path in found if "ambiguous_starts" not in path.name]
        if not found:
            raise UserError(f"{directory}: expected a file {split}-*.json or {split}-*.json.gz")
        others = found[0].with_name(found[0].name.removesuffix(".gz").removesuffix(".json") + ".ambiguous_starts.json")
        files[split] = found[0], others if split == "train" and others.is_file() else None
    return files


def tokenize(text):
    """The tokens of a text and where they stand: numbers, words, and single signs.

    Args:
        text: Any text.

    Returns:
        List of `(start, end)`: `text[start:end]` is a token.

    >>> [text[i:j] for text in ["It's 3,000.5 m²!"] for i, j in tokenize(text)]
    ['It', "'", 's', '3,000.5', 'm²', '!']
    """
    return [match.span() for match in TOKEN.finditer(text)]


def align(offsets, answer):
    """The tokens that cover a span of characters.

    Args:
        offsets: Of `tokenize`.
        answer: An `Answer`.

    Returns:
        The first and the last token, or `None` where no token touches the span.

    >>> align([(0, 2), (3, 8)], Answer(4, 6))
    (1, 1)
    """
    touching = [i for i, (start, end) in enumerate(offsets) if start < answer.end and end > answer.start]
    return (touching[0], touching[-1]) if touching else None


def read(path, other_starts=None):
    """Reads a SQuAD file.

    Args:
        path: JSON, UTF-8; one that ends in `.gz` is decompressed.
        other_starts: A JSON file `{id: [{"answer": number of the answer, "all": [offset, ..]}]}` with all places where
            an answer's text may be meant, where the file's own `answer_start` is one of several guesses.

    Returns:
        List of `Question`, in the file's order.

    Raises:
        UserError: where a file is missing or no SQuAD, a text is empty, or an answer is not at its offset; the message
            names the question.
    """
    path = pathlib.Path(path)
    data = _load(path)
    others = _load(pathlib.Path(other_starts)) if other_starts else {}
    questions = []
    for place, context, item in _items(path, data):
        id = _text(path, place, item, "id")
        answers = item.get("answers")
        if not isinstance(answers, list) or not answers:
            raise UserError(f"{path}, question {id}: expected a list of answers. Received: {answers!r:.60}")
        starts = {entry["answer"]: entry["all"] for entry in others.get(id, [])}
        spans = []
        for number, answer in enumerate(answers):
            for start in starts.get(number, [answer.get("answer_start") if isinstance(answer, dict) else None]):
                spans.append(_span(path, id, context, answer, start))
        questions.append(Question(id, context, _text(path, f"question {id}", item, "question"), tuple(spans)))
    if not questions:
        raise UserError(f"{path}: expected questions. Received: none")
    return questions


def _span(path, id, context, answer, start):
    text = _text(path, f"question {id}", answer, "text")
    if not isinstance(start, int) or isinstance(start, bool) or start < 0:
        raise UserError(f"{path}, question {id}: expected answer_start to be an offset. Received: {start!r:.60}")
    found = context[start : start + len(text)]
    if found != text:
        raise UserError(f"{path}, question {id}: expected {text!r:.60} at offset {start}. Received: {found!r:.60}")
    return Answer(start, start + len(text))


def _items(path, data):
    """Every question as it is in the file, with its context and where it stands."""
    if not isinstance(data, dict) or not isinstance(data.get("data"), list):
        raise UserError(f'{path}: expected SQuAD 1.1, an object with a list "data". Received: {type(data).__name__}')
    for a, article in enumerate(data["data"], 1):
        for p, paragraph in enumerate(_list(path, f"article {a}", article, "paragraphs"), 1):
            place = f"article {a}, paragraph {p}"
            context = _text(path, place, paragraph, "context")
            for item in _list(path, place, paragraph, "qas"):
                yield place, context, item


def _list(path, place, value, name):
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise UserError(f'{path}, {place}: expected a list "{name}". Received: {found!r:.60}')
    return found


def _text(path, place, value, name):
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str) or not found.strip():
        raise UserError(f'{path}, {place}: expected a text "{name}" that is not empty. Received: {found!r:.60}')
    return found


def _load(path):
    try:
        raw = path.read_bytes()
        return json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: expected a readable JSON file. Received: {reason}") from error
    except ValueError as error:
        raise UserError(f"{path}: expected JSON in UTF-8. {error}") from error
