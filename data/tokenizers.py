"""Texts into tokens and back. See `TOKENIZERS`.

All patterns are in what Python's `re` and RE2, the engine of `tf.strings.regex_replace`, have in common, and mean the
same to both: no look-around, no `\\w`; characters beyond ASCII stand for themselves. As every sign but the space is of
some token, `re.findall(pattern, text)` is `re.sub(f"({pattern})", r" \\1 ", text).split(" ")` without empty strings,
and so a graph can tokenize as this file does.
"""

import dataclasses
import logging
import re
import unicodedata

from base.files import UserError

# === Characters, as the inner part of a class ===

SPACE = "\\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space and control characters."""
INVISIBLE = "\u00ad\u200b\u200e\u200f\u2060\ufe00-\ufe0f\ufeff"
"""Soft hyphen, zero-width space, marks of direction, word joiner, variation selectors, byte order mark."""
APOSTROPHES = "`\u00b4\u02bc\u2018\u2019\u201a\u201b\u2032"
QUOTES = "\u201c\u201d\u201e\u201f\u2033"
HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Han characters: the unified ideographs with extensions A to H, the compatibility ones, and the iteration mark, the
closing mark and the zero of U+3005 to U+3007. Kana and Hangul are none."""
FULL_WIDTH = {sign: chr(ord(sign) + 0xFEE0) for sign in ",!?:;"}
"""Signs that NFKC made narrow, and how they are written after a Han character."""
CJK_SIGNS = "\u3001-\u3004\u3008-\u3020\u3030\u30fb" + "".join(FULL_WIDTH.values())
"""Punctuation of Chinese and Japanese texts, which has its space in itself."""
SIGNS = (
    "!-/:-@\\[-`{-~"  # ASCII
    "\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7"  # Latin-1 without its letters
    "\u05be\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965"  # Hebrew, Arabic, Devanagari
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2100-\u2bff\u2e00-\u2e7f"  # punctuation, currencies, symbols, arrows
    "\u3001-\u3004\u3008-\u3020\u3030\u30fb\ue000-\uf8ff\ufe10-\ufe6f\uff00-\uff0f\uffe0-\uffff"
    "\U0001f000-\U0001faff"  # emoji
)
"""Punctuation and symbols: the characters that no word has. All others, of whatever script, are letters here."""

# === Tokens ===

NUMBER = "[0-9]+(?:[.,:][0-9]+)+"
RUN = r"\.\.\.|--"  # the ellipsis, and the dash of a typewriter


def _pattern(letter):
    return f"{NUMBER}|{letter}+(?:'{letter}+)*|{RUN}|[^ ]"


WORDS = _pattern(f"[^ {SIGNS}]")
TERM = f"(?:[^ {SIGNS}]|_)+"
TERMS = f"{TERM}(?:[-.'_/@:+~#&=*%]+{TERM})*|[^ ]"
MIXED = _pattern(f"[^ {SIGNS}{HAN}]")

# === Back to text: what is replaced in tokens that are joined by spaces, in turn ===

JOIN = (
    *((f"([{HAN}]) {re.escape(sign)}", rf"\1{wide}") for sign, wide in FULL_WIDTH.items()),
    (f"([{HAN}{CJK_SIGNS}]) ", r"\1"),
    (f" ([{HAN}{CJK_SIGNS}])", r"\1"),
    (r" ([.,!?;:%)\]}])", r"\1"),
    (r"([(\[{$#]) ", r"\1"),
    ('" ([^"]*) "', r'"\1"'),
)
HYPHENS = ((f"([^ {SIGNS}]) - ([^ {SIGNS}])", r"\1-\2"),)
OPTIONS = (("(^| )- ([a-z0-9])( |$)", r"\1-\2\3"),) * 2
"""Of a command; twice, as neighbours share a space. In terms other hyphens are kept."""


def normalize(text, lower=True):
    """Brings a text into the form that tokenizers take.

    Typographic apostrophes and quotes become ASCII, then NFKC (`\uff21` is `A`, the ellipsis three points, a wide comma
    a narrow one); invisible characters go; white space and control characters are one space, and none at the ends.

    Args:
        text: Any text.
        lower: Whether to make it lower case.

    >>> normalize(" \u201cDon\u2019t\u201d\\t\uff2f\uff2b\u2026 ", lower=True)
    '"don\\'t" ok...'
    """
    text = re.sub(f"[{APOSTROPHES}]", "'", text)
    text = re.sub(f"[{QUOTES}]", '"', text)
    text = unicodedata.normalize("NFKC", text)
    text = re.sub(f"[{INVISIBLE}]", "", text)
    text = re.sub(f"[{SPACE}]+", " ", text).strip(" ")
    return text.lower() if lower else text


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """Splits normalized texts.

    >>> tokenizer = TOKENIZERS["words"]
    >>> tokens = tokenizer.tokenize("i don't: it's 2:30 ... (push-ups)!")
    >>> tokens
    ['i', "don't", ':', "it's", '2:30', '...', '(', 'push', '-', 'ups', ')', '!']
    >>> tokenizer.detokenize(tokens)
    "i don't: it's 2:30... (push-ups)!"
    """

    pattern: str
    """What a token looks like."""
    glue: str = " "
    """What is put between tokens."""
    join: tuple[tuple[str, str], ...] = ()
    """Patterns and what takes their place, in turn, once the tokens are one text."""
    segment: bool = False
    """Whether the package jieba parts tokens of Han characters into words."""

    def tokenize(self, text):
        """The tokens of a text.

        Args:
            text: As `normalize` gives it.

        Returns:
            List of strings without spaces.

        Raises:
            UserError: where jieba is needed and not installed.
        """
        tokens = re.findall(self.pattern, text)
        if self.segment:
            cut = _jieba().lcut
            return [part for token in tokens for part in (cut(token) if re.match(f"[{HAN}]", token) else [token])]
        return tokens

    def detokenize(self, tokens):
        """The text that a reader expects of some tokens; which spaces there were is not known, but guessed."""
        text = self.glue.join(tokens)
        for pattern, replacement in self.join:
            text = re.sub(pattern, replacement, text)
        return text


def _jieba():
    try:
        import jieba
    except ImportError as error:
        raise UserError(
            "The tokenizer jieba needs a package that is not here: pip install jieba, see requirements-chinese.txt"
        ) from error
    logging.getLogger("jieba").setLevel(logging.WARNING)  # it says how long its dictionary took
    return jieba


TOKENIZERS = {
    "space": Tokenizer("[^ ]+"),
    "words": Tokenizer(WORDS, join=JOIN + HYPHENS),
    "terms": Tokenizer(TERMS, join=OPTIONS + JOIN),
    "characters": Tokenizer("[^ ]", glue=""),
    "mixed": Tokenizer(MIXED, join=JOIN + HYPHENS),
    "jieba": Tokenizer(f"[{HAN}]+|{MIXED}", join=JOIN + HYPHENS, segment=True),
}
"""`space`: what stands between spaces. `words`: words with their inner apostrophes, numbers, `...`, `--`, and each
other sign. `terms`: words with the signs that join their parts (`apt-get`, `kernel.org`, `2.6.8`, `__path__`), and each
other sign, as the logs of #ubuntu are cut. `characters`: each character. `mixed`: as `words`, but each Han character is
one. `jieba`: as `mixed`, but Han characters make words.
"""

WHITESPACE = "whitespace"
"""The tokenizer of texts whose words somebody has separated already, as in the files of SMN and DAM: they are split at
ASCII white space and changed in nothing else."""


def words_of(text, tokenizer=WHITESPACE, lower=True):
    """The words of a text as a person or a corpus wrote it.

    Args:
        text: Any text.
        tokenizer: `WHITESPACE` or a key of `TOKENIZERS`.
        lower: Whether to make it lower case; `WHITESPACE` never does.

    Returns:
        List of strings.

    >>> words_of("Hello  there! Try apt-get."), words_of("Hello  there!", "terms"), words_of("apt-get.", "terms")
    (['Hello', 'there!', 'Try', 'apt-get.'], ['hello', 'there', '!'], ['apt-get', '.'])
    """
    if tokenizer == WHITESPACE:
        return [word.decode() for word in text.encode(errors="replace").split()]
    return TOKENIZERS[tokenizer].tokenize(normalize(text, lower))
