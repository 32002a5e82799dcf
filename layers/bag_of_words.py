"""Sentences as sums of their words' vectors (Sukhbaatar et al. 2015, section 4.1; MEMMA, equations
5 to 8).

Shape suffixes:  ... leading axes   W words   D features
"""

import keras
import numpy as np
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.masking import mask_from_ids
from colloquy.layers.positions import interleaved_sinusoids, sinusoids

STDDEV = 0.1  # of fresh word vectors, as in MemN2N


def scaled_sinusoids(length, dimension):
    """`layers.positions.sinusoids` as large as fresh word vectors."""
    return STDDEV * sinusoids(length, dimension, 10_000.0)


@keras.saving.register_keras_serializable("colloquy")
class BagOfWords(keras.layers.Layer):
    """A sentence is the sum of its words' vectors.

        x = sum_k E[w_k]                    or, with positions, x = sum_k (E[w_k] + PE[k])

    Args:
        vocabulary_size: Words with an id, 1 to this.
        dimension: D.
        max_words: With positions, words of the longest sentence; longer ones count as that long.
        positions: `"none"`, or the sinusoids `PE`: `"interleaved"`, those of Vaswani et al. and the
            article, or `"halves"`, `layers.positions.sinusoids` times .1. In a sum they tell only
            the length of the sentence. Those of the article are ten times as large as fresh word
            vectors.
        trainable: `False`: frozen random word vectors.

    Call arguments:
        ids: Word ids, int32 `(..., W)`, 0 = padding, which adds nothing. With `rows`, `(N,)`: the
            words of many sentences end to end, so that none is padded.
        rows: The sentence of each word, int32 `(N,)`, ascending.
        count: Number of sentences, with `rows`.

    Returns:
        Float `(..., D)`; with `rows`, `(count, D)`.

    >>> bag = BagOfWords(7, 3)
    >>> float(ops.max(ops.abs(bag(np.array([[2, 5, 0]])) - bag(np.array([[5, 2]])))))
    0.0
    """

    def __init__(self, vocabulary_size, dimension, max_words=0, positions="none", **kwargs):
        super().__init__(**kwargs)
        check_choice("positions", positions, ("none", "interleaved", "halves"))
        self.vocabulary_size, self.dimension, self.max_words = vocabulary_size, dimension, max_words
        self.positions = positions

    def build(self, ids_shape, rows_shape=None):
        shape, initializer = (
            (self.vocabulary_size + 1, self.dimension),
            keras.initializers.RandomNormal(stddev=STDDEV),
        )
        self.embeddings = self.add_weight(name="embeddings", shape=shape, initializer=initializer)
        self.real_rows = np.ones((self.vocabulary_size + 1, 1), "float32")
        self.real_rows[0] = 0.0
        signals = {"interleaved": interleaved_sinusoids, "halves": scaled_sinusoids}.get(
            self.positions
        )
        if signals:
            signals_WD = np.pad(signals(self.max_words, self.dimension), ((1, 0), (0, 0)))
            self.signals = np.cumsum(signals_WD, axis=0)  # of sentences of 0 to max_words words

    def look_up(self, ids):
        """Word vectors, zero for padding; zeroing that row of the table is cheaper than a mask over
        all words.
        """
        return ops.take(ops.cast(self.embeddings * self.real_rows, self.compute_dtype), ids, axis=0)

    def call(self, ids, rows=None, count=None):
        words, real = self.look_up(ids), ops.cast(mask_from_ids(ids), "int32")
        if rows is None:
            x, lengths = ops.sum(words, axis=-2), ops.sum(real, axis=-1)
        else:
            x, lengths = (ops.segment_sum(values, rows, count) for values in (words, real))
        if self.positions != "none":
            x = x + ops.take(
                ops.cast(self.signals, self.compute_dtype),
                ops.minimum(lengths, self.max_words),
                axis=0,
            )
        return x
