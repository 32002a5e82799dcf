"""What `data.tokenizers` does to texts, inside a TensorFlow graph: for exported models."""

import sys
import unicodedata

import tensorflow as tf

from base.files import UserError
from data.tokenizers import APOSTROPHES, INVISIBLE, QUOTES, SPACE, TOKENIZERS, WHITESPACE
from data.vocabulary import HASHED_BYTES, POWERS, PRIME


class GraphTokenizer:
    """Splits texts into words as `data.tokenizers.words_of`.

    One thing differs: of NFKC what concerns single characters is done, as full-width letters, but a letter and a
    combining accent after it stay two.

    Args:
        tokenizer: `data.tokenizers.WHITESPACE`, which takes any bytes, or a key of `TOKENIZERS`.
        lower: Whether texts are made lower case; `WHITESPACE` never does.

    Raises:
        UserError: where the tokenizer works outside of a graph alone.
    """

    def __init__(self, tokenizer, lower):
        self.tokenizer, self.lower = TOKENIZERS.get(tokenizer), lower
        self.tables = []
        """What an exported model has to track."""
        if tokenizer == WHITESPACE:
            return
        if self.tokenizer.segment:
            raise UserError(f"the tokenizer {tokenizer} needs a package that no graph holds, and cannot be exported")
        narrow = {c: unicodedata.normalize("NFKC", c) for c in map(chr, range(sys.maxunicode + 1)) if _is_text(c)}
        narrow = {c: text for c, text in narrow.items() if c != text}
        self._narrow = _table(list(narrow), tf.constant(list(narrow.values())), "")
        self.tables.append(self._narrow)

    def __call__(self, texts):
        """The words of some texts.

        Args:
            texts: string `(n,)`.

        Returns:
            Ragged string `(n, words)`.
        """
        if self.tokenizer is None:
            return tf.strings.split(texts)
        return tf.strings.split(tf.strings.regex_replace(self.normalize(texts), f"({self.tokenizer.pattern})", r" \1 "))

    def normalize(self, texts):
        """As `data.tokenizers.normalize`; string `(n,)`."""
        texts = tf.strings.regex_replace(texts, f"[{APOSTROPHES}]", "'")
        texts = tf.strings.regex_replace(texts, f"[{QUOTES}]", '"')
        characters = tf.strings.unicode_split(texts, "UTF-8")
        narrow = tf.ragged.map_flat_values(self._narrow.lookup, characters)
        kept = tf.where(narrow.flat_values == "", characters.flat_values, narrow.flat_values)
        texts = tf.strings.reduce_join(characters.with_flat_values(kept), axis=-1)
        texts = tf.strings.regex_replace(texts, f"[{INVISIBLE}]", "")
        texts = tf.strings.regex_replace(texts, f"[{SPACE}]+", " ")
        texts = tf.strings.regex_replace(texts, "^ | $", "")
        return tf.strings.lower(texts, encoding="utf-8") if self.lower else texts


class WordIds:
    """The ids of words, as `data.vocabulary.Vocabulary.encode` gives them.

    Args:
        vocabulary: A `data.vocabulary.Vocabulary`.
    """

    def __init__(self, vocabulary):
        self.table = word_table(vocabulary)
        self._vocabulary = vocabulary

    def __call__(self, words):
        """Ids, int32 of the shape of `words`, string `(n,)`."""
        ids, vocabulary = self.table.lookup(words), self._vocabulary
        if not vocabulary.hashed:
            return ids
        bytes_NH = tf.cast(tf.io.decode_raw(words, tf.uint8, fixed_length=HASHED_BYTES), tf.int64)
        hashes = tf.reduce_sum(bytes_NH * tf.constant(POWERS, tf.int64), axis=-1) % PRIME
        hashed = len(vocabulary) + 1 + tf.cast(hashes % vocabulary.hashed, tf.int32)
        return tf.where(ids == vocabulary.unk_id, hashed, ids)


def word_table(vocabulary):
    """A lookup table from words to ids; other words and a literal `_EOS_` are `_UNK_`.

    Args:
        vocabulary: A `data.vocabulary.Vocabulary`.

    Returns:
        A `tf.lookup.StaticHashTable`, string to int32.
    """
    words = {word: i for i, word in enumerate(vocabulary.words, 1) if i != vocabulary.eos_id}
    return _table(list(words), tf.constant(list(words.values()), tf.int32), vocabulary.unk_id)


def of_shape(x, name, axes):
    """`x`, or an error that names the input and the expected shape, as `turns_must_have_shape_B_T`.

    A signature's function checks no shapes by itself, and whoever traces it believes the signature, so the shape is
    forgotten first.

    Args:
        x: A tensor.
        name: What it is called.
        axes: A letter for each axis.
    """
    x = tf.raw_ops.PlaceholderWithDefault(input=x, shape=tf.TensorShape(None))
    return tf.ensure_shape(x, [None] * len(axes), name=f"{name}_must_have_shape_{'_'.join(axes)}")


def _table(keys, values, default):
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(keys), values), default)


def _is_text(character):
    return unicodedata.category(character) != "Cs"  # half of a surrogate pair
