"""A conversation where there is no terminal, only lines."""

import io

from engine import chat as terminal


def talk_plain(chat, *lines, width=100):
    """What is printed while a chat gets some lines."""
    console, left = terminal.Terminal(file=io.StringIO(), width=width), iter(lines)

    def read(_):
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    console.input = read
    terminal.talk(chat, console)
    return console.file.getvalue()
