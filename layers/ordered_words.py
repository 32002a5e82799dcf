"""Sentences as sums of their words' vectors that depend on the order of the words.

Shape suffixes:  S sentences   W words   D features   H heads
"""

import keras
import numpy as np
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.bag_of_words import BagOfWords
from colloquy.layers.masking import mask_from_ids, zero_padding
from colloquy.layers.memory_attention import MemoryAttention


@keras.saving.register_keras_serializable("colloquy")
class OrderedWords(BagOfWords):
    """A sentence is a sum over its words in which their places count.

        position:   x = sum_j l_j * E[w_j],   l_jk = (1 - j/J) - (k/d) (1 - 2j/J)
        attention:  y_j = E[w_j] + PE_j,      x = sum_j (y_j + MultiHead(y, y, y)_j)

    `position` is the position encoding of Sukhbaatar et al. 2015, section 4.1, for the j-th of J
    words and the k-th of d features. In `attention` the words of a sentence attend to each other,
    by the multi-head attention of MEMMA's equations 9 to 11; `PE` are the signals of
    `layers.bag_of_words`.

    Args:
        vocabulary_size, dimension: See `BagOfWords`.
        max_words: Words of the longest sentence; words after that have the sinusoids of the last
            place.
        encoding: `"position"` or `"attention"`.
        heads: H, of `attention`.
        trained: `False`: frozen random word vectors; the attention is trained.
        positions: `PE` of `attention`, see `BagOfWords`. `"none"`: the order does not count.
        scale: Factor of the word vectors, see `BagOfWords`.

    Call arguments and result are those of `BagOfWords`, with ids `(S, W)`; padding has no place.
    With `rows`, as for candidates, sentences are plain sums.
    """

    def __init__(
        self,
        vocabulary_size,
        dimension,
        max_words=0,
        encoding="position",
        heads=1,
        trained=True,
        positions="halves",
        scale=1.0,
        **kwargs,
    ):
        check_choice("encoding", encoding, ("position", "attention"))
        if encoding == "position":
            positions = "none"
        super().__init__(vocabulary_size, dimension, max_words, positions, scale, **kwargs)
        self.encoding = encoding
        self.trained = trained
        if encoding == "attention":
            divisor = (self.dimension / heads) ** 0.5
            self.attend = MemoryAttention(
                heads, divisor=divisor, name="words", dtype=self.dtype_policy
            )

    def build(self, ids_shape, rows_shape=None):
        super().build(ids_shape, rows_shape)
        self.embeddings.trainable = self.trained
        if self.encoding == "attention":
            self.attend.build((None, None, self.dimension), (None, None, self.dimension))

    def call(self, ids, rows=None, count=None):
        words = self.look_up(ids)
        if rows is not None:
            return ops.segment_sum(words, rows, count)
        mask_SW = mask_from_ids(ids)
        if self.encoding == "position":
            return self._positions(words, mask_SW)
        return self._attention(words, mask_SW)

    def _positions(self, E_SWD, mask_SW):
        """`l` is one term without k and k/d times another, so no weights `(S, W, D)` are formed."""
        j_SW = ops.cumsum(ops.cast(mask_SW, "float32"), axis=1)
        J_S1 = j_SW[:, -1:]
        part_SW = ops.cast(j_SW / ops.maximum(J_S1, 1.0), E_SWD.dtype)
        k_D = np.arange(1, self.dimension + 1) / self.dimension
        k_D = ops.convert_to_tensor(k_D, dtype=E_SWD.dtype)
        without_k_SD = ops.einsum("sw,swd->sd", 1 - part_SW, E_SWD)
        with_k_SD = ops.einsum("sw,swd->sd", 1 - 2 * part_SW, E_SWD)
        return without_k_SD - k_D * with_k_SD

    def _attention(self, E_SWD, mask_SW):
        y_SWD = E_SWD
        if self.positions != "none":
            place_SW = ops.cumsum(ops.cast(mask_SW, "int32"), axis=1) - 1
            place_SW = ops.clip(place_SW, 0, self.max_words - 1)
            PE_WD = ops.convert_to_tensor(self.PE_WD, dtype=E_SWD.dtype)
            PE_SWD = ops.take(PE_WD, place_SW, axis=0)
            y_SWD = zero_padding(E_SWD + PE_SWD, mask_SW[..., None])
        is_pair_SWW = mask_SW[:, :, None] & mask_SW[:, None, :]
        attended_SWD, _ = self.attend(y_SWD, y_SWD, is_pair_SWW)
        return ops.sum(y_SWD + attended_SWD, axis=1)
