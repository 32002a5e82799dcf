"""Splits a text into tokens with offsets; a token is a number, a word or a single sign.

Reading comprehension answers with a part of a text, which the offsets of its tokens give.
"""

import re
from typing import NamedTuple

from colloquy.base.characters import SPACELESS
from colloquy.data.normalization import JOINERS, MARKS, normalize, normalize_with_offsets

# `\d` and `\w` do not match combining marks, so each part allows the marks after a character.
_DIGITS = rf"\d[\d{MARKS}]*"
_NUMBER = rf"{_DIGITS}(?:[.,]{_DIGITS})*"
# A character of a script without spaces is a token, so it ends a word.
_LETTER = rf"(?![{SPACELESS}])\w"
# Normalization keeps a joiner between two letters; it does not end a word either.
_LATER_LETTER = rf"(?![{SPACELESS}])[\w{MARKS}{JOINERS}]"
_WORD = rf"{_LETTER}(?:{_LATER_LETTER})*"
# Beside a script without spaces, a joiner is in no word. Alone, it would be a token without text.
_SIGN = rf"[^\w\s{JOINERS}][{MARKS}]*"
# A voiced mark of kana belongs to the character before it; other marks are tokens of their own.
_CHARACTER = rf"[{SPACELESS}][\u3099\u309a]*"
TOKEN = re.compile(rf"{_NUMBER}|{_CHARACTER}|{_WORD}|{_SIGN}")


Spans = list[tuple[int, int]]
"""Start and end of each of some parts of a text, in characters."""


class TokenizedText(NamedTuple):
    """A text and its tokens."""

    text: str
    offsets: Spans
    """Of the tokens."""
    words: list[str]
    """The tokens, normalized, as a model reads them."""


def read_text(text: str) -> TokenizedText:
    """Tokenizes a text.

    >>> read_text("Zu\\u00adrich, 2004").words
    ['Zurich', ',', '2004']
    """
    offsets = tokenize(text)
    words = [normalize(text[start:end]) for start, end in offsets]
    return TokenizedText(text, offsets, words)


def tokenize(text: str) -> Spans:
    """The tokens of a text as `(start, end)`: numbers, words, and single signs.

    Each character of a script without spaces (Han, kana, Thai) is a token. Tokens are found in the
    normalized text, see `data.normalization`; offsets count the characters of the text as given.

    >>> text = "It's 3,000.5 m²!"
    >>> [text[start:end] for start, end in tokenize(text)]
    ['It', "'", 's', '3,000.5', 'm²', '!']
    >>> text = "東京は2つ"
    >>> [text[start:end] for start, end in tokenize(text)]
    ['東', '京', 'は', '2', 'つ']
    """
    # Normalization does not change ASCII.
    if text.isascii():
        return [match.span() for match in TOKEN.finditer(text)]
    normalized = normalize_with_offsets(text)
    spans = []
    for match in TOKEN.finditer(normalized.text):
        spans.append((normalized.starts[match.start()], normalized.ends[match.end() - 1]))
    return spans


def tokens_of_span(offsets: Spans, span_start: int, span_end: int) -> tuple[int, int] | None:
    """Indices of the first and the last token that overlap a span of a text, or `None`.

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
