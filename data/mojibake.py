"""Repairs text in UTF-8 that a program read as Windows-1252 or ISO 8859-1, such as `donâ€™t`."""

from collections.abc import Iterable

from colloquy.base.files import PathLike
from colloquy.data.report import Report

REPAIRED = "UTF-8 read as Windows-1252 was repaired"
"""What a report says of it."""
LAST_LATIN = "\u024f"
"""The last letter of the blocks of Latin letters."""
PUNCTUATION = ("\u2000", "\u20ff")
"""First and last character of the blocks of punctuation and signs of currencies."""


def repair(text: str) -> str:
    r"""Repairs a text whose characters are, all of them, the bytes of a text in UTF-8.

    A text with a character that is no such byte stays as it is. So does one that would get a single
    foreign letter: the end of `voil\u00e0\u00a0\u00bb` happens to be the three bytes of one.

    >>> text = "don\u2019t go to the caf\u00e9"
    >>> repair(text.encode().decode("iso-8859-1")) == repair(text) == text
    True
    """
    if text.isascii():
        return text
    try:
        repaired = b"".join(map(_byte, text)).decode()
    except UnicodeError:
        return text
    foreign = [character for character in repaired if _is_foreign(character)]
    return text if len(foreign) == 1 else repaired


def note_mistaken(texts: Iterable[str], file: PathLike, reason: str, report: Report) -> None:
    """Notes how many texts could be repaired, but stay as they are for a reason."""
    num_mistaken = sum(repair(text) != text for text in texts)
    if num_mistaken:
        report.note(
            f"{file}: {num_mistaken:,} texts have UTF-8 read as Windows-1252, such as â€™; "
            f"it stays, since {reason}"
        )


def _byte(character):
    encoding = "iso-8859-1" if ord(character) <= 0xFF else "cp1252"
    return character.encode(encoding)


def _is_foreign(character):
    first, last = PUNCTUATION
    return character > LAST_LATIN and not first <= character <= last
