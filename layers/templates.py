"""Templates: candidates with types in place of entities.

Shape suffixes:
    B dialogs   T turns   M sentences   C candidates   L templates   X turns of all dialogs
"""

import keras
from keras import ops

from colloquy.layers.dialog_history import history_mask
from colloquy.layers.dialog_state import BOT


def last_template(speakers, turns, responses, template_of_candidate):
    """Finds the template of the bot's last sentence before each turn.

    Args:
        speakers: Int `(B, M)`: 0 padding, 1 user, 2 bot, 3 fact.
        turns: Index of each turn's sentence, int `(B, T)`.
        responses: The candidate that a sentence is, from 1; 0 or less: none; int `(B, M)`.
        template_of_candidate: The template of each candidate, int `(C,)`.

    Returns:
        Templates counted from 1, int `(B, T)`. 0: there is no such sentence, or it is no candidate.

    >>> speakers, responses = np.array([[1, 2, 1]]), np.array([[0, 5, 0]])
    >>> found = last_template(speakers, np.array([[0, 2]]), responses, np.array([0, 1, 1, 0, 2]))
    >>> found.numpy().tolist()
    [[0, 3]]
    """
    place_BM = ops.cumsum(ops.ones_like(speakers), axis=1)
    is_bot_BM = ops.equal(speakers, BOT)
    is_bot_BTM = history_mask(speakers, turns) & is_bot_BM[:, None]
    last_BT = ops.max(ops.where(is_bot_BTM, place_BM[:, None], 0), axis=2)
    response_BT = ops.take_along_axis(responses, ops.maximum(last_BT - 1, 0), axis=1)
    template_BT = ops.take(template_of_candidate, ops.maximum(response_BT - 1, 0)) + 1
    return ops.where((last_BT > 0) & (response_BT > 0), template_BT, 0)


@keras.saving.register_keras_serializable("colloquy")
class TemplateCandidates(keras.layers.Layer):
    """The logits of candidates from those of their templates and from a gain within a template.

        logit(c) = log p(template of c) + gain(c) - log(sum of exp(gain) over its template)

    So their softmax is the probability of the template times that of the candidate within it.

    Call arguments:
        template_logits: Float `(B, T, L)`.
        gain: Float `(B, T, C)`.
        template_of_candidate: The template of each candidate, int `(C,)`.

    Returns:
        Float32 `(B, T, C)`.

    Not from a paper: an extension, after the action templates of Williams, Asadi and Zweig (2017).
    """

    def call(self, template_logits, gain, template_of_candidate):
        log_p_BTL = ops.log_softmax(ops.cast(template_logits, "float32"), axis=2)
        B, T, L = ops.shape(log_p_BTL)
        C = gain.shape[2]
        gain_BTC = ops.cast(gain, "float32")
        gain_CX = ops.transpose(ops.reshape(gain_BTC, (B * T, C)))

        # The highest gain of a template is subtracted, so that no exponential overflows.
        highest_LX = ops.segment_max(ops.stop_gradient(gain_CX), template_of_candidate, L)
        highest_CX = ops.take(highest_LX, template_of_candidate, axis=0)
        sum_LX = ops.segment_sum(ops.exp(gain_CX - highest_CX), template_of_candidate, L)
        log_sum_CX = highest_CX + ops.log(ops.take(sum_LX, template_of_candidate, axis=0))
        share_BTC = ops.reshape(ops.transpose(gain_CX - log_sum_CX), (B, T, C))
        return ops.take(log_p_BTL, template_of_candidate, axis=2) + share_BTC
