"""Similarity of a context and a response by their words alone: an extension, not in DAM's paper.

Shape suffixes:
    B batch   N candidates   T turns   K words of a turn   W words of a context
    X words of a response   V words of the vocabulary
"""

import keras
from keras import ops

ECHO_POWER = 8
"""High: the cosine of a repeated turn is near 1, that of other responses mostly below .6."""


@keras.saving.register_keras_serializable("colloquy")
class LexicalMatch(keras.layers.Layer):
    """The cosine of TF-IDF vectors times a gain, added to a model's logits outside training.

        logit = gain sum_{w, x: c_w = r_x} v(c_w)^2 / sqrt(sum_w v(c_w)^2  sum_x v(r_x)^2)
        v(w)  = idf(w)^power

    A response that repeats a turn shares all its words with the context, so the cosine ranks it
    first. `echo_gain` subtracts a term that only such a response has:

        logit = logit - echo_gain (max_t cosine(turn_t, response))^ECHO_POWER

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
        echo_gain: Of the second equation; 0: no such term. Turns and responses are compared as sets
            of words, or of stems.

    Call arguments:
        context: Word ids of turns `(B, T, K)`, int32, 0 = padding.
        responses: Word ids `(B, N, X)`, int32.
        training: Boolean.

    Returns:
        Logits, float32 `(B, N)`.
    """

    def __init__(
        self, words, unknown_id=0, gain=16.0, power=1.0, stems=False, echo_gain=0.0, **kwargs
    ):
        super().__init__(**kwargs)
        self.words = words
        self.unknown_id = unknown_id
        self.gain = gain
        self.power = power
        self.stems = stems
        self.echo_gain = echo_gain

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
        whole_B1W = ops.reshape(context, (ops.shape(context)[0], 1, -1))
        responses_BNX = responses
        if self.stems:
            whole_B1W = self._distinct(whole_B1W)
            responses_BNX = self._distinct(responses)
        logits_BN = self.gain * self._cosines(whole_B1W, responses_BNX)[:, :, 0]
        if self.echo_gain:
            echoes_BNT = self._cosines(self._distinct(context), self._distinct(responses))
            echo_BN = ops.max(echoes_BNT, axis=2)
            logits_BN = logits_BN - self.echo_gain * echo_BN**ECHO_POWER
        return logits_BN

    def _cosines(self, turns_BTK, responses_BNX):
        """The cosine of the weights of each turn and each response, `(B, N, T)`."""
        t_BTK = self._weights(turns_BTK)
        r_BNX = self._weights(responses_BNX)
        is_same_BNTKX = ops.equal(
            turns_BTK[:, None, :, :, None], responses_BNX[:, :, None, None, :]
        )
        square_B1TK1 = ops.square(t_BTK)[:, None, :, :, None]
        shared_BNT = ops.sum(ops.where(is_same_BNTKX, square_B1TK1, 0.0), axis=(3, 4))
        t_squares_BT = ops.sum(t_BTK**2, axis=2)
        r_squares_BN = ops.sum(r_BNX**2, axis=2)
        squares_BNT = t_squares_BT[:, None, :] * r_squares_BN[:, :, None]
        return shared_BNT / ops.sqrt(ops.maximum(squares_BNT, 1e-6))

    def _distinct(self, ids):
        """The words of each text, or their stems, sorted, with 0 in place of repeated ones."""
        words = ops.take(self.stem, ids, axis=0) if self.stems else ids
        words = ops.sort(words, axis=-1)
        is_repeated = ops.equal(words[..., 1:], words[..., :-1])
        later_words = ops.where(is_repeated, 0, words[..., 1:])
        return ops.concatenate([words[..., :1], later_words], axis=-1)

    def _weights(self, ids):
        """The words' weights, float32, 0 for padding and `unknown_id`."""
        is_word = (ids != 0) & (ids != self.unknown_id)
        idf = ops.take(ops.cast(self.idf, "float32"), ids, axis=0)
        return ops.where(is_word, ops.power(idf, self.power), 0.0)
