"""A loaded model that answers instances, from Python, a chat, REST or a file of JSON lines."""

import abc
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from pydantic import ValidationError

from colloquy.base.config import Config, sentence
from colloquy.base.files import UserError

TOKENS = re.compile(r"\w+|[^\w\s]")


class Predictor(abc.ABC):
    """Made of a run by `engine.task.Task.predictor`. Several threads may call it."""

    Instance = Config
    """The input of a user: a subclass of `Config`, its fields described by docstrings."""
    Answer = Config
    """The output for an instance; a field that is not set is left out."""

    run = ""
    """The run whose model answers, for the repr."""

    def __repr__(self) -> str:
        instance = ", ".join(self.Instance.model_fields)
        answer = ", ".join(self.Answer.model_fields)
        name = f"{type(self).__name__} {self.run}".rstrip()
        return f"<{name}: {{{instance}}} -> {{{answer}}}>"

    def predict(self, instances: Iterable[Mapping[str, object] | Config]) -> list[dict]:
        """Answers instances, dicts with the fields of `Instance`, by dicts with those of `Answer`.

        In one batch where their sizes allow it. A `UserError` names a wrong instance by its number,
        and the field.
        """
        valid = []
        for number, instance in enumerate(instances):
            valid.append(self.valid(instance, f"instance {number}"))
        return self.answers(valid) if valid else []

    def explain(self, instance: Mapping[str, object] | Config, details: bool = False) -> dict:
        """Answers one instance and adds the model's `attention`, a list of `{"title", "rows",
        "columns", "weights"}`.

        `rows` and `columns` are lists of texts, `weights` a list of rows of floats in [0, 1]. With
        `details`, the maps of every module, head and level, each with a `group` that neighbours in
        a picture share; the weights of a match matrix are its dot products.
        """
        answer, maps = self.answer_with_attention(self.valid(instance, "instance 0"), details)
        return {**answer.model_dump(exclude_unset=True), "attention": maps}

    def valid(self, instance: object, where: str) -> Any:
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

    def answers(self, instances: list) -> list[dict]:
        """Answers each `Instance` by a dict, as `predict` returns it."""
        return [answer.model_dump(exclude_unset=True) for answer in self.answer(instances)]

    def check(self, instance: Any) -> None:
        """Raises a `UserError` if an `Instance` is wrong in a way that its class cannot say;
        nothing here.
        """
        return

    def padded_rows(self, instance: Any) -> int:
        """The number of rows that the model computes for an `Instance`; here 1.

        A server refuses requests with too many. A row takes some 10 ms on two cores.
        """
        return 1

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text; here its words and signs."""
        return len(TOKENS.findall(text))

    def configure(self, options: Config) -> None:
        """Sets the search for answers by the task's `Options`; here a `UserError` if any is set."""
        changed = options.explicit_fields()
        if changed:
            raise UserError(f"this model answers without settings. Received: {', '.join(changed)}")

    def of_examples(self) -> Self:
        """The same model for the examples of `engine.task.Task.read_example`; here itself.

        Their texts are words separated by spaces, which must not be tokenized again.
        """
        return self

    def show(self, instance: Any) -> tuple[list[tuple[str, str]], list[tuple[float, str]]]:
        """Shows how the model reads and answers an `Instance`; empty by default.

        Returns `(label, text)` of what it reads, without words beyond its limits and by
        `in_brackets`, and `(score, text)` of its answers, the best first.
        """
        return [], []

    def conversation(self, said: Sequence[tuple[str, str]], decode: str = "") -> dict:
        """The instance, a dict, of a conversation of `(speaker, text)`, the speakers `user` and
        `bot`.

        `decode` are settings of the search for replies, if the model takes any. Here a `UserError`.
        """
        raise UserError("this model does not reply to conversations: use :predict")

    def reply(self, answer: dict) -> str:
        """The text of an answer, a dict, to an instance of `conversation`. Here a `UserError`."""
        raise UserError("this model does not reply to conversations: use :predict")

    @abc.abstractmethod
    def answer(self, instances: list) -> list:
        """Makes an `Answer` for each of one or more `Instance`s."""

    @abc.abstractmethod
    def answer_with_attention(self, instance: Any, details: bool) -> tuple[Any, list[dict]]:
        """Makes the `Answer` and the attention maps of an `Instance`, as `explain` returns them."""


def attention_map(
    title: str, rows: list[str], columns: list[str], weights: Any, **group: str
) -> dict:
    """One of the maps of `Predictor.explain`; `weights` are an array `(rows, columns)`."""
    return {
        "title": title,
        "rows": rows,
        "columns": columns,
        "weights": np.asarray(weights).tolist(),
        **group,
    }


def in_brackets(words: Sequence[str], vocabulary: Any) -> str:
    """Words as a text, with brackets around those that a `data.vocabulary.Vocabulary` lacks."""
    shown = []
    for word, id in zip(words, vocabulary.encode(words), strict=True):
        shown.append(f"[{word}]" if id == vocabulary.unk_id else word)
    return " ".join(shown)
