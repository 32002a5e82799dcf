"""Tokenizers: text to words and back, in Python and, for exported models, inside a TensorFlow
graph. See `TOKENIZERS`.

Both apply the same patterns, in the syntax that Python's `re` and RE2 (`tf.strings.regex_replace`)
share: no look-around, no `\\w`; characters beyond ASCII are written literally. A pattern matches
every character but the space, so `re.findall(pattern, text)` is `re.sub(f"({pattern})", r" \\1 ",
text).split(" ")` without empty strings, which a graph can compute. TensorFlow is imported late:
scripts that just read text should start quickly.
"""

import dataclasses
import logging
import re
from collections.abc import Iterable
from typing import Any

from colloquy.base.characters import HAN
from colloquy.base.files import UserError
from colloquy.data import normalization
from colloquy.data.graph_normalization import GraphNormalizer
from colloquy.data.normalization import INVISIBLE

# === Characters, as the inner part of a class ===

# white space and control characters
SPACE = "\\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
APOSTROPHES = "`\u00b4\u02bc\u1fef\u1ffd\u2018\u2019\u201a\u201b\u2032\uff40"
QUOTES = "\u201c\u201d\u201e\u201f\u2033"
# ASCII sign -> its full-width form, which NFKC undoes and `WIDE_AFTER_HAN` restores
FULL_WIDTH = {sign: chr(ord(sign) + 0xFEE0) for sign in ",!?:;"}
CJK_SIGNS = "\u3001-\u3004\u3008-\u3020\u3030\u30fb" + "".join(FULL_WIDTH.values())
"""Punctuation of Chinese and Japanese, which needs no space around it."""
SIGNS = (
    "!-/:-@\\[-`{-~"  # ASCII
    # Latin-1 without its letters
    "\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7"
    "\u05be\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965"  # Hebrew, Arabic, Devanagari
    # punctuation, currencies, symbols, arrows
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2100-\u2bff\u2e00-\u2e7f"
    "\u3001-\u3004\u3008-\u3020\u3030\u30fb\ue000-\uf8ff\ufe10-\ufe6f\uff00-\uff0f\uffe0-\uffff"
    "\U0001f000-\U0001faff"  # emoji
)
"""Punctuation and symbols. Every other character, of any script, is a letter here."""

# === Tokens ===

NUMBER = "[0-9]+(?:[.,:][0-9]+)+"
RUN = r"\.\.\.|--"  # the ellipsis, and the dash of a typewriter


def _pattern(letter):
    return f"{NUMBER}|{letter}+(?:'{letter}+)*|{RUN}|[^ ]"


WORDS = _pattern(f"[^ {SIGNS}]")
TERM = f"(?:[^ {SIGNS}]|_)+"
TERMS = f"{TERM}(?:[-.'_/@:+~#&=*%]+{TERM})*|[^ ]"
MIXED = _pattern(f"[^ {SIGNS}{HAN}]")

# === Rules: patterns and their replacements, applied in order ===

ASCII_QUOTES = ((f"[{APOSTROPHES}]", "'"), (f"[{QUOTES}]", '"'))
ONE_SPACE = ((f"[{INVISIBLE}]", ""), (f"[{SPACE}]+", " "), ("^ | $", ""))

WIDE_AFTER_HAN = [
    (f"([{HAN}]) {re.escape(sign)}", rf"\1{wide}") for sign, wide in FULL_WIDTH.items()
]
# For tokens separated by spaces.
JOIN = (
    *WIDE_AFTER_HAN,
    (f"([{HAN}{CJK_SIGNS}]) ", r"\1"),
    (f" ([{HAN}{CJK_SIGNS}])", r"\1"),
    (r" ([.,!?;:%)\]}])", r"\1"),
    (r"([(\[{$#]) ", r"\1"),
    ('" ([^"]*) "', r'"\1"'),
)
HYPHENS = ((f"([^ {SIGNS}]) - ([^ {SIGNS}])", r"\1-\2"),)
OPTIONS = (("(^| )- ([a-z0-9])( |$)", r"\1-\2\3"),) * 2
"""Options of a command; twice, because neighbours share a space. Other hyphens are inside terms."""


def apply_rules(text: Any, rules: Iterable[tuple[str, str]]) -> Any:
    """Applies rules to a string, or in a graph to a string tensor."""
    if isinstance(text, str):
        for pattern, replacement in rules:
            text = re.sub(pattern, replacement, text)
        return text
    import tensorflow as tf

    for pattern, replacement in rules:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text


