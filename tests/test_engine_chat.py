"""engine/chat.py: lines go to a chat, what it says appears, in a terminal and elsewhere."""

import io
from unittest.mock import Mock

import pytest
from helpers import talk_plain
from rich.table import Table
from rich.text import Text

from colloquy.base.files import UserError
from colloquy.engine import terminal
from colloquy.engine.chat import Chat, Note


class Parrot(Chat):
    """Says a word twice; `stop` is interrupted, `wrong` refused."""

    HELP = "/shout  shouts"

    shout = staticmethod(str.upper)

    def help(self):
        return "words: any"

    def explained(self, details):
        return {
            "attention": [{"title": "all", "rows": ["a"], "columns": ["b"], "weights": [[1.0]]}]
            * bool(self.last)
        }

    def explanation(self, found):
        return found["attention"][0]["title"]

    def reply(self, text):
        if text == "stop":
            yield "on my w"
            raise KeyboardInterrupt
        if text == "wrong":
            raise UserError("no such word")
        yield Note(f"[{len(text)} letters]")
        yield Text(f"{text} {text}", style="bold")


INTRODUCTION = ["/shout  shouts", *terminal.HELP.split("\n")]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["a" * 60], [f"you: {'a' * 60}", "[60 letters]", f"bot: {'a' * 60} {'a' * 60}"]),
        (["[bold]x"], ["you: [bold]x", "[7 letters]", "bot: [bold]x [bold]x"]),
        (["/shout hello "], ["you: /shout hello", "HELLO"]),
        (
            ["/nonsense"],
            ["you: /nonsense", "Commands: /shout, /explain, /reset, /help, /quit"],
        ),
        (["/help"], ["you: /help", *INTRODUCTION, "words: any"]),
        (
            ["stop", "wrong"],
            ["you: stop", "bot: on my w", "[stopped]", "you: wrong", "[no such word]"],
        ),
    ],
)
def test_where_there_is_no_terminal_each_message_is_a_line(lines, shown):
    found = talk_plain(Parrot(None), *lines, "go", "/quit", "never said", width=50).split("\n")
    after = ["you: go", "[2 letters]", "bot: go go", "you: /quit", ""]
    assert found == [*INTRODUCTION, *shown, *after]


def test_control_characters_of_a_model_do_not_reach_the_terminal(monkeypatch):
    hostile = "a\x1b]0;title\x07b\x1b[2J\x9bc"
    replies = [hostile, Note(hostile), Text(hostile, style="bold")]
    chat = Parrot(None)
    monkeypatch.setattr(chat, "reply", lambda text: iter(replies))
    monkeypatch.setattr(chat, "help", lambda: hostile)
    shown = talk_plain(chat, "go", "/help")
    assert shown.count("a]0;titleb[2Jc\n") == 4
    assert not set("\x1b\x07\x9b") & set(shown)
    console = terminal.Terminal(file=io.StringIO(), force_terminal=True, color_system="standard")
    table = Table("x", title=hostile)
    table.add_row(hostile)
    console.print(table, Text("bold", style="bold"))
    assert "\x1b[1mbold" in console.file.getvalue() and not set("\x07\x9b") & set(
        console.file.getvalue()
    )
    assert "\x1b]" not in console.file.getvalue() and "\x1b[2J" not in console.file.getvalue()
    assert str(UserError(hostile)) == "a]0;titleb[2Jc"


def test_the_last_answer_is_explained_in_words_or_as_a_picture(tmp_path):
    chat, file = Parrot(None), tmp_path / "a.png"
    assert "Say something first." in talk_plain(chat, "/explain")
    chat.last = {}
    assert "No attention: the model has none, read nothing" in talk_plain(chat, "/explain")
    chat.last = {"said": "hi"}
    lines = talk_plain(
        chat, "/explain", f"/explain {file}", "/explain a.txt", "/reset", "/explain"
    ).split("\n")
    assert {"all", f"{file} written", "[expected the name of a .png file. Received: a.txt]"} <= set(
        lines
    )
    chat.last = {"said": "hi"}
    assert f"[{file} exists: give the name" in talk_plain(chat, f"/explain {file}")
    assert file.read_bytes().startswith(b"\x89PNG") and lines.index(
        "Say something first."
    ) > lines.index("all")


def typing(lines, monkeypatch):
    """A terminal at which somebody types lines; an exception is a key such as Ctrl-C."""
    typed = Mock(side_effect=lines)
    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda _: True})())
    return terminal.Terminal(
        file=io.StringIO(), width=40, force_terminal=True, color_system="standard"
    )


def test_in_a_terminal_ctrl_c_leaves_a_line_and_ctrl_d_ends(monkeypatch):
    console = typing([" bay ", KeyboardInterrupt, EOFError], monkeypatch)
    terminal.talk(Parrot(None), console)
    shown = console.file.getvalue()
    assert "\x1b[1;32mbot: \x1b[0m\x1b[1mbay bay\x1b[0m" in shown
    assert "[/quit or Ctrl-D ends]" in shown
