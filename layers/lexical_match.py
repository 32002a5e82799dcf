"""Similarity of a context and a response by their words alone: an extension, not in DAM's paper.

Shape suffixes:
    B batch   N candidates   W words of a context   X words of a response
    V words of the vocabulary
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable("colloquy")
class LexicalMatch(keras.layers.Layer):
    """The cosine of TF-IDF vectors times a gain, added to a model's logits outside training.

        logit = gain sum_{w, x: c_w = r_x} v(c_w)^2 / sqrt(sum_w v(c_w)^2  sum_x v(r_x)^2)
        v(w)  = idf(w)^power

    A word outside the vocabulary matches itself if it has a hashed id
    (`data.vocabulary.Vocabulary`): file names, versions and error messages decide which answer
    belongs to a question, and word vectors do not contain them. In training the logit is 0: a model
    trained beside it learns less of what it lacks (docs/dam.md). With `stems` the two are compared
    as sets of stems: `install` and `installed` are one word, which counts once.

    Args:
        words: V, ids that occur, 1 to this; 0 is padding.
        unknown_id: The shared id of unknown words, which matches nothing; 0 if there is no such id.
        gain, power: Of the equation; the higher the power, the more rare words count.
        stems: Replace each id by its entry of the weight `stem`, and count each once. A fresh entry
            is the id itself.

    Call arguments:
        context: Word ids `(B, ...)`, int32, 0 = padding.
        responses: Word ids `(B, N, X)`, int32.
        training: Boolean.

    Returns:
        Logits, float32 `(B, N)`.
    """

    def __init__(self, words, unknown_id=0, gain=16.0, power=1.0, stems=False, **kwargs):
        super().__init__(**kwargs)
        self.words = words
        self.unknown_id = unknown_id
        self.gain = gain
        self.power = power
        self.stems = stems

    def build(self, context_shape, responses_shape):
        self.idf = self.add_weight(
            name="idf", shape=(self.words + 1,), initializer="ones", trainable=False
        )
        if self.stems:
            self.stem = self.add_weight(
                name="stem",
                shape=(self.words + 1,),
                dtype="int32",
                initializer=lambda shape, dtype: ops.arange(shape[0], dtype=dtype),
                trainable=False,
            )

    def call(self, context, responses, training=False):
        if training:
            return ops.zeros(ops.shape(responses)[:2], "float32")
        context_BW = ops.reshape(context, (ops.shape(context)[0], -1))
        responses_BNX = responses
        if self.stems:
            context_BW = self._distinct_stems(context_BW)
            responses_BNX = self._distinct_stems(responses_BNX)
        c_BW = self._weights(context_BW)
        r_BNX = self._weights(responses_BNX)

        is_same_BNWX = ops.equal(context_BW[:, None, :, None], responses_BNX[:, :, None, :])
        square_B1W1 = ops.square(c_BW)[:, None, :, None]
        shared_BN = ops.sum(ops.where(is_same_BNWX, square_B1W1, 0.0), axis=(2, 3))
        squares_BN = ops.sum(c_BW**2, axis=1)[:, None] * ops.sum(r_BNX**2, axis=2)
        return self.gain * shared_BN / ops.sqrt(ops.maximum(squares_BN, 1e-6))

    def _distinct_stems(self, ids):
        """The stems of each text, sorted, with 0 in place of repeated ones."""
        stems = ops.sort(ops.take(self.stem, ids, axis=0), axis=-1)
        is_repeated = ops.equal(stems[..., 1:], stems[..., :-1])
        later_stems = ops.where(is_repeated, 0, stems[..., 1:])
        return ops.concatenate([stems[..., :1], later_stems], axis=-1)

    def _weights(self, ids):
        """The words' weights, float32, 0 for padding and `unknown_id`."""
        is_word = (ids != 0) & (ids != self.unknown_id)
        idf = ops.take(ops.cast(self.idf, "float32"), ids, axis=0)
        return ops.where(is_word, ops.power(idf, self.power), 0.0)
