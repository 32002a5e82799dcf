"""Layer normalisation (Ba, Kiros and Hinton 2016) in fewer passes over memory.

Shape suffixes:  ... leading axes   R rows   D features
"""

import keras
from keras import ops

from layers.gradients import with_gradient


@keras.saving.register_keras_serializable("colloquy")
class LayerNorm(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis, with a gradient written by hand (`normalize`).

    All is computed in float32, in float64 where `x` is.

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
        wide = "float64" if keras.backend.standardize_dtype(x.dtype) == "float64" else "float32"
        x_RD = ops.reshape(ops.cast(x, wide), (-1, x.shape[-1]))
        y_RD = normalize(x_RD, ops.cast(self.gamma, wide), ops.cast(self.beta, wide), self.epsilon)
        return ops.cast(ops.reshape(y_RD, ops.shape(x)), x.dtype)


def normalize(x_RD, gamma_D, beta_D, epsilon):
    """`y = gamma h + beta` with `h = (x - mean(x)) / sqrt(var(x) + epsilon)`, means over the D features, and back

        dx = (gamma g - mean(gamma g) - h mean(gamma g h)) / sqrt(var(x) + epsilon)
        dgamma = sum(g h),    dbeta = sum(g)

    where `g` is the gradient of `y`. What autodiff makes of the forward pass writes some twenty arrays of the size of
    `x`, this four; where nothing fuses them, as on TensorFlow's CPU, that is most of the layer's time. Sums are matrix
    products, which read an array and write none of its size.
    """

    def compute(x_RD, gamma_D, beta_D):
        c_RD = x_RD - ops.mean(x_RD, axis=-1, keepdims=True)
        scale_R1 = ops.rsqrt(ops.mean(ops.square(c_RD), axis=-1, keepdims=True) + epsilon)

        def gradient(g_RD):
            mean_D1, ones_1R = gamma_D[:, None] / gamma_D.shape[0], ops.ones_like(scale_R1[:, 0])[None]
            gc_RD = g_RD * c_RD
            along_h_R1 = ops.matmul(gc_RD, mean_D1) * ops.square(scale_R1)
            dx_RD = (g_RD * gamma_D - ops.matmul(g_RD, mean_D1) - c_RD * along_h_R1) * scale_R1
            return dx_RD, ops.matmul(scale_R1[:, 0][None], gc_RD)[0], ops.matmul(ones_1R, g_RD)[0]

        return c_RD * scale_R1 * gamma_D + beta_D, gradient

    return with_gradient(compute)(x_RD, gamma_D, beta_D)
