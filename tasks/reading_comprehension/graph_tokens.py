"""The tokens of `data.offsets.tokenize`, found inside a TensorFlow graph.

TensorFlow cannot list the matches of a pattern. So `find_tokens` puts the mark BEGIN before each
token and the mark END after it, and splits the text behind each END. Here BEGIN is written as `<`
and END as `>`:

    text     "It's  ok"
    marked   "<It><'><s>  <ok>"
    pieces   "<It"   "<'"   "<s"   "  <ok"
    tokens   "It"    "'"    "s"    "ok"      a piece without all that is before its token
    ends     2       3      4      8         the lengths of all pieces so far, BEGIN not counted
    starts   0       2      3      6         the end of a token minus its length
"""

import tensorflow as tf

from colloquy.base.characters import SPACELESS
from colloquy.data.normalization import INVISIBLE, JOINERS, MARKS

BEGIN = "\x02"
END = "\x03"
BORDER = "\x04"
"""Mark before and after each character of a script without spaces: such a character is a token."""

# `data.offsets.TOKEN` is for normalized texts, this pattern for texts as users write them. So it
# also allows invisible characters inside a token, and full-width signs in place of `_`, `.` and
# `,`. The syntax is that of RE2, TensorFlow's regular expressions.
_HIDDEN = f"[{INVISIBLE}{JOINERS}]*"
_DIGITS = rf"\p{{Nd}}(?:{_HIDDEN}[\p{{Nd}}{MARKS}])*"
_POINT = r"[.,\x{FF0E}\x{FF0C}]"
_NUMBER = rf"{_DIGITS}(?:{_HIDDEN}{_POINT}{_HIDDEN}{_DIGITS})*"
_LETTER = r"\p{L}\p{N}_\x{FF3F}"
_WORD = rf"[{_LETTER}](?:{_HIDDEN}[{_LETTER}{MARKS}])*"
# White space of Python's `str.split`, and BORDER, which ends a word as a space does.
_SPACE = r"\s\p{Z}\x{0B}\x{1C}-\x{1F}\x{85}" + BORDER
_SIGN = rf"[^{_LETTER}{_SPACE}{INVISIBLE}{JOINERS}](?:{_HIDDEN}[{MARKS}])*"
TOKEN = f"{_NUMBER}|{_WORD}|{_SIGN}"
# A character of a script without spaces, with the voiced marks of kana.
SPACELESS_CHARACTER = f"[{SPACELESS}](?:[{INVISIBLE}]*[\u3099\u309a\uff9e\uff9f])*"


def find_tokens(texts):
    """Finds the tokens of texts, string `(B,)`.

    Returns ragged tensors `(B, None)`:
        The tokens as they are written, string.
        Where each token starts in its text, in characters, int32.
        Where each token ends, int32.
    """
    # A text that has the marks itself would confuse the split. U+0001 is another sign as long.
    texts = tf.strings.regex_replace(texts, f"[{BEGIN}{END}{BORDER}]", "\x01")
    bordered = tf.strings.regex_replace(texts, SPACELESS_CHARACTER, rf"{BORDER}\0{BORDER}")
    marked = tf.strings.regex_replace(bordered, TOKEN, rf"{BEGIN}\0{END}")
    marked = tf.strings.regex_replace(marked, BORDER, "")

    # What is behind the last END has no token.
    pieces = tf.strings.split(marked, END)[:, :-1]
    before_token = f"^[^{BEGIN}]*{BEGIN}"
    tokens = tf.ragged.map_flat_values(tf.strings.regex_replace, pieces, before_token, "")

    lengths_of_pieces = tf.ragged.map_flat_values(_length, pieces) - 1
    padded_ends = tf.cumsum(lengths_of_pieces.to_tensor(), axis=1)
    ends = tf.RaggedTensor.from_tensor(padded_ends, lengths=pieces.row_lengths())
    starts = ends - tf.ragged.map_flat_values(_length, tokens)
    return tokens, starts, ends


def _length(texts):
    return tf.strings.length(texts, unit="UTF8_CHAR")
