"""A loaded model that answers instances, from Python, a chat, REST or a file of JSON lines."""

import abc
import itertools
import json
import os
import pathlib
import re
import sys

import numpy as np
from pydantic import ValidationError

from colloquy.base.config import Config, sentence
from colloquy.base.files import UserError, writing

BATCH = 32  # lines that are answered together
TOKENS = re.compile(r"\w+|[^\w\s]")


class Predictor(abc.ABC):
    """Made of a run by `engine.task.Task.predictor`. Several threads may call it."""

    Instance = Config
    """The input of a user: a subclass of `Config`, its fields described by docstrings."""
    Answer = Config
    """The output for an instance; a field that is not set is left out."""

    def predict(self, instances):
        """Answers instances, dicts with the fields of `Instance`, by dicts with those of `Answer`.

        In one batch where their sizes allow it. A `UserError` names a wrong instance by its number,
        and the field.
        """
        valid = []
        for number, instance in enumerate(instances):
            valid.append(self.valid(instance, f"instance {number}"))
        return self.answers(valid) if valid else []

    def explain(self, instance, details=False):
        """Answers one instance and adds the model's `attention`, a list of `{"title", "rows",
        "columns", "weights"}`.

        `rows` and `columns` are lists of texts, `weights` a list of rows of floats in [0, 1]. With
        `details`, the maps of every module, head and level, each with a `group` that neighbours in
        a picture share; the weights of a match matrix are its dot products.
        """
        answer, maps = self.answer_with_attention(self.valid(instance, "instance 0"), details)
        return {**answer.model_dump(exclude_unset=True), "attention": maps}

    def valid(self, instance, where):
        """Makes an `Instance` of a dict; `where` begins the message if it is wrong. An `Instance`
        stays as it is.
        """
        try:
            valid = self.Instance.model_validate(instance)
            self.check(valid)
        except ValidationError as error:
            raise UserError(f"{where}: {sentence(error, self.Instance)}") from error
        except UserError as error:
            raise UserError(f"{where}, {error}") from error
        return valid

    def answers(self, instances):
        """Answers each `Instance` by a dict, as `predict` returns it."""
        return [answer.model_dump(exclude_unset=True) for answer in self.answer(instances)]

    def check(self, instance):
        """Raises a `UserError` if an `Instance` is wrong in a way that its class cannot say;
        nothing here.
        """
        return

    def padded_rows(self, instance):
        """The number of rows that the model computes for an `Instance`; here 1.

        A server refuses requests with too many. A row takes some 10 ms on two cores.
        """
        return 1

    def count_tokens(self, text):
        """The number of tokens of a text; here its words and signs."""
        return len(TOKENS.findall(text))

    def show(self, instance):
        """Shows how the model reads and answers an `Instance`; empty by default.

        Returns `(label, text)` of what it reads, without words beyond its limits and by
        `in_brackets`, and `(score, text)` of its answers, the best first.
        """
        return [], []

    def conversation(self, said, decode=""):
        """The instance, a dict, of a conversation of `(speaker, text)`, the speakers `user` and
        `bot`.

        `decode` are settings of the search for replies, if the model takes any. Here a `UserError`.
        """
        raise UserError("this model does not reply to conversations: use :predict")

    def reply(self, answer):
        """The text of an answer, a dict, in a conversation."""
        raise NotImplementedError

    @abc.abstractmethod
    def answer(self, instances):
        """Makes an `Answer` for each of one or more `Instance`s."""

    @abc.abstractmethod
    def answer_with_attention(self, instance, details):
        """Makes the `Answer` and the attention maps of an `Instance`, as `explain` returns them."""


def attention_map(title, rows, columns, weights, **group):
    """One of the maps of `Predictor.explain`; `weights` are an array `(rows, columns)`."""
    return {
        "title": title,
        "rows": rows,
        "columns": columns,
        "weights": np.asarray(weights).tolist(),
        **group,
    }


def in_brackets(words, vocabulary):
    """Words as a text, with brackets around those that a `data.vocabulary.Vocabulary` lacks."""
    shown = []
    for word, id in zip(words, vocabulary.encode(words), strict=True):
        shown.append(f"[{word}]" if id == vocabulary.unk_id else word)
    return " ".join(shown)


# === JSON lines ===


