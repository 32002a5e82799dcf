"""The cross-attention match of DAM (Zhou et al. 2018, section 3.5).

Shape suffixes:
    ... leading axes (batch, candidates, turns)   K utterance words   J response words   D features
"""

import keras
from keras import ops

from colloquy.layers.attentive_module import AttentiveModule, row_products


@keras.saving.register_keras_serializable("colloquy")
class CrossMatch(keras.layers.Layer):
    """Matches an utterance and a response after each has attended to the other.

        U~ = AttentiveModule(U, R, R)
        R~ = AttentiveModule(R, U, U)
        M_cross = U~ R~^T

    The two modules have their own weights. Both attention scores are the same product, `U R^T` and
    its transpose, which the caller has already, since it is DAM's self-attention match.

    Args:
        masking, scalar_bias: See `layers.attentive_module.AttentiveModule`.

    Call arguments, with leading axes that broadcast against each other:
        utterance: `U`, float `(..., K, D)`.
        response: `R`, float `(..., J, D)`.
        scores: `U R^T`, float `(..., K, J)`; `None`: it is computed.
        utterance_mask: Boolean `(..., K)`, `True` = real.
        response_mask: Boolean `(..., J)`.

    Returns:
        `M_cross`, float `(..., K, J)`; exact masks make it zero where either word is padding.
    """

    def __init__(self, masking="exact", scalar_bias=False, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        settings = {"masking": masking, "scalar_bias": scalar_bias, "dtype": self.dtype_policy}
        self.utterance_attends = AttentiveModule(**settings, name="utterance_attends")
        self.response_attends = AttentiveModule(**settings, name="response_attends")

    def build(self, utterance_shape, response_shape, **_):
        self.utterance_attends.build(utterance_shape)
        self.response_attends.build(response_shape)

    def call(self, utterance, response, scores=None, utterance_mask=None, response_mask=None):
        U, R = utterance, response
        S = row_products(U, R) if scores is None else scores
        U_attended = self.utterance_attends(
            U, R, R, query_mask=utterance_mask, key_mask=response_mask, scores=S
        )
        S_transposed = ops.swapaxes(S, -1, -2)
        R_attended = self.response_attends(
            R, U, U, query_mask=response_mask, key_mask=utterance_mask, scores=S_transposed
        )
        return row_products(U_attended, R_attended)

    def compute_mask(self, inputs, mask=None):
        # A cell belongs to a word of each sentence, so the mask of neither sentence is passed on.
        return None

    def compute_output_shape(self, utterance_shape, response_shape, **_):
        U, R = keras.KerasTensor(utterance_shape), keras.KerasTensor(response_shape)
        return row_products(U, R).shape
