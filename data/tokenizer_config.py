"""How raw strings become words: the same for a dataset, its models and their users."""

from typing import Literal

from colloquy.base.config import Config
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, words_of


class TokenizerConfig(Config):
    """Settings of a tokenizer; the defaults suit texts whose words are separated by spaces."""

    tokenizer: Literal[WHITESPACE, *TOKENIZERS] = WHITESPACE  # type: ignore[valid-type]
    """`whitespace`, or a key of `data.tokenizers.TOKENIZERS`."""
    lower: bool = False
    """Make texts lower case."""

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        return words_of(text, self.tokenizer, self.lower)

    def join(self, words: list[str]) -> str:
        """The text that a reader expects of some words."""
        if self.tokenizer == WHITESPACE:
            return " ".join(words)
        return TOKENIZERS[self.tokenizer].detokenize(words)
