"""A conversation with a model: the interface of `tasks/<task>/chat.py`."""

import abc
import os
import re
from collections.abc import Iterator
from typing import Any

from colloquy.base.files import refuse_existing
from colloquy.engine.explain import draw


class Note(str):
    """A remark of the program, not of the model."""

    __slots__ = ()


class Chat(abc.ABC):
    """One conversation with a model, by its `engine.predictor.Predictor`."""

    HELP = ""  # the commands, one per line, and a remark about the model

    def __init__(self, predictor: Any) -> None:
        self.predictor = predictor
        self.reset()

    def reset(self, _: str = "") -> str | None:
        """Forgets what was said, and the last instance or answer, which `/explain` shows."""
        self.said: list = []
        self.last: dict | None = None
        return "A new conversation."

    @property
    def commands(self) -> dict[str, Any]:
        """Returns `{name: method}` of the commands that `HELP` lists.

        A method takes the text after the name and returns something to print.
        """
        names = re.findall(r"^/(\w+)", self.HELP, re.MULTILINE)
        return {f"/{name}": getattr(self, name) for name in names}

    def explain(self, path: str = "") -> Any:
        """Shows the attention of the last answer, or writes it into a PNG file."""
        if self.last is None:
            return "Say something first."
        answer = self.explained(details=bool(path))
        if not answer["attention"]:
            return "No attention: the model has none, read nothing, or the answer is not its own."
        if not path:
            return self.explanation(answer)
        path = os.path.expanduser(path)
        refuse_existing(path)
        draw(answer["attention"], path)
        return f"{path} written"

    def explained(self, details: bool) -> Any:
        """Returns the last answer with its attention, see `engine.predictor.Predictor.explain`."""
        return self.predictor.explain(self.last, details)

    def explanation(self, answer: dict) -> Any:
        """Returns a text, or another thing that a console prints, for an answer with attention.

        Here each row of the first attention map has the column with the largest weight.
        """
        attention = answer["attention"][0]
        lines = [attention["title"]]
        for row, weights in zip(attention["rows"], attention["weights"], strict=True):
            largest = max(weights)
            column = attention["columns"][weights.index(largest)]
            lines.append(f"{row}: {column} ({largest:.2f})")
        return "\n".join(lines)

    def help(self) -> str:
        """Returns a text that `/help` adds to `HELP`."""
        return ""

    @abc.abstractmethod
    def reply(self, text: str) -> Iterator[Any]:
        """Answers a text, which may be empty. If it is interrupted, the conversation can continue.

        Messages are texts, `rich.text.Text`s or `Note`s.
        """
