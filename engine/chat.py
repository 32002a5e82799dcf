"""Conversations with a model: the interface of `tasks/<task>/chat.py`, and its terminal."""

import abc
import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from colloquy.base.files import UserError, printable
from colloquy.engine.explain import draw

HELP = """/explain        shows the attention of the last answer; /explain a.png draws all of it
/reset          starts a new conversation
/help           shows this, and what the model knows
/quit           ends, as Ctrl-D; Ctrl-C stops an answer"""
STYLES = {"you": "bold cyan", "bot": "bold green"}
PROMPT = "\x01\x1b[1;36m\x02you: \x01\x1b[0m\x02"
"""Bold cyan; `\\x01` and `\\x02` tell readline that the codes between them have no width."""


class Terminal(Console):
    """A console that prints no control characters but its own, whatever models and files say."""

    def render(self, renderable: Any, options: Any = None) -> Iterator[Any]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


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


def talk(chat: Chat, console: Console) -> None:
    """Reads lines and shows the answers of a `Chat` until `/quit` or the end of the input.

    In a terminal, lines are edited, and earlier lines come back by the arrow keys. Elsewhere each
    line of the input and each message is printed as one line.
    """
    conversation = _Conversation(chat, console)
    conversation.print(conversation.introduction)
    while True:
        try:
            line = conversation.read()
            if line == "/quit":
                return
        except EOFError:
            break
        except KeyboardInterrupt:
            if not conversation.is_edited:
                break
            conversation.print(Note("[/quit or Ctrl-D ends]"))
            continue
        try:
            conversation.answer(line)
        except KeyboardInterrupt:
            conversation.print(Note("[stopped]"))
        except (UserError, OSError) as error:
            conversation.print(Note(f"[{error}]"))
    console.print()


class _Conversation:
    def __init__(self, chat, console):
        self.chat = chat
        self.console = console
        self.commands = {
            **chat.commands,
            "/explain": chat.explain,
            "/reset": chat.reset,
            "/help": self.help,
        }
        self.introduction = f"{chat.HELP}\n{HELP}".strip()
        self.is_edited = console.is_terminal and sys.stdin.isatty()
        if self.is_edited:
            # `input` then edits lines. Some builds of Python lack it.
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401

    def read(self):
        """Reads a line; one from a pipe or file is printed as if it had been typed."""
        if self.is_edited:
            return input(PROMPT).strip()
        line = self.console.input("").strip()
        self.print(_line("you", line))
        return line

    def answer(self, line):
        """Runs a command, or shows the reply of the chat."""
        command, _, argument = line.partition(" ")
        if command in self.commands:
            run = self.commands[command]
            self.print(run(printable(argument).strip()))  # no path has a NUL
        elif line.startswith("/"):
            self.print(f"Commands: {', '.join([*self.commands, '/quit'])}")
        else:
            for message in self.chat.reply(line):
                self.show(message)

    def show(self, message):
        if isinstance(message, Note):
            self.print(message)
        else:
            self.print(_line("bot", message))

    def print(self, shown):
        if isinstance(shown, str):
            style = "dim" if isinstance(shown, Note) else ""
            shown = Text(shown, style=style)
        # Outside of a terminal, a message is one line.
        is_one_line = isinstance(shown, Text) and not self.console.is_terminal
        self.console.print(shown, soft_wrap=is_one_line)

    def help(self, _: Any) -> str:
        return f"{self.introduction}\n{self.chat.help()}".rstrip()


def _line(speaker, message):
    return Text.assemble((f"{speaker}: ", STYLES[speaker]), message)
