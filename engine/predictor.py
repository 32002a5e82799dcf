"""A loaded model that answers instances, from Python, a chat, REST or a file of JSON lines."""

import abc
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from pydantic import ValidationError

from colloquy.base.config import Config, sentence
from colloquy.base.files import UserError

# A word, or a sign.
TOKENS = re.compile(r"\w+|[^\w\s]")


class Predictor(abc.ABC):
    """The model of a run, which answers instances; `engine.task.Task.predictor` makes it.

    Several threads may call it.
    """

    Instance = Config
    """The input of a user: a subclass of `Config`, its fields described by docstrings."""
    Answer = Config
    """The output for an instance; a field that is not set is left out."""

    run = ""
    """Path of the run, for the repr."""

    def __repr__(self) -> str:
        instance = ", ".join(self.Instance.model_fields)
        answer = ", ".join(self.Answer.model_fields)
        name = f"{type(self).__name__} {self.run}".rstrip()
        return f"<{name}: {{{instance}}} -> {{{answer}}}>"

    # === Answers ===

    def predict(self, instances: Iterable[Mapping[str, object] | Config]) -> list[dict]:
        """Answers instances, dicts with the fields of `Instance`, by dicts with those of `Answer`.

        Instances of similar size share a batch. If one is wrong, a `UserError` names its number and
        the field.
        """
        checked = []
        for number, instance in enumerate(instances):
            checked.append(self.make_instance(instance, f"instance {number}"))
        return self.answer_as_dicts(checked) if checked else []

    def explain(self, instance: Mapping[str, object] | Config, details: bool = False) -> dict:
        """Answers one instance and adds the model's `attention`, a list of `{"title", "rows",
        "columns", "weights"}`.

        `rows` and `columns` are lists of texts, `weights` a list of rows of floats in [0, 1].

        `details` adds the maps of every module, head and level. They have a `group`: the maps of a
        group are neighbours in a picture. The weights of a match matrix are its dot products.
        """
        checked = self.make_instance(instance, "instance 0")
        answer, maps = self.answer_with_attention(checked, details)
        return {**answer.model_dump(exclude_unset=True), "attention": maps}

    def answer_as_dicts(self, instances: list) -> list[dict]:
        """Answers each `Instance` by a dict, as `predict` returns it."""
        return [answer.model_dump(exclude_unset=True) for answer in self.answer(instances)]

    @abc.abstractmethod
    def answer(self, instances: list) -> list:
        """Makes an `Answer` for each of one or more `Instance`s."""

    @abc.abstractmethod
    def answer_with_attention(self, instance: Any, details: bool) -> tuple[Any, list[dict]]:
        """Makes the `Answer` and the attention maps of an `Instance`, as `explain` returns them."""

    # === Instances ===

    def make_instance(self, fields: object, where: str) -> Any:
        """Makes an `Instance` of a dict with its fields, and checks it.

        Args:
            fields: The dict, or an `Instance`, which is checked and returned.
            where: Beginning of the message of a `UserError`, for example "instance 0".

        Raises:
            UserError: A field is missing, unknown or wrong.
        """
        try:
            instance = self.Instance.model_validate(fields)
            self.check(instance)
        except ValidationError as error:
            raise UserError(f"{where}: {sentence(error, self.Instance)}") from error
        except UserError as error:
            raise UserError(f"{where}, {error}") from error
        return instance

    def check(self, instance: Any) -> None:
        """Raises a `UserError` if an `Instance` breaks a rule that its class does not know, for
        example one that depends on the model. By default there is no such rule.
        """
        return

    def padded_rows(self, instance: Any) -> int:
        """The number of rows that the model computes for an `Instance`, by default 1.

        A server refuses a request with too many rows. A row takes about 10 ms on two cores.
        """
        return 1

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text, by default of its words and signs."""
        return len(TOKENS.findall(text))

    # === Settings and examples ===

    def configure(self, options: Config) -> None:
        """Applies the task's `Options` to the search for answers.

        A model that searches without settings, which is the default, refuses them by a `UserError`.
        """
        changed = options.explicit_fields()
        if changed:
            raise UserError(f"this model answers without settings. Received: {', '.join(changed)}")

    def for_scored_examples(self) -> Self:
        """The predictor for `engine.examples.take_examples` as scored, by default this one.

        The texts of these examples are words separated by spaces, which must not be tokenized
        again.
        """
        return self

    def show(self, instance: Any) -> tuple[list[tuple[str, str]], list[tuple[float, str]]]:
        """Shows how the model reads and answers an `Instance`; both lists are empty by default.

        Returns:
            `(label, text)` of each text that the model reads, without the words that it cuts off
            and with unknown words `in_brackets`.
            `(score, text)` of each answer, the best first.
        """
        return [], []

    # === Conversations ===

    def conversation(self, said: Sequence[tuple[str, str]], decode: str = "") -> dict:
        """Returns the fields of the `Instance` that asks for the next reply of a conversation.

        Args:
            said: `(speaker, text)` of each turn; a speaker is `user` or `bot`.
            decode: Settings of the search for replies, if the model takes any.

        Raises:
            UserError: The model does not reply to conversations, which is the default.
        """
        raise UserError("this model does not reply to conversations: use :predict")

    def reply(self, answer: dict) -> str:
        """The text of the reply in an answer to an instance from `conversation`.

        Raises:
            UserError: The model does not reply to conversations, which is the default.
        """
        raise UserError("this model does not reply to conversations: use :predict")


def attention_map(
    title: str, rows: list[str], columns: list[str], weights: Any, group: str = ""
) -> dict:
    """Returns one of the maps of `Predictor.explain`.

    `weights` are an array `(rows, columns)`. A map of no group lacks the field `group`.
    """
    fields: dict[str, Any] = {
        "title": title,
        "rows": rows,
        "columns": columns,
        "weights": np.asarray(weights).tolist(),
    }
    if group:
        fields["group"] = group
    return fields


def in_brackets(words: Sequence[str], vocabulary: Any) -> str:
    """Joins words to a text, with brackets around those that `data.vocabulary.Vocabulary` lacks."""
    shown = []
    for word, id in zip(words, vocabulary.encode(words), strict=True):
        shown.append(f"[{word}]" if id == vocabulary.unk_id else word)
    return " ".join(shown)
