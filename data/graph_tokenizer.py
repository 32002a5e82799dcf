"""The tokenizers of `data.tokenizers` inside a TensorFlow graph, for exported models."""

from typing import Any

from colloquy.base.files import UserError
from colloquy.data.graph_normalization import GraphNormalizer, apply_rules
from colloquy.data.tokenizers import ASCII_QUOTES, ONE_SPACE, TOKENIZERS, WHITESPACE


class GraphTokenizer:
    """`words_of` inside a TensorFlow graph.

    It differs from `words_of` in three cases:

    - TensorFlow does not lower-case the 40 capitals that are new in Unicode 14.
    - `GraphNormalizer` differs from `normalize` in two rare cases.
    - `WHITESPACE` accepts any bytes, also if they are not UTF-8.
    """

    def __init__(self, tokenizer: str, lower: bool) -> None:
        self.lower = lower
        # The pattern of a token. It stays empty for `WHITESPACE`, which splits without one.
        self.pattern = ""
        # The rules by which `detokenize` removes spaces.
        self.join: tuple[tuple[str, str], ...] = ()
        # An exported model must track these lookup tables, or it is saved without them.
        self.tables = []
        if tokenizer == WHITESPACE:
            return
        if TOKENIZERS[tokenizer].segment:
            raise UserError(f"the tokenizer {tokenizer} cannot run inside a TensorFlow graph")
        self.pattern = TOKENIZERS[tokenizer].pattern
        self.join = TOKENIZERS[tokenizer].join
        self.normalizer = GraphNormalizer("NFKC")
        self.tables.append(self.normalizer.table)

    def __call__(self, texts: Any) -> Any:
        """The words of texts, string `(n,)`: ragged string `(n, words)`."""
        import tensorflow as tf

        if not self.pattern:
            return tf.strings.split(texts)
        # A graph cannot list the matches of a pattern. But it can put spaces around each match:
        # "go on!" -> " go   on  ! " -> ["go", "on", "!"]
        spaced = tf.strings.regex_replace(self.normalize(texts), f"({self.pattern})", r" \1 ")
        return tf.strings.split(spaced)

    def normalize(self, texts: Any) -> Any:
        """`data.tokenizers.normalize` of texts, string `(n,)`."""
        import tensorflow as tf

        texts = apply_rules(texts, ASCII_QUOTES)
        texts = self.normalizer(texts)
        texts = apply_rules(texts, ONE_SPACE)
        if self.lower:
            texts = tf.strings.lower(texts, encoding="utf-8")
        return texts

    def detokenize(self, tokens: Any) -> Any:
        """The texts of tokens, string `(..., L)`, padded with "" at the end: string `(...)`."""
        import tensorflow as tf

        joined = tf.strings.reduce_join(tokens, axis=-1, separator=" ")
        return apply_rules(joined, ((" +$", ""), *self.join))
