"""The attentive module of DAM (Zhou et al. 2018, section 3.3): attention and a feed-forward net, each with a residual.

Shape suffixes:  ... leading axes (batch, turns)   Q query words   K key words   D features
"""

import math

import keras
from keras import ops

from layers.dense import matrix_product
from layers.layer_norm import LayerNorm
from layers.masking import masked_softmax, release_softmax, zero_padding
from layers.packing import packing
from layers.row_products import add_bias, row_products, row_sums

MASKINGS = ("exact", "release")


@keras.saving.register_keras_serializable("colloquy")
class AttentiveModule(keras.layers.Layer):
    """Lets every word of a query attend to the words of another sentence.

        Att   = softmax(Q K^T / sqrt(D))
        x     = LayerNorm(Att V + Q)
        FFN(x) = max(0, x W1 + b1) W2 + b2
        output = LayerNorm(FFN(x) + x)

    One head, no projections: only `W1, b1, W2, b2` and the two normalisations are learnt.

    Args:
        masking: `"exact"`: padded keys get no weight. `"release"`: what the original release computes
            (`layers.masking.release_softmax`).
        scalar_bias: `True`: `b1` and `b2` are one number each, as in the release (its operations.py:183), not vectors.
        epsilon: Added to the variance in both normalisations; the release's 1e-6.

    Call arguments:
        query: `Q`, float `(..., Q, D)`.
        key: `K`, float `(..., K, D)`.
        value: `V`, float `(..., K, D)`.
        query_mask: Boolean `(..., Q)`, `True` = real.
        key_mask: Boolean `(..., K)`, `True` = real.
        scores: `Q K^T`, float `(..., Q, K)`, where the caller has it already (DAM needs the same product three times).

    The leading axes of all arguments broadcast against each other.

    Returns:
        Float `(..., Q, D)`. An exact row of a padded query, or in front of padding alone, is zero; without
        `query_mask` the latter is arbitrary but finite.

    On TensorFlow what follows the attention is computed for the real rows of an exact query alone, packed one behind
    the other (`packed`). How many these are depends on the data, which XLA cannot compile: `packed = False` before it.

    Raises:
        ValueError: on an unknown `masking`, or `masking="release"` without both masks.

    >>> layer = AttentiveModule()
    >>> layer(*[np.ones((2, 3, 7), "float32")] * 3).shape.as_list()
    [2, 3, 7]
    """

    def __init__(self, masking="exact", scalar_bias=False, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        if masking not in MASKINGS:
            raise ValueError(f"masking must be one of {MASKINGS}. Received: masking={masking!r}")
        self.masking = masking
        self.scalar_bias = scalar_bias
        self.epsilon = epsilon
        self.packed = keras.config.backend() == "tensorflow"

    @property
    def packed(self):
        """Whether padded rows of the query are left out; never under the release's masks, where they count."""
        return not self.supports_jit

    @packed.setter
    def packed(self, value):
        # Keras compiles a model by XLA only if all its layers have this.
        self.supports_jit = not (value and self.masking == "exact")

    def build(self, query_shape, key_shape=None, value_shape=None, **_):
        D = query_shape[-1]
        bias_shape = (1,) if self.scalar_bias else (D,)
        self.W1_DD = self.add_weight(name="W1", shape=(D, D), initializer="orthogonal")
        self.b1 = self.add_weight(name="b1", shape=bias_shape, initializer="zeros")
        self.W2_DD = self.add_weight(name="W2", shape=(D, D), initializer="orthogonal")
        self.b2 = self.add_weight(name="b2", shape=bias_shape, initializer="zeros")
        norm = {"epsilon": self.epsilon, "dtype": self.dtype_policy}
        self.attention_norm = LayerNorm(**norm, name="attention_norm")
        self.ffn_norm = LayerNorm(**norm, name="ffn_norm")
        self.attention_norm.build((None, D))
        self.ffn_norm.build((None, D))

    def call(self, query, key, value, query_mask=None, key_mask=None, scores=None):
        if scores is None:
            scores = row_products(query, key)
        scores = scores * (1.0 / math.sqrt(query.shape[-1]))
        if self.masking == "release":
            if query_mask is None or key_mask is None:
                raise ValueError(
                    "masking='release' needs query_mask and key_mask. "
                    f"Received: query_mask={query_mask}, key_mask={key_mask}"
                )
            att = release_softmax(scores, query_mask, key_mask)
        else:
            att = masked_softmax(scores, None if key_mask is None else key_mask[..., None, :], some_real=True)
        attended, axis = row_sums(att, value)

        def padded():
            x = attended if axis == -3 else ops.moveaxis(attended, -3, axis)
            return matrix_product(x + query, self._after_attention)

        if query_mask is None or self.masking == "release":
            return padded()
        # Of the masks alone, where they have all axes: then TensorFlow finds the rows once for all levels.
        mask = (
            query_mask if key_mask is None else ops.logical_and(query_mask, ops.any(key_mask, axis=-1, keepdims=True))
        )
        if not self.packed:
            return zero_padding(padded(), mask[..., None])
        if tuple(mask.shape) != tuple(att.shape[:-1]):
            mask = ops.broadcast_to(mask, ops.shape(att)[:-1])
        pack_sum, unpack = packing(mask, query_mask, multiple=64, axis=axis + 1)
        return unpack(self._after_attention(pack_sum(attended, query)))

    def _after_attention(self, x):
        x = self.attention_norm(x)
        b1, b2 = ops.copy(self.b1), ops.copy(self.b2)
        ffn = ops.relu(add_bias(ops.matmul(x, self.W1_DD), b1))
        return self.ffn_norm(add_bias(ops.matmul(ffn, self.W2_DD), b2) + x)

    def compute_output_shape(self, query_shape, key_shape, value_shape=None, **_):
        rank = max(len(query_shape), len(key_shape)) - 2
        query_lead = (1,) * (rank - len(query_shape) + 2) + tuple(query_shape[:-2])
        key_lead = (1,) * (rank - len(key_shape) + 2) + tuple(key_shape[:-2])
        lead = (k if q == 1 else q for q, k in zip(query_lead, key_lead, strict=True))
        return (*lead, *query_shape[-2:])

    def get_config(self):
        return {
            **super().get_config(),
            "masking": self.masking,
            "scalar_bias": self.scalar_bias,
            "epsilon": self.epsilon,
        }