def normalize(text: str, lower: bool = True) -> str:
    """Normalizes a text for tokenizers.

    Typographic apostrophes and quotes become ASCII, then `data.normalization.normalize` with NFKC
    applies: invisible characters are removed. Runs of white space and control characters become a
    space, none at the ends.

    >>> normalize(" \u201cDon\u2019t\u201d\\t\uff2f\uff2b\u2026 ", lower=True)
    '"don\\'t" ok...'
    """
    text = normalization.normalize(apply_rules(text, ASCII_QUOTES), "NFKC")
    text = apply_rules(text, ONE_SPACE)
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

    pattern: str  # matches a token
    join: tuple[tuple[str, str], ...] = ()  # rules for joined tokens
    segment: bool = False  # runs of Han characters are split into words by the package jieba

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a normalized text; a `UserError` if jieba is needed and not installed."""
        tokens = re.findall(self.pattern, text)
        if not self.segment:
            return tokens
        try:
            import jieba
        except ImportError as error:
            raise UserError(
                "The tokenizer jieba needs a package: pip install -e '.[chinese]'"
            ) from error
        logging.getLogger("jieba").setLevel(logging.WARNING)  # it logs how long its dictionary took
        words = []
        for token in tokens:
            if re.match(f"[{HAN}]", token):
                words.extend(jieba.lcut(token))
            else:
                words.append(token)
        return words

    def detokenize(self, tokens: Iterable[str]) -> str:
        """The text that a reader expects of some tokens; spaces are guessed."""
        return apply_rules(" ".join(tokens), self.join)

    def detokenize_in_graph(self, tokens: Any) -> Any:
        """The texts of tokens, string `(..., L)`, padded with "" at the end: string `(...)`."""
        import tensorflow as tf

        joined = tf.strings.reduce_join(tokens, axis=-1, separator=" ")
        return apply_rules(joined, ((" +$", ""), *self.join))


TOKENIZERS = {
    "space": Tokenizer("[^ ]+"),
    "words": Tokenizer(WORDS, join=JOIN + HYPHENS),
    "terms": Tokenizer(TERMS, join=OPTIONS + JOIN),
    "mixed": Tokenizer(MIXED, join=JOIN + HYPHENS),
    "jieba": Tokenizer(f"[{HAN}]+|{MIXED}", join=JOIN + HYPHENS, segment=True),
}
"""Name -> tokenizer:

- `space` splits at spaces.
- `words`: words with their inner apostrophes, numbers, `...`, `--`, and each other sign.
- `terms`: words with the signs that join their parts (`apt-get`, `kernel.org`, `2.6.8`,
  `__path__`), and each other sign, as the logs of #ubuntu are tokenized.
- `mixed`: as `words`, but each Han character is a token.
- `jieba`: as `mixed`, but Han characters form words.
"""

WHITESPACE = "whitespace"
"""The tokenizer of texts that are tokenized, as the files of SMN and DAM.

It splits at ASCII white space and changes nothing else.
"""


def has_letter_or_digit(text: str) -> bool:
    """Whether a text has a letter or a digit, as punctuation has not."""
    return any(character.isalnum() for character in text)


def spoken_words(words: Iterable[str]) -> list[str]:
    """The words that have a letter or a digit, unlike punctuation.

    >>> spoken_words(["well", ",", "it's", "2:30", "..."])
    ['well', "it's", '2:30']
    """
    return [word for word in words if has_letter_or_digit(word)]


def words_of(text: str, tokenizer: str = WHITESPACE, lower: bool = True) -> list[str]:
    """The words of any text by a key of `TOKENIZERS`, or by `WHITESPACE`, which keeps capitals."""
    if tokenizer == WHITESPACE:
        return [word.decode() for word in text.encode(errors="replace").split()]
    return TOKENIZERS[tokenizer].tokenize(normalize(text, lower))


class GraphTokenizer:
    """`words_of` inside a TensorFlow graph.

    Differs from it: TensorFlow does not lower-case the 40 capitals that are new in Unicode 14; see
    also `GraphNormalizer`.
    `WHITESPACE` accepts any bytes.
    """

    def __init__(self, tokenizer: str, lower: bool) -> None:
        self.tokenizer: Tokenizer | None = None
        self.lower = lower
        self.tables = []  # lookup tables that an exported model must track
        if tokenizer == WHITESPACE:
            return
        self.tokenizer = TOKENIZERS[tokenizer]
        if self.tokenizer.segment:
            raise UserError(f"the tokenizer {tokenizer} cannot run inside a TensorFlow graph")
        self.unicode = GraphNormalizer("NFKC")
        self.tables.append(self.unicode.table)

    def __call__(self, texts: Any) -> Any:
        """The words of texts, string `(n,)`: ragged string `(n, words)`."""
        import tensorflow as tf

        if self.tokenizer is None:
            return tf.strings.split(texts)
        spaced = apply_rules(self.normalize(texts), [(f"({self.tokenizer.pattern})", r" \1 ")])
        return tf.strings.split(spaced)

    def normalize(self, texts: Any) -> Any:
        """`normalize` of texts, string `(n,)`."""
        import tensorflow as tf

        texts = self.unicode(apply_rules(texts, ASCII_QUOTES))
        texts = apply_rules(texts, ONE_SPACE)
        if self.lower:
            texts = tf.strings.lower(texts, encoding="utf-8")
        return texts
