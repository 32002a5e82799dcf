"""Unicode normalization for all tasks: a text is the same however it was typed or copied.

- Invisible characters are removed: soft hyphens, zero-width spaces, marks of direction, byte order
  marks. The zero-width joiner and non-joiner stay between two letters, where they matter.
- A letter and its accents become one character where Unicode has one (NFC).
- After 30 marks in a row, further marks are dropped.
- Full-width and half-width forms and the ligatures of Latin letters become plain characters.

Tokenizers add rules of their own.
"""

import re
import unicodedata
from typing import Literal, NamedTuple

INVISIBLE = (
    "\u00ad\u034f\u061c\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e01ef"
)
"""Inner part of a pattern's `[...]`.

Among others: soft hyphen, zero-width space, marks of direction, embeddings, overrides and
isolates, word joiner, variation selectors, byte order mark, tags.
"""
JOINERS = "\u200c\u200d"
WIDTHS_AND_LIGATURES = "\ufb00-\ufb06\uff01-\uff9f\uffe0-\uffee"
"""Inner part of a pattern's `[...]`: these characters become their compatibility form (NFKC)."""
# Code of the last visible combining mark of Unicode, in the script Adlam.
LAST_MARK = 0x1E94A
# Largest number of marks in a row that are kept; Unicode's Stream-Safe Text Format has the same
# limit. The time of NFC grows with the square of this number.
MAX_MARKS_KEPT = 30


def _mark_ranges():
    """Inner part of a pattern's `[...]`: all combining marks but the invisible ones."""
    is_invisible = re.compile(f"[{INVISIBLE}]").match
    ranges = []
    # U+0300 is the first combining mark of Unicode.
    for code in range(0x300, LAST_MARK + 1):
        character = chr(code)
        if unicodedata.category(character)[0] != "M" or is_invisible(character):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


MARKS = _mark_ranges()
"""Inner part of a pattern's `[...]`: combining marks of all scripts.

They belong to the letter before them.
"""
# `MARKS`, and the voiced marks of half-width kana, which Unicode counts as letters.
_MARK = f"[{MARKS}\uff9e\uff9f]"
# A Hangul syllable of separate letters.
SYLLABLE = "[\u1100-\u115f\uac00-\ud7a3][\u1160-\u11ff]+"
# A part of a text that is composed on its own: a syllable or any other character, with its marks.
# Marks without a character before them are a part of their own.
_CLUSTER = re.compile(f"{SYLLABLE}{_MARK}*|.{_MARK}*", re.DOTALL)
_TOO_MANY_MARKS = re.compile(f"({_MARK}{{{MAX_MARKS_KEPT}}}){_MARK}+")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_JOINERS = re.compile(f"[{JOINERS}]+")
_WIDTHS_AND_LIGATURES = re.compile(f"[{WIDTHS_AND_LIGATURES}]+")


class Normalized(NamedTuple):
    """A normalized text, and where its characters are in the original one."""

    text: str
    starts: list[int]
    ends: list[int]
    """Character `i` comes from `original[starts[i]:ends[i]]`."""


Form = Literal["NFC", "NFKC"]
"""Normal form of Unicode: NFKC makes all compatibility characters plain, such as `…` and `²`."""


def normalize(text: str, form: Form = "NFC") -> str:
    """Normalizes a text by the rules above.

    >>> normalize("Zu\u00ad\u0308rich, \uff2f\uff2b\uff01 \ufb01ne")
    'Z\xfcrich, OK! fine'
    """
    if text.isascii():
        return text
    return compose(_remove_invisible(text), form)


def normalize_with_offsets(text: str) -> Normalized:
    """Normalizes a text and finds where its characters are in the original one.

    >>> normalize_with_offsets("o\u0308\u00adl")
    Normalized(text='\xf6l', starts=[0, 3], ends=[2, 4])
    """
    if normalize(text) == text:
        starts = list(range(len(text)))
        return Normalized(text, starts, [start + 1 for start in starts])

    visible = _remove_invisible(text)
    # Find the place of each visible character: the next place with this character. A removed
    # character is skipped, because it is never equal to the visible one after it.
    places = []
    rest = iter(enumerate(text))
    for visible_character in visible:
        for place, character in rest:
            if character == visible_character:
                places.append(place)
                break

    parts = []
    starts = []
    ends = []
    for match in _CLUSTER.finditer(visible):
        part = compose(match[0], "NFC")
        parts.append(part)
        cluster_places = places[match.start() : match.end()]
        if part == match[0]:
            starts += cluster_places
            ends += [place + 1 for place in cluster_places]
            continue
        starts += [cluster_places[0]] * len(part)
        ends += [cluster_places[-1] + 1] * len(part)
    return Normalized("".join(parts), starts, ends)


def _remove_invisible(text):
    return _JOINERS.sub(_keep_joiners, _INVISIBLE.sub("", text))


def _keep_joiners(match):
    """The joiners of a match if they are between two letters, else ""."""
    text = match.string
    start, end = match.span()
    if start == 0 or end == len(text):
        return ""
    return match[0] if _is_letter(text[start - 1]) and _is_letter(text[end]) else ""


def _is_letter(character):
    """Whether a character is a letter, or a mark, which belongs to a letter."""
    return unicodedata.category(character)[0] in "LM"


def compose(text: str, form: Form) -> str:
    """Drops excess marks, replaces widths and ligatures, and composes letters with their marks."""
    text = _TOO_MANY_MARKS.sub(r"\1", text)
    text = _WIDTHS_AND_LIGATURES.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return unicodedata.normalize(form, text)
