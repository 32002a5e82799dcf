"""The terminal of `chat.py`: reads lines, runs commands and shows the replies of a `Chat`."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from colloquy.base.files import UserError, printable
from colloquy.engine.chat import Chat, Note

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
                self.print(message if isinstance(message, Note) else _line("bot", message))

    def print(self, shown):
        if isinstance(shown, str):
            style = "dim" if isinstance(shown, Note) else ""
            shown = Text(shown, style=style)
        # Outside of a terminal, a message is one line.
        is_one_line = isinstance(shown, Text) and not self.console.is_terminal
        self.console.print(shown, soft_wrap=is_one_line)

    def help(self, _):
        return f"{self.introduction}\n{self.chat.help()}".rstrip()


def _line(speaker, message):
    return Text.assemble((f"{speaker}: ", STYLES[speaker]), message)
