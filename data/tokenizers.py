"""Tokenizers: text to words and back. `data.graph_tokenizer` does the same in a TensorFlow graph.

Both use the patterns of this file. So these keep to the syntax that Python's `re` shares with RE2,
TensorFlow's: no look-around, no `\\w`; characters beyond ASCII are written literally.
"""

import dataclasses
import logging
import re
from collections.abc import Iterable

from colloquy.base.characters import HAN, SIGNS
from colloquy.base.files import UserError
from colloquy.data import normalization

# === Normalized texts ===

APOSTROPHES = "[`\u00b4\u02bc\u1fef\u1ffd\u2018\u2019\u201a\u201b\u2032\uff40]"
QUOTES = "[\u201c\u201d\u201e\u201f\u2033]"
ASCII_QUOTES = ((APOSTROPHES, "'"), (QUOTES, '"'))
"""Rules: patterns and their replacements."""
# White space and control characters.
SPACES = "[\\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
ONE_SPACE = ((SPACES, " "), ("^ | $", ""))


def apply_rules(text: str, rules: Iterable[tuple[str, str]]) -> str:
    """Replaces the matches of each pattern, one rule after the other."""
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def normalize(text: str, lower: bool = True) -> str:
    """Normalizes a text for tokenizers.

    Typographic apostrophes and quotes become ASCII. This comes first, because NFKC decomposes some
    of them into a space and an accent. Then `data.normalization` applies, with NFKC. White space
    and control characters become single spaces, none at the ends.

    >>> normalize(" \u201cDon\u2019t\u201d\\t\uff2f\uff2b\u2026 ", lower=True)
    '"don\\'t" ok...'
    """
    text = apply_rules(text, ASCII_QUOTES)
    text = normalization.normalize(text, "NFKC")
    text = apply_rules(text, ONE_SPACE)
    return text.lower() if lower else text


# === Patterns of a token in a normalized text ===
#
# The first alternative that matches counts. The last one, `[^ ]`, matches any other sign: so tokens
# have every character of a text but its spaces.

LETTER = f"[^ {SIGNS}]"  # digits, too
LETTER_BUT_HAN = f"[^ {SIGNS}{HAN}]"
NUMBER = "[0-9]+(?:[.,:][0-9]+)+"  # 3,000.5 and 2:30
ELLIPSIS_OR_DASH = r"\.\.\.|--"


def _words(letter):
    word = f"{letter}+(?:'{letter}+)*"  # don't
    return f"{NUMBER}|{word}|{ELLIPSIS_OR_DASH}|[^ ]"


WORDS = _words(LETTER)
WORDS_BUT_HAN = _words(LETTER_BUT_HAN)
# Parts that signs join: apt-get, kernel.org, 2.6.8 and __path__.
TERM_PART = f"(?:{LETTER}|_)+"
TERMS = f"{TERM_PART}(?:[-.'_/@:+~#&=*%]+{TERM_PART})*|[^ ]"


# === Rules that join tokens, separated by spaces, to a text ===
#
# They remove the spaces that people do not write, one rule after the other.

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


# === Tokenizers ===


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
    """Matches a token."""
    join: tuple[tuple[str, str], ...] = ()
    """Rules that are applied to tokens separated by spaces."""
    segment: bool = False
    """The package jieba splits a token of Han characters into words."""

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a normalized text; a `UserError` if jieba is needed and not installed."""
        tokens = re.findall(self.pattern, text)
        return _segment(tokens) if self.segment else tokens

    def detokenize(self, tokens: Iterable[str]) -> str:
        """The text that a reader expects of some tokens; spaces are guessed."""
        return apply_rules(" ".join(tokens), self.join)


def _segment(tokens):
    try:
        import jieba
    except ImportError as error:
        raise UserError("The tokenizer jieba needs a package: pip install jieba") from error
    logging.getLogger("jieba").setLevel(logging.WARNING)  # it logs how long its dictionary took
    words = []
    for token in tokens:
        if re.match(f"[{HAN}]", token):
            words.extend(jieba.lcut(token))
        else:
            words.append(token)
    return words


TOKENIZERS = {
    # Splits at spaces.
    "space": Tokenizer("[^ ]+"),
    # Numbers, words, `...`, `--`, and each other sign.
    "words": Tokenizer(WORDS, join=JOIN_WORDS),
    # Terms such as `apt-get`, and each other sign, as the logs of #ubuntu are tokenized.
    "terms": Tokenizer(TERMS, join=JOIN_TERMS),
    # As `words`, but each Han character is a token.
    "mixed": Tokenizer(WORDS_BUT_HAN, join=JOIN_WORDS),
    # As `mixed`, but Han characters form words.
    "jieba": Tokenizer(f"[{HAN}]+|{WORDS_BUT_HAN}", join=JOIN_WORDS, segment=True),
}

WHITESPACE = "whitespace"
"""The tokenizer of files that are already tokenized, such as those of SMN and DAM: it splits at
ASCII white space and changes nothing else.
"""


def words_of(text: str, tokenizer: str = WHITESPACE, lower: bool = True) -> list[str]:
    """The words of any text by a key of `TOKENIZERS`, or by `WHITESPACE`, which keeps capitals."""
    if tokenizer == WHITESPACE:
        # `bytes.split` splits at ASCII white space alone, unlike `str.split`.
        return [word.decode() for word in text.encode(errors="replace").split()]
    return TOKENIZERS[tokenizer].tokenize(normalize(text, lower))


# === Words without punctuation ===


def has_letter_or_digit(text: str) -> bool:
    """Whether a text has a letter or a digit, as punctuation has not."""
    return any(character.isalnum() for character in text)


def spoken_words(words: Iterable[str]) -> list[str]:
    """The words that have a letter or a digit, unlike punctuation.

    >>> spoken_words(["well", ",", "it's", "2:30", "..."])
    ['well', "it's", '2:30']
    """
    return [word for word in words if has_letter_or_digit(word)]
