"""Answers to a file of instances, line by line."""

import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO

from colloquy.base.files import UserError, atomic_file, refuse_existing, writing
from colloquy.engine.predictor import Predictor

BATCH = 32
"""Lines that are answered together."""


def predict_lines(
    predictor: Predictor, source: str, out: str, explain: bool = False
) -> tuple[int, list[int]]:
    """Answers a file of instances; `-` is standard input or output.

    Blank lines are skipped. An `id` of an instance is returned with its answer. A malformed line is
    answered by `{"error": one sentence}`. The answers are written beside `out` and moved there at
    the end, so that `out` has all of them or does not exist.

    Args:
        explain: Adds `attention` to the answers.

    Returns:
        The number of lines that are answered.
        The numbers, from 1, of those that got an error.

    Raises:
        UserError: `out` exists, or cannot be written.
    """
    if out != "-":
        refuse_existing(out)
    answered = 0
    wrong = []
    with _open_source(source) as lines, writing(out), _open_answers(out) as file:
        numbered_lines = _not_blank(lines)
        while chunk := list(itertools.islice(numbered_lines, BATCH)):
            for number, answer in _answer_lines(predictor, chunk, explain):
                if "error" in answer:
                    wrong.append(number)
                text = json.dumps(answer, ensure_ascii=False)
                file.write(text.encode("utf-8", "replace") + b"\n")
            file.flush()
            answered += len(chunk)
    return answered, wrong


def _not_blank(lines: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields `(number, line)` of the lines that are not blank; numbers begin at 1."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line


def _answer_lines(
    predictor: Predictor, numbered_lines: list[tuple[int, bytes]], explain: bool
) -> list[tuple[int, dict]]:
    """Returns `(number, answer)` of some lines; the answer to a wrong one is `{"error"}`."""
    answers = {}
    instances = {}
    ids = {}
    for number, line in numbered_lines:
        try:
            value = _read_line(number, line)
            if isinstance(value, dict) and "id" not in predictor.Instance.model_fields:
                ids[number] = value.pop("id", None)
            instances[number] = predictor.make_instance(value, f"line {number}")
        except UserError as error:
            answers[number] = {"error": str(error)}
    if explain:
        for number, instance in instances.items():
            answers[number] = predictor.explain(instance)
    elif instances:
        predicted = predictor.answer_as_dicts(list(instances.values()))
        answers.update(zip(instances, predicted, strict=True))
    for number, id in ids.items():
        if id is not None:
            answers[number] = {"id": id, **answers[number]}
    return [(number, answers[number]) for number, _ in numbered_lines]


def _read_line(number: int, line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        reason = str(error)[:120]
        raise UserError(f"line {number}: expected a JSON object. {reason}") from error


def _open_source(path: str) -> BinaryIO:
    if path == "-":
        return open(sys.stdin.fileno(), "rb", closefd=False)
    try:
        return open(path, "rb")
    except OSError as error:
        raise UserError(f"{path} cannot be opened: {error.strerror}") from error


def _open_answers(path: str) -> AbstractContextManager[BinaryIO]:
    if path == "-":
        return open(sys.stdout.fileno(), "wb", closefd=False)
    return atomic_file(path, "wb")
