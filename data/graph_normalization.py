"""Unicode normalization inside a TensorFlow graph; its patterns are of RE2, TensorFlow's syntax."""

import functools
import itertools
import unicodedata
from collections.abc import Iterable
from typing import Any

from colloquy.data.normalization import INVISIBLE, JOINERS, MARKS, SYLLABLE, Form, compose

# Code of the last character of Unicode that NFC or NFKC changes, an ideograph.
LAST_COMPOSED = 0x2FA1D
# `GraphNormalizer` puts this before and after each part of a text that it looks up.
SEPARATOR = "\x02"
# A character that is neither a letter, nor a mark, nor a joiner.
NOT_IN_WORD = rf"[^\p{{L}}\p{{M}}{JOINERS}]"
# Patterns and replacements that remove joiners, except between two letters.
JOINER_RULES = (
    (f"(^|{NOT_IN_WORD})[{JOINERS}]+", r"\1"),
    (f"[{JOINERS}]+($|{NOT_IN_WORD})", r"\1"),
)
# A Korean syllable in parts, or a character and its marks.
GRAPH_CLUSTER = f"{SYLLABLE}|[^{MARKS}{SEPARATOR}][{MARKS}]+"


def apply_rules(texts: Any, rules: Iterable[tuple[str, str]]) -> Any:
    """Replaces the matches of each pattern in a string tensor, one rule after the other."""
    import tensorflow as tf

    for pattern, replacement in rules:
        texts = tf.strings.regex_replace(texts, pattern, replacement)
    return texts


class GraphNormalizer:
    """`normalize` inside a TensorFlow graph.

    It differs in two cases:

    - If no single character of Unicode stands for a letter with all its marks, the letter and the
      marks stay as they are, while `normalize` composes the letter and some of the marks.
    - It keeps marks after the first `MAX_MARKS_KEPT` in a row.
    """

    def __init__(self, form: Form = "NFC") -> None:
        import tensorflow as tf

        composed = _composed_forms(form)
        initializer = tf.lookup.KeyValueTensorInitializer(
            keys=list(composed), values=list(composed.values())
        )
        self.table = tf.lookup.StaticHashTable(initializer, default_value="")
        singles = "".join(character for character in composed if len(character) == 1)
        # All of them are above U+007F, so none has a meaning in a pattern.
        self.patterns = (f"[{singles}]", GRAPH_CLUSTER)

    def __call__(self, texts: Any) -> Any:
        """Normalizes texts, string `(n,)`.

        U+0002 is the separator, so a U+0002 of a text becomes U+0001.
        """
        import tensorflow as tf

        rules = ((SEPARATOR, "\x01"), (f"[{INVISIBLE}]+", ""), *JOINER_RULES)
        texts = apply_rules(texts, rules)

        # Put separators around each match, split there, and look every part up in the table.
        for pattern in self.patterns:
            marked = tf.strings.regex_replace(texts, pattern, rf"{SEPARATOR}\0{SEPARATOR}")
            parts = tf.strings.split(marked, SEPARATOR)
            composed = self.table.lookup(parts.flat_values)
            parts = parts.with_flat_values(tf.where(composed == "", parts.flat_values, composed))
            texts = tf.strings.reduce_join(parts, axis=-1)
        return texts


@functools.cache
def _composed_forms(form):
    """Returns `{text: normalized text}` of the texts that `normalize` changes.

    Texts are characters, and sequences of a letter and its marks that become one character.
    """
    forms = {}
    for code in range(0x80, LAST_COMPOSED + 1):
        normal_form = compose(chr(code), form)
        for spelling in _spellings(chr(code)):
            if spelling != normal_form and compose(spelling, form) == normal_form:
                forms[spelling] = normal_form
    return forms


def _spellings(character):
    """Yields a character, then its letter with its marks one by one, in each order.

    A text may have the letter and its first marks as one character. For a letter with the marks
    `^` and `'`, these are the spellings, where (a^) is one character:

        (a^')    a^'  (a^)'    a'^  (a')^
    """
    yield character
    letter, *marks = unicodedata.normalize("NFD", character)
    # There are at most three marks, on some Greek letters, so the orders are few.
    for ordered_marks in itertools.permutations(marks):
        text = letter + "".join(ordered_marks)
        for num_composed in range(1, len(text)):
            composed = unicodedata.normalize("NFC", text[:num_composed])
            yield composed + text[num_composed:]
