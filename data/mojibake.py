"""Repairs text in UTF-8 that a program read as Windows-1252 or ISO 8859-1, such as `donâ€™t`."""

import re

REPAIRED = "UTF-8 read as Windows-1252 was repaired"
"""What a report says of it."""
LATIN = "".join(chr(byte) for byte in range(0x80, 0xC0))
WINDOWS = bytes(range(0x80, 0xC0)).decode("cp1252", errors="ignore")
LATER = f"[{re.escape(LATIN + WINDOWS)}]"
"""A byte of UTF-8 that is not the first one of its character."""
# Of two bytes only characters of Latin, Greek, Cyrillic and Hebrew: the end of `Spaß«` is none.
MISTAKEN = re.compile(
    f"[\xc2-\xc5\xce-\xd1\xd7]{LATER}|[\xe0-\xef]{LATER}{{2}}|[\xf0-\xf4]{LATER}{{3}}"
)


def repair(text: str) -> str:
    r"""Repairs each character that is written as its bytes in UTF-8.

    >>> text = "don\u2019t go to the caf\u00e9"
    >>> repair(text.encode().decode("iso-8859-1")) == repair(text) == text
    True
    """
    if text.isascii():
        return text
    return MISTAKEN.sub(_decode, text)


def _decode(match):
    content = b""
    for character in match[0]:
        encoding = "iso-8859-1" if ord(character) <= 0xFF else "cp1252"
        content += character.encode(encoding)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return match[0]
