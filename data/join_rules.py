"""Rules that join tokens to a text: they remove spaces that people do not write.

A rule is a pattern and its replacement. The tokens are separated by spaces, and the rules of a
tokenizer are applied one after the other, see `data.tokenizers`.
"""

import re

from colloquy.base.characters import HAN, SIGNS

# Chinese texts have these signs in full width, and normalization makes them ASCII.
FULL_WIDTH = {",": "\uff0c", "!": "\uff01", "?": "\uff1f", ":": "\uff1a", ";": "\uff1b"}
CJK_SIGNS = "\u3001-\u3004\u3008-\u3020\u3030\u30fb" + "".join(FULL_WIDTH.values())
"""Punctuation of Chinese and Japanese, as the inner part of a pattern's `[...]`."""

# After a Han character, such a sign gets its full-width form again.
WIDE_AFTER_HAN = [
    (f"([{HAN}]) {re.escape(sign)}", rf"\1{wide}") for sign, wide in FULL_WIDTH.items()
]
JOIN = (
    *WIDE_AFTER_HAN,
    # "你 好" becomes "你好"
    (f"([{HAN}{CJK_SIGNS}]) ", r"\1"),
    (f" ([{HAN}{CJK_SIGNS}])", r"\1"),
    # "yes ." becomes "yes."
    (r" ([.,!?;:%)\]}])", r"\1"),
    # "$ 5" becomes "$5"
    (r"([(\[{$#]) ", r"\1"),
    # '" ok "' becomes '"ok"'
    ('" ([^"]*) "', r'"\1"'),
)

# "push - ups" becomes "push-ups"
HYPHEN = (f"([^ {SIGNS}]) - ([^ {SIGNS}])", r"\1-\2")
JOIN_WORDS = (*JOIN, HYPHEN)

# "tar - c" becomes "tar -c", an option of a command. Other hyphens are inside of terms.
OPTION = ("(^| )- ([a-z0-9])( |$)", r"\1-\2\3")
# Twice, for "- c - v": the first match includes the space that a match of "- v" needs.
JOIN_TERMS = (OPTION, OPTION, *JOIN)
