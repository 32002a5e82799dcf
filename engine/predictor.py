"""A loaded model that answers instances, from Python, a chat, REST or a file of JSON lines."""

import abc
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from pydantic import ValidationError

from colloquy.base.config import Config, sentence
from colloquy.base.files import UserError

NO_REPLIES = "this model does not reply to conversations: send instances to /v1/models/NAME:predict"
TOKEN = re.compile(r"\w+|[^\w\s]")
"""A word, or a punctuation mark."""


class Predictor(abc.ABC):
    """The model of a run, which answers instances; `engine.task.Task.predictor` makes it.

    Several threads call it at once, so a subclass keeps no state between calls.
    """

    Instance = Config
    """The input of a user: a subclass of `Config`, its fields described by docstrings."""
    Answer = Config
    """The output for an instance; a field that is not set is left out."""

    run = ""
    """Path of the run, for the repr."""

    def __repr__(self) -> str:
        name = f"{type(self).__name__} {self.run}".rstrip()
        instance = "{" + ", ".join(self.Instance.model_fields) + "}"
        answer = "{" + ", ".join(self.Answer.model_fields) + "}"
        return f"<{name}: {instance} -> {answer}>"

    # === Answers ===

    def predict(self, instances: Iterable[Mapping[str, object] | Config]) -> list[dict]:
        """Answers instances.

        Args:
            instances: Dicts with the fields of `Instance`; an `Instance` is also taken.

        Returns:
            A dict with the fields of `Answer` for each.

        Raises:
            UserError: An instance is wrong. The message names its number, from 0, and the field.
        """
        checked = []
        for number, instance in enumerate(instances):
            checked.append(self.make_instance(instance, f"instance {number}"))
        return self.answer_as_dicts(checked)

    def explain(self, instance: Mapping[str, object] | Config, details: bool = False) -> dict:
        """Answers one instance, and adds the model's attention maps as `attention`.

        A map is `{"title", "rows", "columns", "weights"}`: two lists of labels, and a list of a row
        of floats for each label of `rows`. Weights are in [0, 1]; those of match matrices are dot
        products.

        Args:
            details: Adds the maps of single modules, heads and levels. They also have a `group`:
                the maps of a group are drawn side by side.
        """
        checked = self.make_instance(instance, "instance 0")
        answer = self.helpline_answer(checked)
        maps: list[dict] = []
        if answer is None:
            answer, maps = self.answer_with_attention(checked, details)
        return {**answer.model_dump(exclude_unset=True), "attention": maps}

    def answer_as_dicts(self, instances: list) -> list[dict]:
        """Answers instances that `make_instance` has checked, as `predict` does."""
        answers = [self.helpline_answer(instance) for instance in instances]
        open_places = [place for place, answer in enumerate(answers) if answer is None]
        if open_places:
            answers_of_model = self.answer([instances[place] for place in open_places])
            for place, answer in zip(open_places, answers_of_model, strict=True):
                answers[place] = answer
        return [answer.model_dump(exclude_unset=True) for answer in answers]

    def helpline_answer(self, instance: Any) -> Any:
        """Returns an `Answer` that names helplines, if the user of an instance may need them.

        Otherwise it returns `None`, and the model answers. By default that is always so. A model
        that converses with people overrides this, see `engine.helplines`.
        """
        return None

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
        """Raises a `UserError` if an `Instance` breaks a rule that the types of its fields do not
        state, for example one that depends on the model. By default there is no such rule.
        """
        return

    def padded_rows(self, instance: Any) -> int:
        """The rows that the model computes to answer an `Instance`; by default 1.

        A row takes about 10 ms on two cores. A server refuses a request with too many rows.
        """
        return 1

    # === Conversations ===

    def conversation(self, said: Sequence[tuple[str, str]], decode: str = "") -> dict:
        """Returns the fields of the `Instance` whose answer has the next reply of a conversation.

        Args:
            said: `(speaker, text)` of each turn; a speaker is `user` or `bot`.
            decode: Settings of the search for replies, as `export.py --decode` takes them; models
                without such a search ignore them.

        Raises:
            UserError: The model does not reply to conversations, which is the default.
        """
        raise UserError(NO_REPLIES)

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text, by default of its words and punctuation marks."""
        return len(TOKEN.findall(text))

    def reply(self, answer: dict) -> str:
        """The text of the reply in the answer to an instance of `conversation`.

        Raises:
            UserError: The model does not reply to conversations, which is the default.
        """
        raise UserError(NO_REPLIES)

    # === Settings and examples ===

    def configure(self, options: Config) -> None:
        """Applies the task's `Options` to the search for answers, before the first answer.

        By default the model has no settings of a search: a `UserError` refuses any.
        """
        names = options.explicit_fields()
        if names:
            raise UserError(f"this model answers without settings. Received: {', '.join(names)}")

    def for_scored_examples(self) -> Self:
        """Returns a predictor that splits texts at spaces only, by default this one.

        The texts of `engine.task.Task.read_example` are split into words already, and must not be
        split further.
        """
        return self

    def show(self, instance: Any) -> tuple[list, list]:
        """Shows how the model reads and answers an `Instance`; both lists are empty by default.

        Returns:
            `(label, text)` of each text that the model reads, without the words that it cuts off
            and with unknown words in brackets.
            `(score, text)` of each answer, the best first.
        """
        return [], []


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
