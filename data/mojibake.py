"""Repairs UTF-8 text that was decoded as Windows-1252 or ISO 8859-1, such as `donâ€™t`."""

from collections.abc import Iterable

from colloquy.base.files import PathLike
from colloquy.data.report import Report

REPAIRED = "UTF-8 read as Windows-1252 was repaired"
"""Part of the note on repaired texts in a report."""
LAST_LATIN = "\u024f"
"""The last character of Latin Extended-B. The Latin letters of Vietnamese are above it."""
PUNCTUATION = ("\u2000", "\u20ff")
"""First and last character of the blocks from General Punctuation to Currency Symbols, and of the
combining marks behind them."""


def repair(text: str) -> str:
    r"""Repairs a text if all its characters, written as bytes again, are valid UTF-8.

    Any other text stays as it is. Bytes may be valid by chance: the end of `voil\u00e0\u00a0\u00bb`
    is a sign of Samaritan. So a text stays, too, if its repair has exactly one character that is
    neither Latin, nor punctuation, nor an emoji. A chance Latin letter is not noticed:
    `AMANH\u00c3\u2026` is damaged.

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


def note_unrepaired(texts: Iterable[str], file: PathLike, reason: str, report: Report) -> None:
    """Notes the number of texts that `repair` would change, in a file where they must stay.

    Args:
        reason: Why they stay, a sentence without its full stop.
    """
    num_unrepaired = sum(repair(text) != text for text in texts)
    if num_unrepaired:
        report.note(
            f"{file}: {num_unrepaired:,} texts have UTF-8 read as Windows-1252, such as â€™, and "
            f"are not repaired: {reason}"
        )


def _byte(character):
    # Windows-1252 leaves five bytes undefined, which programs read as ISO 8859-1. Only the
    # characters above U+00FF, such as the euro sign, need Windows-1252.
    encoding = "iso-8859-1" if ord(character) <= 0xFF else "cp1252"
    return character.encode(encoding)


def _is_foreign(character):
    """True for a character of two or three bytes that is neither Latin nor punctuation.

    One of four bytes, such as an emoji, does not come about by chance.
    """
    first, last = PUNCTUATION
    is_punctuation = first <= character <= last
    return LAST_LATIN < character <= "\uffff" and not is_punctuation