def predict_lines(predictor, source, out, explain=False):
    """Answers a file of instances, line by line; `-` is standard input or output.

    Blank lines are skipped. An `id` of an instance is returned with its answer. A malformed line is
    answered by `{"error": one sentence}`. If `out` has answers already, the
    lines of `source` that they answer are skipped: a call that was interrupted is continued. A file
    that holds anything else is a `UserError`.

    Args:
        explain: Adds `attention` to the answers.

    Returns:
        The number of lines that this call answered.
        The numbers, from 1, of those that got an error.
    """
    if out != "-" and pathlib.Path(out).resolve() == pathlib.Path(source).resolve():
        raise UserError(f"{out} is the file of instances: give another one for the answers")
    done = _count_answers(out, predictor)
    answered = 0
    wrong = []
    with (
        _opened(source, "rb", sys.stdin) as lines,
        writing(out),
        _opened(out, "ab", sys.stdout) as written,
    ):
        numbered_lines = _not_blank(lines)
        skipped = sum(1 for _ in itertools.islice(numbered_lines, done))
        if skipped < done:
            raise UserError(f"{out} has {done:,} lines, more than {source}: give another file")
        while True:
            chunk = list(itertools.islice(numbered_lines, BATCH))
            if not chunk:
                break
            for number, answer in _answer_lines(predictor, chunk, explain):
                if "error" in answer:
                    wrong.append(number)
                text = json.dumps(answer, ensure_ascii=False)
                written.write(text.encode("utf-8", "replace") + b"\n")
            written.flush()
            answered += len(chunk)
    return answered, wrong


def _not_blank(lines):
    """Yields `(number, line)` of the lines that are not blank; numbers begin at 1."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line


def _answer_lines(predictor, numbered_lines, explain):
    """Returns `(number, answer)` of some lines; the answer to a wrong one is `{"error"}`."""
    answers = {}
    instances = {}
    ids = {}
    for number, line in numbered_lines:
        try:
            value = _read_line(number, line)
            if isinstance(value, dict) and "id" not in predictor.Instance.model_fields:
                ids[number] = value.pop("id", None)
            instances[number] = predictor.valid(value, f"line {number}")
        except UserError as error:
            answers[number] = {"error": str(error)}
    if explain:
        for number, instance in instances.items():
            answers[number] = predictor.explain(instance)
    elif instances:
        found = predictor.answers(list(instances.values()))
        answers.update(zip(instances, found, strict=True))
    for number, id in ids.items():
        if id is not None:
            answers[number] = {"id": id, **answers[number]}
    return [(number, answers[number]) for number, _ in numbered_lines]


def _read_line(number, line):
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        reason = str(error)[:120]
        raise UserError(f"line {number}: expected a JSON object. {reason}") from error


def _count_answers(out, predictor):
    """Counts the answers in a file; half a one at its end, left by a killed call, is cut off.

    Raises:
        UserError: The file holds something else.
    """
    if out == "-" or not pathlib.Path(out).is_file():
        return 0
    answers = 0
    end = 0
    with open(out, "rb") as file:
        for line in file:
            is_whole = line.endswith(b"\n")
            if not is_whole and _begins_answer(line, predictor):
                break
            if not is_whole or not _is_answer(line, predictor):
                raise UserError(
                    f"{out}, line {answers + 1}: expected an answer of this model, to continue "
                    "after. The file is left as it is: give another --out"
                )
            answers += 1
            end += len(line)
    if end < pathlib.Path(out).stat().st_size:
        os.truncate(out, end)
    return answers


def _answer_fields(predictor):
    return ["id", *predictor.Answer.model_fields, "attention", "error"]


def _is_answer(line, predictor):
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.keys() <= set(_answer_fields(predictor))


def _begins_answer(line, predictor):
    """True for the first part of an answer, but not for all of it."""
    if _is_answer(line, predictor):
        return False
    beginnings = [f'{{"{name}"'.encode() for name in _answer_fields(predictor)]
    return any(line.startswith(text) or text.startswith(line) for text in beginnings)


def _opened(path, mode, standard):
    if path == "-":
        return open(standard.fileno(), mode.replace("a", "w"), closefd=False)
    try:
        return open(path, mode)
    except OSError as error:
        raise UserError(f"{path} cannot be opened: {error.strerror}") from error
