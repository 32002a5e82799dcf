"""A conversation in the terminal: lines go to a chat, what it says appears; plain lines where there is no terminal."""

import contextlib
import pathlib
import sys

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory, InMemoryHistory
from rich.live import Live
from rich.text import Text

from base.files import UserError, atomic_file
from engine.chat import Note

HELP = """/save FILE      writes what was said to a new file
/help           shows this, and what the model knows
/quit           ends, as Ctrl-D; Ctrl-C stops an answer"""
HISTORY = ".colloquy_history"  # in the user's home
STYLES = {"you": "bold cyan", "bot": "bold green"}


def talk(chat, console):
    """Reads lines and shows answers until `/quit` or the end of the input.

    In a terminal lines can be edited, earlier ones come back by the arrow keys, also those of earlier days, and
    commands are completed. Else each line of the input is printed, and each message as one line.

    Args:
        chat: An `engine.chat.Chat`.
        console: A `rich.console.Console`.
    """
    _Conversation(chat, console).run()


class _Conversation:
    def __init__(self, chat, console):
        self.chat, self.console, self.said = chat, console, []
        own = {"/help": lambda _: f"{self.introduction}\n{chat.help()}".rstrip(), "/save": self.save}
        self.commands = {**chat.commands, **own}
        self.introduction = f"{chat.HELP}\n{HELP}".strip()
        interactive = console.is_terminal and sys.stdin.isatty()
        self.read = self.reader() if interactive else self.read_plain

    def run(self):
        self.print(self.introduction)
        while True:
            try:
                line = self.read()
            except EOFError:
                break
            except KeyboardInterrupt:
                if self.read == self.read_plain:
                    break
                self.print(Note("[/quit or Ctrl-D ends]"))
                continue
            if line == "/quit":
                return
            try:
                self.answer(line)
            except KeyboardInterrupt:
                self.print(Note("[stopped]"))
            except UserError as error:
                self.print(Note(f"[{error}]"))
        self.console.print()

    # === Input ===

    def reader(self):
        """A function that reads an edited line."""
        try:
            file = pathlib.Path.home() / HISTORY
            file.open("a").close()
            history = FileHistory(file)
        except (OSError, RuntimeError):
            history = InMemoryHistory()
        completer = WordCompleter([*self.commands, "/quit"], sentence=True)
        session = PromptSession(history=history, completer=completer)
        return lambda: session.prompt([("bold ansicyan", "you: ")]).strip()

    def read_plain(self):
        """A line of an input that nobody types, shown as if somebody had."""
        line = self.console.input("").strip()
        self.print_message("you", line)
        return line

    # === Output ===

    def answer(self, line):
        """Runs a command, or shows what the chat replies."""
        command, _, argument = line.partition(" ")
        if command in self.commands:
            self.print(self.commands[command](argument.strip()))
        elif line.startswith("/"):
            self.print(f"Commands: {', '.join([*self.commands, '/quit'])}")
        else:
            self.said.append(f"you: {line}")
            for message in self.chat.reply(line):
                self.show(message)

    def show(self, message):
        """A message of a chat."""
        if isinstance(message, Note):
            self.said.append(str(message))
            self.print(message)
            return
        if not isinstance(message, str | Text):
            message = self.watch(message)
        else:
            self.print_message("bot", message)
        self.said.append(f"bot: {message}")

    def watch(self, texts):
        """Shows a text while it is being written; returns the text."""
        text = ""
        if not self.console.is_terminal:
            text = ["", *texts][-1]
            self.print_message("bot", text)
            return text
        live = Live(self.line("bot", "..."), console=self.console, auto_refresh=False)
        with contextlib.closing(texts), live:
            for text in texts:
                live.update(self.line("bot", text), refresh=True)
        return text

    def line(self, speaker, message):
        return Text.assemble((f"{speaker}: ", STYLES[speaker]), message)

    def print_message(self, speaker, message):
        self.console.print(self.line(speaker, message), soft_wrap=not self.console.is_terminal)

    def print(self, shown):
        """What the program says."""
        if isinstance(shown, str):
            shown = Text(shown, style="dim" if isinstance(shown, Note) else "")
        self.console.print(shown, soft_wrap=isinstance(shown, Text) and not self.console.is_terminal)

    # === Commands ===

    def save(self, name):
        """Writes what was said to a new file, one message per line."""
        if not name or pathlib.Path(name).exists():
            return f"/save expects the name of a new file. Received: {name}"
        with atomic_file(name) as file:
            file.writelines(f"{line}\n" for line in self.said)
        return f"{name} written"
