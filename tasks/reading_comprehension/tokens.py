"""Distinct tokens of texts: their numbers, word ids and character ids. Letter: L characters."""

import dataclasses

import numpy as np

from colloquy.data.sequences import Sequences

WORD_CHARACTERS = 16
"""Number of characters that are read of each word, the first ones."""


@dataclasses.dataclass(frozen=True)
class Tokens:
    """The ids of distinct tokens. Token number `n` has row `n`; row 0 is padding."""

    word_ids: np.ndarray
    """Int32 `(tokens + 1,)`."""
    character_ids: np.ndarray
    """Int32 `(tokens + 1, L)`, padded with 0."""
    texts: list[str]
    """The tokens as they are written; row 0 is an empty text."""

    @classmethod
    def of(cls, texts, vocabulary, characters):
        """Looks tokens up: words in lower case, characters as they are.

        >>> from colloquy.data.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary.of(["ab"])  # id 2 is the unknown word, 3 is "ab"
        >>> characters = Vocabulary.of("ab")  # id 2 is an unknown character, 3 is "a", 4 is "b"
        >>> tokens = Tokens.of(["Ab", "c"], vocabulary, characters)
        >>> tokens.word_ids.tolist()
        [0, 3, 2]
        >>> tokens.character_ids[:, :3].tolist()
        [[0, 0, 0], [2, 4, 0], [2, 0, 0]]
        """
        word_ids = [0, *vocabulary.encode(text.lower() for text in texts)]
        letters = [[]]
        for text in texts:
            letters.append(characters.encode(text[:WORD_CHARACTERS]))
        rows = np.arange(len(letters))
        character_ids = Sequences.of(letters).padded(rows, WORD_CHARACTERS)
        return cls(np.array(word_ids, np.int32), character_ids, ["", *texts])


def number_tokens(texts, numbers):
    """Returns the number of each token of a text; a new token gets the next number.

    Args:
        texts: The tokens.
        numbers: `{token: number}`, counted from 1. New tokens are added.

    >>> numbers = {"Ann": 1}
    >>> number_tokens(["Bob", "met", "Ann"], numbers)
    [2, 3, 1]
    """
    return [numbers.setdefault(text, len(numbers) + 1) for text in texts]
