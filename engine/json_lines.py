"""Answers to a file of instances, line by line."""

import itertools
import json
import sys
from typing import Any, NamedTuple

from colloquy.base.files import UserError, atomic_file, in_one_line, refuse_existing, writing
from colloquy.engine.predictor import Predictor

BATCH = 32
"""Lines that are answered together."""


def predict_lines(
    predictor: Predictor, source: str, out: str, explain: bool = False
) -> tuple[int, int]:
    """Answers a file of instances; `-` is standard input or output.

    Blank lines are skipped. An `id` of an instance is returned with its answer. A malformed line is
    answered by `{"error": one sentence}`. The answers are written beside `out` and moved there at
    the end, so that `out` has all of them or does not exist.

    Args:
        explain: Adds `attention` to the answers.

    Returns:
        The number of lines that are answered.
        The number of those that got an error.

    Raises:
        UserError: `out` exists, or cannot be written.
    """
    if out != "-":
        refuse_existing(out)
    answered = 0
    wrong = 0
    with _open_source(source) as lines, writing(out), _open_answers(out) as file:
        numbered_lines = _not_blank(lines)
        while chunk := list(itertools.islice(numbered_lines, BATCH)):
            for answer in _answer_lines(predictor, chunk, explain):
                if "error" in answer:
                    wrong += 1
                text = json.dumps(answer, ensure_ascii=False)
                file.write(text.encode("utf-8", "replace") + b"\n")
            file.flush()
            answered += len(chunk)
    return answered, wrong


def _not_blank(lines):
    """Yields `(number, line)` of the lines that are not blank; numbers begin at 1."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line


class _Line(NamedTuple):
    """A line of the input, read."""

    id: object = None
    instance: Any = None
    error: str = ""


def _answer_lines(predictor, numbered_lines, explain):
    """Answers some lines; the answer to a wrong one is `{"error"}`."""
    lines = [_read_line(predictor, number, text) for number, text in numbered_lines]
    instances = [line.instance for line in lines if not line.error]
    if explain:
        answers = [predictor.explain(instance) for instance in instances]
    else:
        answers = predictor.answer_as_dicts(instances)

    answers_left = iter(answers)
    all_answers = []
    for line in lines:
        answer = {"error": line.error} if line.error else next(answers_left)
        if line.id is not None:
            answer = {"id": line.id, **answer}
        all_answers.append(answer)
    return all_answers


def _read_line(predictor, number, text):
    id = None
    try:
        value = json.loads(text.decode("utf-8-sig"))
        if not isinstance(value, dict):
            raise ValueError(f"Received: {in_one_line(value)}")
        if "id" not in predictor.Instance.model_fields:
            id = value.pop("id", None)
        return _Line(id, predictor.make_instance(value, f"line {number}"))
    except UserError as error:
        return _Line(id, error=str(error))
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos + 1}"
        return _Line(error=f"line {number}: expected a JSON object. {reason}")
    except (ValueError, RecursionError) as error:
        reason = str(error)[:120]
        return _Line(error=f"line {number}: expected a JSON object. {reason}")


def _open_source(path):
    if path == "-":
        return open(sys.stdin.fileno(), "rb", closefd=False)
    try:
        return open(path, "rb")
    except OSError as error:
        raise UserError(f"{path} cannot be opened: {error.strerror}") from error


def _open_answers(path):
    if path == "-":
        return open(sys.stdout.fileno(), "wb", closefd=False)
    return atomic_file(path, "wb")
