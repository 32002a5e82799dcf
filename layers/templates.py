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
    >>> last_BT = last_template(speakers, np.array([[0, 2]]), responses, np.array([0, 1, 1, 0, 2]))
    >>> last_BT.numpy().tolist()
    [[0, 3]]
    """
    place_BM = ops.cumsum(ops.ones_like(speakers), axis=1)
    is_bot_BM = ops.equal(speakers, BOT)
    is_bot_BTM = history_mask(speakers, turns) & is_bot_BM[:, None]
    last_BT = ops.max(ops.where(is_bot_BTM, place_BM[:, None], 0), axis=2)

    index_BT = ops.maximum(last_BT - 1, 0)
    response_BT = ops.take_along_axis(responses, index_BT, axis=1)
    is_response_BT = (last_BT > 0) & (response_BT > 0)
    candidate_BT = ops.maximum(response_BT - 1, 0)
    template_BT = ops.take(template_of_candidate, candidate_BT)
    return ops.where(is_response_BT, 1 + template_BT, 0)


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
        B, T, L = ops.shape(template_logits)
        C = gain.shape[2]
        logits_BTL = ops.cast(template_logits, "float32")
        log_p_BTL = ops.log_softmax(logits_BTL, axis=2)
        log_p_BTC = ops.take(log_p_BTL, template_of_candidate, axis=2)
        gain_BTC = ops.cast(gain, "float32")
        gain_XC = ops.reshape(gain_BTC, (B * T, C))
        gain_CX = ops.transpose(gain_XC)

        # The highest gain of a template is subtracted, so that no exponential overflows.
        fixed_CX = ops.stop_gradient(gain_CX)
        highest_LX = ops.segment_max(fixed_CX, template_of_candidate, L)
        highest_CX = ops.take(highest_LX, template_of_candidate, axis=0)
        exp_CX = ops.exp(gain_CX - highest_CX)
        sum_LX = ops.segment_sum(exp_CX, template_of_candidate, L)
        sum_CX = ops.take(sum_LX, template_of_candidate, axis=0)
        log_sum_CX = highest_CX + ops.log(sum_CX)
        share_XC = ops.transpose(gain_CX - log_sum_CX)
        return log_p_BTC + ops.reshape(share_XC, (B, T, C))
