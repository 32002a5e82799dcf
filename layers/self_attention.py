"""Attention of each word of a text to the text's other words (Clark and Gardner 2018, section 4.1).

Shape suffixes:  B batch   T, K words   D features
"""

import keras
from keras import ops

from colloquy.layers.attention_flow import AttentionFlow
from colloquy.layers.gradients import Dense
from colloquy.layers.masking import mask_or_all_real, masked_softmax


@keras.saving.register_keras_serializable("colloquy")
class SelfAttention(keras.layers.Layer):
    """Adds to every word of a text what it attends to among the others.

        S_tk = w . [m_t; m_k; m_t * m_k]             (BiDAF's eq. 1, of a text with itself)
        a_t  = softmax_{k != t}(S_tk),    m~_t = sum_k a_tk m_k
        y_t  = m_t + W [m_t; m~_t; m_t * m~_t] + b

    Differs from the paper, which takes the positive part of the sum's second term: here `W` starts
    at zero and no part is taken, so the layer starts as the identity and can be put into a trained
    network.

    Call arguments:
        x: `m`, float `(B, T, D)`.
        mask: Boolean `(B, T)`, `True` = real. A word without others has `m~ = 0`. `None`: the
            implicit mask of `x`, or else every word is real.

    Returns:
        `y`, float `(B, T, D)`. The implicit mask of `x` is passed on.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.match = AttentionFlow(q2c=False, start="dot", name="match", dtype=self.dtype_policy)

    def build(self, x_shape, mask_shape=None):
        D = x_shape[-1]
        self.match.build(x_shape, x_shape)
        self.fusion = Dense(D, kernel_initializer="zeros", name="fusion", dtype=self.dtype_policy)
        self.fusion.build((None, None, 3 * D))

    def call(self, x, mask=None):
        mask = mask_or_all_real(mask, x)
        m_BTD = x
        word_T = ops.arange(ops.shape(x)[1], dtype="int32")
        is_other_BTK = (word_T[:, None] != word_T) & mask[:, None, :]
        S_BTK = self.match.similarity(m_BTD, m_BTD)
        a_BTK = masked_softmax(S_BTK, is_other_BTK)
        m_tilde_BTD = ops.matmul(a_BTK, m_BTD)
        fused = ops.concatenate([m_BTD, m_tilde_BTD, m_BTD * m_tilde_BTD], axis=-1)
        return m_BTD + self.fusion(fused)

    def compute_output_shape(self, x_shape, mask_shape=None):
        return x_shape
