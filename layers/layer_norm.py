"""Layer normalisation (Ba, Kiros and Hinton 2016) in fewer passes over memory.

Shape suffixes:  ... leading axes   R rows   D features
"""

import keras
from keras import ops

from colloquy.layers.gradients import with_gradient
from colloquy.layers.tensorflow_kernels import has_kernels, normalize_rows


@keras.saving.register_keras_serializable("colloquy")
class LayerNorm(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis, with the gradient of `normalize`.

    From float `(..., D)` to the same shape; computed in float32, or in float64 for float64.

    >>> layer = LayerNorm(epsilon=0.0)
    >>> [round(float(y), 3) for y in layer(np.array([[1.0, 2.0, 3.0]], "float32"))[0]]
    [-1.225, 0.0, 1.225]
    """

    def call(self, x):
        x_RD = ops.reshape(x, (-1, x.shape[-1]))
        y_RD = normalize(x_RD, ops.copy(self.gamma), ops.copy(self.beta), self.epsilon)
        return ops.cast(ops.reshape(y_RD, ops.shape(x)), self.compute_dtype)


def normalize(x_RD, gamma_D, beta_D, epsilon):
    """`y = gamma h + beta` with `h = (x - mean(x)) / sqrt(var(x) + epsilon)`, means over D.

    Its gradient, where `g` is the gradient of `y`:

        dx = (gamma g - mean(gamma g) - h mean(gamma g h)) / sqrt(var(x) + epsilon)
        dgamma = sum(g h),    dbeta = sum(g)

    Autodiff's gradient writes some twenty arrays of the size of `x`, this four; where nothing fuses
    them, as on TensorFlow's CPU, that is most of the layer's time. There the forward pass is one
    operation. Sums are matrix products, which read an array and write none of its size.
    """
    dtype = keras.backend.standardize_dtype(x_RD.dtype)
    wide = "float64" if dtype == "float64" else "float32"

    def center(x_RD):
        """`x - mean(x)` and `1 / sqrt(var(x) + epsilon)`."""
        x_RD = ops.cast(x_RD, wide)
        c_RD = x_RD - ops.mean(x_RD, axis=-1, keepdims=True)
        variance_R1 = ops.mean(ops.square(c_RD), axis=-1, keepdims=True)
        return c_RD, ops.rsqrt(variance_R1 + epsilon)

    def compute(x_RD, gamma_D, beta_D):
        weight_dtype = gamma_D.dtype
        gamma_wide_D = ops.cast(gamma_D, wide)
        centered = None
        if has_kernels(dtype):
            y_RD = normalize_rows(x_RD, gamma_D, beta_D, epsilon)
        else:
            centered = center(x_RD)
            c_RD, scale_R1 = centered
            y_RD = ops.cast(c_RD * scale_R1 * gamma_wide_D + ops.cast(beta_D, wide), dtype)

        def gradient(g_RD):
            g_RD = ops.cast(g_RD, wide)
            c_RD, scale_R1 = centered or center(x_RD)
            gc_RD = g_RD * c_RD

            # A product with `mean_D1` is the mean of gamma times a row.
            mean_D1 = gamma_wide_D[:, None] / gamma_D.shape[0]
            along_h_R1 = ops.matmul(gc_RD, mean_D1) * ops.square(scale_R1)
            dx_RD = g_RD * gamma_wide_D - ops.matmul(g_RD, mean_D1) - c_RD * along_h_R1
            dx_RD = dx_RD * scale_R1

            scale_1R = scale_R1[:, 0][None]
            dgamma_D = ops.matmul(scale_1R, gc_RD)[0]
            dbeta_D = ops.matmul(ops.ones_like(scale_1R), g_RD)[0]
            return (
                ops.cast(dx_RD, dtype),
                ops.cast(dgamma_D, weight_dtype),
                ops.cast(dbeta_D, weight_dtype),
            )

        return y_RD, gradient

    return with_gradient(compute)(x_RD, gamma_D, beta_D)
