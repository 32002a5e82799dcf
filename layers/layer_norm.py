"""Layer normalisation (Ba, Kiros and Hinton 2016) in fewer passes over memory.

Shape suffixes:  ... leading axes   D features
"""

import keras
from keras import ops

from layers.gradients import with_gradient
from layers.tensorflow_kernels import can_normalize_rows, normalize_rows


@keras.saving.register_keras_serializable("colloquy")
class LayerNorm(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis, with a gradient written by hand.

        h = (x - mean(x)) / sqrt(var(x) + epsilon),    y = gamma h + beta

    and backwards, with `g` the gradient of `y` and means over the D features:

        dx = (gamma g - mean(gamma g) - h mean(gamma g h)) / sqrt(var(x) + epsilon)
        dgamma = sum(g h),    dbeta = sum(g)

    What autodiff makes of the forward pass writes some twenty arrays of the size of `x`, this six; where nothing fuses
    them, as on TensorFlow's CPU, that is most of the layer's time. There the forward pass is one operation
    (`layers.tensorflow_kernels`). All is computed in float32, in float64 where `x` is.

    Args:
        As of `keras.layers.LayerNormalization`; `axis` stays the last.

    Call arguments:
        x: Float `(..., D)`.

    Returns:
        Of the shape and dtype of `x`.

    >>> layer = LayerNorm(epsilon=0.0)
    >>> [round(float(y), 3) for y in layer(np.array([[1.0, 2.0, 3.0]], "float32"))[0]]
    [-1.225, 0.0, 1.225]
    """

    def call(self, x):
        gamma, beta = ops.copy(self.gamma), ops.copy(self.beta)  # tensors: TensorFlow wants no variables there
        return _normalize(self.epsilon)(x, gamma, beta)


def _normalize(epsilon):
    @with_gradient
    def normalize(x, gamma, beta):
        shape, dtype, weight_dtype, D = ops.shape(x), x.dtype, gamma.dtype, x.shape[-1]
        wide = "float64" if keras.backend.standardize_dtype(dtype) == "float64" else "float32"
        x = ops.reshape(x, (-1, D))
        gamma, beta = ops.cast(gamma, wide), ops.cast(beta, wide)

        def center():
            """`x - mean(x)` and `1 / sqrt(var(x) + epsilon)`."""
            c = ops.cast(x, wide)
            c = c - ops.mean(c, axis=-1, keepdims=True)
            return c, ops.rsqrt(ops.mean(ops.square(c), axis=-1, keepdims=True) + epsilon)

        def gradient(g):
            g = ops.reshape(ops.cast(g, wide), (-1, D))
            c, scale = centered or center()
            gc = g * c
            # Sums as matrix products, which read an array and write none of its size.
            weights, ones = ops.reshape(gamma, (D, 1)) / D, ops.ones((1, ops.shape(g)[0]), dtype=wide)
            along_h = ops.matmul(gc, weights) * ops.square(scale)
            dx = (g * gamma - ops.matmul(g, weights) - c * along_h) * scale
            dgamma = ops.matmul(ops.reshape(scale, (1, -1)), gc)
            dbeta = ops.matmul(ones, g)
            return (
                ops.reshape(ops.cast(dx, dtype), shape),
                *(ops.cast(ops.reshape(sums, (D,)), weight_dtype) for sums in (dgamma, dbeta)),
            )

        if can_normalize_rows(dtype):
            y, centered = normalize_rows(x, gamma, beta, epsilon), None
        else:
            c, scale = centered = center()
            y = ops.cast(c * scale * gamma + beta, dtype)
        return ops.reshape(y, shape), gradient

    return normalize
