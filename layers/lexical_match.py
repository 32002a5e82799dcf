"""Which words of a context and of a response are the same word: an extension of DAM's matches, not of the paper.

Shape suffixes:
    B batch   N candidates   T turns   K utterance words   J response words   V words of the vocabulary
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable("colloquy")
class LexicalMatch(keras.layers.Layer):
    """Matches words by identity, each with a weight of its own, as TF-IDF does.

    The weights `w` are given, as inverse document frequencies, and not trained: most words are rare.

        match_tkj = w(u_tk) w(r_j) if u_tk = r_j, else 0
        cosine    = sum_tkj match_tkj / sqrt(sum_tk w(u_tk)^2  sum_j w(r_j)^2)
        logit     = gain cosine

    A word that the vocabulary has not matches itself where it has a hashed id (`data.vocabulary.Vocabulary`): file
    names, versions and error messages decide which answer belongs to a question, and word vectors say nothing of them.

    Args:
        words: V, ids that occur, 1 to this; 0 is padding.
        unknown_id: An id that stands for many words, and matches nothing; 0: there is none.
        gain: The initial one.

    Call arguments:
        turns: Word ids `(B, T, K)`, int32, 0 = padding.
        responses: Word ids `(B, N, J)`, int32.

    Returns:
        The matches, float `(B, N, T, K, J)` in the compute dtype, zero in padded cells; and the logits, float32
        `(B, N)`.
    """

    def __init__(self, words, unknown_id=0, gain=20.0, **kwargs):
        super().__init__(**kwargs)
        self.words = words
        self.unknown_id = unknown_id
        self.gain = gain

    def build(self, turns_shape, responses_shape):
        self.w = self.add_weight(name="w", shape=(self.words + 1,), initializer="ones", trainable=False)
        self.g = self.add_weight(name="gain", shape=(), initializer=keras.initializers.Constant(self.gain))

    def call(self, turns, responses):
        u_BTK, r_BNJ = self._weights(turns), self._weights(responses)
        same = ops.equal(turns[:, None, :, :, None], responses[:, :, None, None, :])  # (B, N, T, K, J)
        match = ops.where(same, u_BTK[:, None, :, :, None] * r_BNJ[:, :, None, None, :], 0.0)
        squares = ops.sum(u_BTK**2, axis=(1, 2))[:, None] * ops.sum(r_BNJ**2, axis=2)  # (B, N)
        cosine = ops.sum(match, axis=(2, 3, 4)) / ops.sqrt(ops.maximum(squares, 1e-6))
        return ops.cast(match, self.compute_dtype), ops.cast(self.g, "float32") * cosine

    def _weights(self, ids):
        """The words' weights, float32, 0 for padding and `unknown_id`."""
        matters = ops.logical_and(ids != 0, ids != self.unknown_id)
        return ops.where(matters, ops.take(ops.cast(self.w, "float32"), ids, axis=0), 0.0)

    def compute_output_spec(self, turns, responses):
        (B, T, K), (_, N, J) = turns.shape, responses.shape
        return keras.KerasTensor((B, N, T, K, J), self.compute_dtype), keras.KerasTensor((B, N), "float32")

    def get_config(self):
        return {**super().get_config(), "words": self.words, "unknown_id": self.unknown_id, "gain": self.gain}
