"""Replies of a model to conversations. By default a model makes none."""

import re
from collections.abc import Sequence

from colloquy.base.files import UserError

NO_REPLIES = "this model does not reply to conversations: send instances to /v1/models/NAME:predict"
TOKEN = re.compile(r"\w+|[^\w\s]")
"""A word, or a punctuation mark."""


class Conversing:
    """A base of `engine.predictor.Predictor`: from a conversation to an instance, from its answer
    to a reply.
    """

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
