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
    """The similarity of the words of a context `c` and a response `r`, added to a model's logits.

        logit = gain cosine(c, r) - echo_gain (max_t cosine(turn_t, r))^ECHO_POWER

        cosine(c, r) = shared(c, r) / sqrt(norm(c) norm(r))
        shared(c, r) = the sum of v(c_w)^2 over all pairs of a word c_w and an equal word r_x
        norm(c)      = sum_w v(c_w)^2
        v(w)         = idf(w)^power

    The first term is the cosine of TF-IDF vectors. A response that repeats a turn shares all its
    words with the context, so this term alone would rank it first. The second term, the echo,
    lowers such a response, whose cosine with one turn is near 1, and hardly any other.

    A word outside the vocabulary matches itself if it has a hashed id
    (`data.vocabulary.Vocabulary`): file names, versions and error messages decide which answer
    belongs to a question, and word vectors do not contain them. In training the logit is 0, because
    a network that is trained with the cosine learns less by itself (docs/experiments.md).

    In the echo each word of a text counts once. With `stems` words are replaced by their stems,
    `installed` by `install`, and in both terms each stem counts once.

    Args:
        words: V; word ids are 1 to V, and 0 is padding.
        unknown_id: The shared id of unknown words, which matches nothing; 0 if there is no such id.
        gain: Factor of the first term.
        power: Power of `idf`; the higher it is, the more rare words count.
        stems: Replace each id by its entry of the weight `stem`. A fresh entry is the id itself.
        echo_gain: Factor of the echo; 0: no echo.

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
        self.idf = self.add_weight((self.words + 1,), "ones", name="idf", trainable=False)
        if self.stems:
            self.stem = self.add_weight(
                (self.words + 1,),
                lambda shape, dtype: ops.arange(shape[0], dtype=dtype),
                name="stem",
                dtype="int32",
                trainable=False,
            )

    def call(self, context, responses, training=False):
        if training:
            return ops.zeros(ops.shape(responses)[:2], "float32")
        if self.stems:
            context = ops.take(self.stem, context, axis=0)
            responses = ops.take(self.stem, responses, axis=0)

        # The whole context and each response. The context becomes one long turn.
        context_B1W = ops.reshape(context, (ops.shape(context)[0], 1, -1))
        if self.stems:
            cosines_BN1 = self._cosines(_distinct(context_B1W), _distinct(responses))
        else:
            cosines_BN1 = self._cosines(context_B1W, responses)
        logits_BN = self.gain * cosines_BN1[:, :, 0]

        # Each turn and each response
        if self.echo_gain:
            cosines_BNT = self._cosines(_distinct(context), _distinct(responses))
            echo_BN = ops.max(cosines_BNT, axis=2) ** ECHO_POWER
            logits_BN = logits_BN - self.echo_gain * echo_BN
        return logits_BN

    def _cosines(self, turns_BTK, responses_BNX):
        """The cosine of each turn and each response, `(B, N, T)`."""
        t_BTK = self._weights(turns_BTK)
        r_BNX = self._weights(responses_BNX)
        norm_BT = ops.sum(t_BTK**2, axis=2)
        norm_BN = ops.sum(r_BNX**2, axis=2)
        norms_BNT = norm_BT[:, None, :] * norm_BN[:, :, None]

        # Equal words have the same weight, so that of the turn's word is squared.
        is_same_BNTKX = ops.equal(
            turns_BTK[:, None, :, :, None], responses_BNX[:, :, None, None, :]
        )
        square_B1TK1 = ops.square(t_BTK)[:, None, :, :, None]
        shared_BNT = ops.sum(ops.where(is_same_BNTKX, square_B1TK1, 0.0), axis=(3, 4))
        return shared_BNT / ops.sqrt(ops.maximum(norms_BNT, 1e-6))

    def _weights(self, ids):
        """`v`, the words' weights, float32, 0 for padding and `unknown_id`."""
        is_word = (ids != 0) & (ids != self.unknown_id)
        idf = ops.take(ops.cast(self.idf, "float32"), ids, axis=0)
        return ops.where(is_word, ops.power(idf, self.power), 0.0)


def _distinct(ids):
    """Each id once, sorted, along the last axis: `[5, 3, 5] -> [3, 5, 0]`, 0 = padding."""
    sorted_ids = ops.sort(ids, axis=-1)
    is_repeated = ops.equal(sorted_ids[..., 1:], sorted_ids[..., :-1])
    later_ids = ops.where(is_repeated, 0, sorted_ids[..., 1:])
    return ops.concatenate([sorted_ids[..., :1], later_ids], axis=-1)
