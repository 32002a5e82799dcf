"""The attentive module of DAM (Zhou et al. 2018, section 3.3).

Attention and a feed-forward net, each with a residual.

Shape suffixes:  ... leading axes (batch, turns)   Q query words   K key words   D features
"""

import math

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.gradients import add_bias
from colloquy.layers.layer_norm import LayerNorm
from colloquy.layers.masking import masked_softmax, release_softmax, zero_padding
from colloquy.layers.unpadding import apply_unpadded

MASKINGS = ("exact", "release")


@keras.saving.register_keras_serializable("colloquy")
class AttentiveModule(keras.layers.Layer):
    """Lets every word of a query attend to the words of another sentence.

        Att    = softmax(Q K^T / sqrt(D))
        V_att  = Att V
        x      = LayerNorm(V_att + Q)
        FFN(x) = max(0, x W1 + b1) W2 + b2
        output = LayerNorm(FFN(x) + x)

    One head, no projections: only `W1, b1, W2, b2` and the two normalisations are learnt.

    Args:
        masking: `"exact"`: padded keys get no weight, and padded queries become zero. `"release"`:
            as in the original release, `release_softmax`; it needs both masks.
        scalar_bias: `b1` and `b2` are one number each, as in the release (its operations.py:183),
            not vectors.
        epsilon: Added to the variance in both normalisations; the release's 1e-6.

    With exact masking on TensorFlow, the attribute `fast` is true: the steps after the attention
    are not computed for padded words, see `layers.unpadding`. XLA cannot compile this. Without
    `fast`, padded words are computed and then set to zero.

    Call arguments, with leading axes that broadcast against each other:
        query: `Q`, float `(..., Q, D)`.
        key: `K`, float `(..., K, D)`; by default the query.
        value: `V`, float `(..., K, D)`; by default the key.
        query_mask: Boolean `(..., Q)`, `True` = real. `None`: the implicit mask of `query`, if it
            has one; otherwise every word is real.
        key_mask: Likewise, `(..., K)`; if `key` is left out, that of the query.
        scores: `Q K^T`, float `(..., Q, K)`, if the caller has it already (DAM needs the same
            product three times).
        mask: The `query_mask` again: Keras passes the implicit mask under this name if `query` is
            the only argument.

    Returns:
        Float `(..., Q, D)`, with the implicit mask of `query`. With exact masking and a
        `query_mask`, the vector of a padded word is zero, and so is that of a word without a real
        key. Otherwise such vectors are arbitrary but finite.

    >>> AttentiveModule()(np.ones((2, 3, 7), "float32")).shape.as_list()
    [2, 3, 7]
    """

    def __init__(self, masking="exact", scalar_bias=False, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        check_choice("masking", masking, MASKINGS)
        self.supports_masking = True
        self.masking = masking
        self.scalar_bias = scalar_bias
        self.epsilon = epsilon
        self.fast = masking == "exact" and keras.config.backend() == "tensorflow"
        self.supports_jit = not self.fast

    def build(self, query_shape, *_):
        D = query_shape[-1]
        bias_shape = (1,) if self.scalar_bias else (D,)
        self.W1_DD = self.add_weight((D, D), "orthogonal", name="W1")
        self.b1 = self.add_weight(bias_shape, "zeros", name="b1")
        self.W2_DD = self.add_weight((D, D), "orthogonal", name="W2")
        self.b2 = self.add_weight(bias_shape, "zeros", name="b2")
        norm = {"epsilon": self.epsilon, "dtype": self.dtype_policy}
        self.attention_norm = LayerNorm(**norm, name="attention_norm")
        self.ffn_norm = LayerNorm(**norm, name="ffn_norm")
        self.attention_norm.build((None, D))
        self.ffn_norm.build((None, D))

    def call(
        self, query, key=None, value=None, query_mask=None, key_mask=None, scores=None, mask=None
    ):
        if query_mask is None:
            query_mask = mask
        if key is None:
            key = query
            key_mask = query_mask
        if value is None:
            value = key
        Att = self.attention(query, key, query_mask, key_mask, scores)
        x = ops.matmul(Att, value) + query
        if self.masking == "release" or query_mask is None:
            return self._feed_forward(x)
        return self._feed_forward_masked(x, query_mask, key_mask)

    def attention(self, query, key, query_mask=None, key_mask=None, scores=None):
        """`Att`, float `(..., Q, K)`, for the arguments of the call."""
        if scores is None:
            scores = row_products(query, key)
        logits = scores * (1.0 / math.sqrt(query.shape[-1]))
        if self.masking == "release":
            return release_softmax(logits, query_mask, key_mask)
        if key_mask is not None:
            key_mask = key_mask[..., None, :]
        # A word without a real key gets uniform weights here, because zeros would take a pass over
        # all weights. `_feed_forward_masked` sets its vector to zero.
        return masked_softmax(logits, key_mask, some_real=True)

    def _feed_forward(self, x):
        """The steps after the attention, from `V_att + Q`, float `(..., Q, D)` or `(R, D)`."""
        x = self.attention_norm(x)
        ffn = ops.relu(add_bias(ops.matmul(x, self.W1_DD), self.b1))
        ffn = add_bias(ops.matmul(ffn, self.W2_DD), self.b2)
        return self.ffn_norm(ffn + x)

    def _feed_forward_masked(self, x, query_mask, key_mask):
        """`_feed_forward`, with zeros for padded words and for words without a real key."""
        mask = query_mask
        if key_mask is not None:
            has_key = ops.any(key_mask, axis=-1, keepdims=True)
            mask = query_mask & has_key
        if self.fast:
            return apply_unpadded(self._feed_forward, x, mask)
        return zero_padding(self._feed_forward(x), mask[..., None])

    def compute_output_shape(self, query_shape, key_shape=None):
        if key_shape is None:
            key_shape = query_shape
        # The leading axes broadcast, which Keras works out.
        products = row_products(keras.KerasTensor(query_shape), keras.KerasTensor(key_shape))
        return (*products.shape[:-1], query_shape[-1])


def row_products(x, y):
    """`x y^T`, float `(..., Q, K)`: the dot products of the rows of `x` with those of `y`.

    Leading axes broadcast. Where they are equal, an einsum of named axes is used: its gradient
    transposes nothing in memory.

    >>> row_products(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])).numpy().tolist()
    [[11.0, 17.0]]
    """
    if tuple(x.shape[:-2]) == tuple(y.shape[:-2]):
        lead = "rstuvwxyz"[: len(x.shape) - 2]
        return ops.einsum(f"{lead}qd,{lead}kd->{lead}qk", x, y)
    return ops.matmul(x, ops.swapaxes(y, -1, -2))
