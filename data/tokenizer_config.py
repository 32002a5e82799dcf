"""Settings of a tokenizer. A dataset stores them, and each model trained on it uses the same."""

from typing import Literal

from colloquy.base.config import Config
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, words_of


class TokenizerConfig(Config):
    """Settings of a tokenizer; the defaults suit texts whose words are separated by spaces."""

    tokenizer: Literal[WHITESPACE, *TOKENIZERS] = WHITESPACE  # type: ignore[valid-type]
    """`whitespace`, or a key of `data.tokenizers.TOKENIZERS`."""
    lower: bool = False
    """Converts texts to lower case; `whitespace` keeps capitals in any case."""

    def words(self, text: str) -> list[str]:
        """Splits a text into words."""
        return words_of(text, self.tokenizer, self.lower)
