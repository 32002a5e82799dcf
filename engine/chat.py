"""What every chat is made of: `tasks/<task>/chat.py` says what a model answers, `engine.terminal` shows it."""

import abc


class Note(str):
    """Something that the program says, not the model."""

    __slots__ = ()


class Chat(abc.ABC):
    """One conversation with a model."""

    HELP = ""
    """The commands, one per line, and what to know before the first line."""

    commands = {}
    """`{name: function}`; a function takes the text after the name and returns what is shown: a text or anything else
    that `rich` prints."""

    def help(self):
        """What `/help` says below `HELP`; nothing here."""
        return ""

    @abc.abstractmethod
    def reply(self, text):
        """Answers what a user says.

        What is interrupted before its end leaves a state from which the conversation goes on.

        Args:
            text: Any text, without white space at its ends; may be empty.

        Yields:
            Messages in turn, each a text, a `rich.text.Text`, a `Note`, or an iterator of the pieces of one text that
            is still being written.
        """
