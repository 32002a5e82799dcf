"""Tokens of a text with their offsets: numbers, words and single signs.

Reading comprehension answers with a part of a text, so every token knows its place in it.
"""

import re
from typing import NamedTuple

from colloquy.base.characters import SPACELESS
from colloquy.data.normalization import JOINERS, MARKS, normalize, normalize_with_offsets

# A regular expression does not count combining marks as letters; joiners that normalization leaves
# join letters.
_DIGITS = rf"\d[\d{MARKS}]*"
LETTER = rf"(?![{SPACELESS}])\w"
LATER_LETTER = rf"(?![{SPACELESS}])[\w{MARKS}{JOINERS}]"
TOKEN = re.compile(
    rf"{_DIGITS}(?:[.,]{_DIGITS})*|[{SPACELESS}]|{LETTER}(?:{LATER_LETTER})*|[^\w\s][{MARKS}]*"
)


class TokenizedText(NamedTuple):
    """A text and its tokens."""

    text: str
    offsets: list[tuple[int, int]]
    """Start and end of each token in the text, in characters."""
    words: list[str]
    """The tokens as a model reads them."""


def read_text(text: str) -> TokenizedText:
    """Tokenizes a text.

    >>> read_text("Zu\\u00adrich, 2004").words
    ['Zurich', ',', '2004']
    """
    offsets = tokenize(text)
    return TokenizedText(text, offsets, words_at(text, offsets))


def tokenize(text: str) -> list[tuple[int, int]]:
    """The tokens of a text as `(start, end)`: numbers, words, and single signs.

    Each character of a script without spaces (Han, kana, Thai) is a token. Tokens are found in the
    text as `data.normalization` reads it. The offsets are those of the text as given, so a token's
    word is `words_at` its offsets.

    >>> text = "It's 3,000.5 m²!"
    >>> [text[start:end] for start, end in tokenize(text)]
    ['It', "'", 's', '3,000.5', 'm²', '!']
    >>> [text[start:end] for text in ["東京は2つ"] for start, end in tokenize(text)]
    ['東', '京', 'は', '2', 'つ']
    """
    if text.isascii():
        return [match.span() for match in TOKEN.finditer(text)]
    normalized = normalize_with_offsets(text)
    spans = []
    for match in TOKEN.finditer(normalized.text):
        spans.append((normalized.starts[match.start()], normalized.ends[match.end() - 1]))
    return spans


def words_at(text: str, spans: list[tuple[int, int]]) -> list[str]:
    """The words, as a model reads them, at spans of a text."""
    return [normalize(text[start:end]) for start, end in spans]


def tokens_of_span(
    offsets: list[tuple[int, int]], span_start: int, span_end: int
) -> tuple[int, int] | None:
    """The first and the last token that a span of a text touches, or `None`.

    >>> tokens_of_span([(0, 2), (3, 8)], 4, 6)
    (1, 1)
    """
    touching = []
    for token, (start, end) in enumerate(offsets):
        if start < span_end and end > span_start:
            touching.append(token)
    if not touching:
        return None
    return touching[0], touching[-1]
