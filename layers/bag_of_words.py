"""Sentences as sums of their words' vectors.

Sukhbaatar et al. 2015, section 4.1; MEMMA, equations 5 to 8.

Shape suffixes:  ... leading axes   W words of a sentence   N words of all sentences   D features
"""

import keras
import numpy as np
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.masking import mask_from_ids
from colloquy.layers.positions import interleaved_sinusoids, sinusoids
from colloquy.layers.word_embedding import as_ids

STDDEV = 0.1
"""Standard deviation of fresh word vectors, as in MemN2N."""


@keras.saving.register_keras_serializable("colloquy")
class BagOfWords(keras.layers.Layer):
    """A sentence is the sum of its words' vectors.

        x = sum_k s E[w_k]                  or, with positions, x = sum_k (s E[w_k] + PE[k])

    Args:
        vocabulary_size: Words with an id, 1 to this.
        dimension: D.
        max_words: With positions, number of words of the longest sentence. A longer sentence gets
            the signals of its first `max_words` places.
        positions: The signals `PE`. Their sum tells only the length of the sentence.
            `"none"`: no signals.
            `"interleaved"`: the sinusoids of Vaswani et al. and of MEMMA's article, which are ten
            times as large as fresh word vectors.
            `"halves"`: `layers.positions.sinusoids`, first all sines, then all cosines, times .1.
        scale: `s`, factor of the word vectors: the root of D in Vaswani et al. 2017, section 3.4.
        trainable: `False`: frozen random word vectors.

    Call arguments:
        ids: Word ids, int32 `(..., W)`, 0 = padding, which adds nothing.

    Returns:
        Float `(..., D)`.

    Many sentences may also be given end to end, so that none is padded:
        ids: The words of all sentences, int32 `(N,)`.
        rows: The number of each word's sentence, from 0, int32 `(N,)`, ascending.
        count: Number of sentences. The result is float `(count, D)`.

    >>> bag = BagOfWords(7, 3)
    >>> float(ops.max(ops.abs(bag(np.array([[2, 5, 0]])) - bag(np.array([[5, 2]])))))
    0.0
    """

    def __init__(
        self, vocabulary_size, dimension, max_words=0, positions="none", scale=1.0, **kwargs
    ):
        super().__init__(**kwargs)
        check_choice("positions", positions, ("none", "interleaved", "halves"))
        if positions != "none" and max_words < 1:
            raise ValueError(f"positions={positions!r} needs max_words. Received: {max_words}")
        self.vocabulary_size = vocabulary_size
        self.dimension = dimension
        self.max_words = max_words
        self.positions = positions
        self.scale = scale

    def build(self, ids_shape, rows_shape=None):
        table_size = self.vocabulary_size + 1
        self.embeddings = self.add_weight(
            (table_size, self.dimension),
            keras.initializers.RandomNormal(stddev=STDDEV),
            name="embeddings",
        )
        self.is_word = np.ones((table_size, 1), "float32")
        self.is_word[0] = 0.0

        if self.positions == "none":
            return
        if self.positions == "interleaved":
            self.PE_WD = interleaved_sinusoids(self.max_words, self.dimension)
        else:
            self.PE_WD = STDDEV * sinusoids(self.max_words, self.dimension, 10_000.0)
        # A sentence of n words gets the sum of the signals of n places: `PE` [p, q, r] gives
        # [0, p, p + q, p + q + r].
        self.sum_by_length = np.cumsum(np.pad(self.PE_WD, ((1, 0), (0, 0))), axis=0)

    def look_up(self, ids):
        """Scaled word vectors, zero for padding."""
        # Zeroing that row of the table is cheaper than a mask over all words.
        table = ops.cast(self.embeddings * self.is_word * self.scale, self.compute_dtype)
        return ops.take(table, as_ids(ids), axis=0)

    def call(self, ids, rows=None, count=None):
        words = self.look_up(ids)
        is_real = ops.cast(mask_from_ids(ids), "int32")
        if rows is None:
            x = ops.sum(words, axis=-2)
            lengths = ops.sum(is_real, axis=-1)
        else:
            x = ops.segment_sum(words, rows, count)
            lengths = ops.segment_sum(is_real, rows, count)
        if self.positions == "none":
            return x
        lengths = ops.minimum(lengths, self.max_words)
        sum_by_length = ops.cast(self.sum_by_length, self.compute_dtype)
        return x + ops.take(sum_by_length, lengths, axis=0)
