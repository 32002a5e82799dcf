"""Unpadding: a function of each row of a padded array, applied to the unpadded rows alone.

Shape suffixes:  ... leading axes   P all rows   R unpadded rows   D features
"""

import keras
from keras import ops

from colloquy.layers.gradients import with_gradient
from colloquy.layers.masking import zero_padding

MULTIPLE = 64
"""The number of rows R is rounded up to a multiple of this.

On a CPU, TensorFlow prepares its kernels for each number of rows, so few different ones should
occur.
"""


def apply_unpadded(function, x, mask):
    """Applies a function of single rows to the unpadded rows of `x`; padding becomes zero.

    The function gets these rows as one matrix, `(R, D)`. XLA cannot compile this, because their
    number depends on the data.

    Args:
        function: From float `(R, D)` to `(R, D)`.
        x: Float `(..., D)`.
        mask: Boolean, broadcasts against the leading axes of `x`; `True` = real.

    >>> x = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> mask = np.array([[True, False], [True, True]])
    >>> keras.ops.convert_to_numpy(apply_unpadded(lambda rows: -rows, x, mask)).ravel().tolist()
    [-1.0, 0.0, -3.0, -4.0]
    """
    rows = Unpadding(ops.broadcast_to(mask, ops.shape(x)[:-1]))
    return rows.repad(function(rows.unpad(x)))


class Unpadding:
    """Takes the unpadded rows out of a padded array, and puts them back.

    Three places with the mask [True, False, True], and R = 4:

        unpad: [a, b, c] -> [a, c, c, c]    takes the places [0, 2, 2, 2]
        repad: [p, q, r, s] -> [p, 0, q]    takes the rows [1, 0, 2] of [0, p, q, r, s]

    `unpad` fills the last rows with copies, which `repad` drops. Both only take rows, which is
    fast, and each is the gradient of the other. Autodiff's gradient would add rows up in a scatter,
    which takes TensorFlow's CPU eight times as long.

    Args:
        mask: Boolean `(...)`, `True` = real.
    """

    def __init__(self, mask):
        is_real_P = ops.cast(ops.reshape(mask, (-1,)), "int32")
        [real_places] = ops.nonzero(is_real_P)
        num_real = ops.size(real_places)
        row_R = ops.arange(num_real + (-num_real) % MULTIPLE)

        # In the example: [0, 2, 2, 2]; [1, 0, 2]; [True, True, False, False]
        self._place_R = ops.take(real_places, ops.minimum(row_R, num_real - 1))
        self._row_P = ops.cumsum(is_real_P) * is_real_P
        self._is_real_R1 = (row_R < num_real)[:, None]
        self._leading_axes = ops.shape(mask)

    def unpad(self, x):
        """From `(..., D)` to the unpadded rows in their order, `(R, D)`."""
        return with_gradient(lambda x: (self._unpad(x), self._repad))(x)

    def repad(self, x_RD):
        """From `(R, D)` to `(..., D)`, with zeros where the padding is."""

        def gradient(g):
            # The copies have no influence on the result.
            return zero_padding(self._unpad(g), self._is_real_R1)

        return with_gradient(lambda x_RD: (self._repad(x_RD), gradient))(x_RD)

    def _unpad(self, x):
        x_PD = ops.reshape(x, (-1, x.shape[-1]))
        return ops.take(x_PD, self._place_R, axis=0)

    def _repad(self, x_RD):
        zeros_and_rows = ops.pad(x_RD, [(1, 0), (0, 0)])
        x_PD = ops.take(zeros_and_rows, self._row_P, axis=0)
        return ops.reshape(x_PD, (*self._leading_axes, x_RD.shape[-1]))


@keras.saving.register_keras_serializable("colloquy")
class UnpadInTraining(keras.layers.Layer):
    """Keeps only the unpadded rows, `(R, D)`, in training on TensorFlow.

    Elsewhere, its input, float `(..., D)`, is unchanged.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.fast = keras.config.backend() == "tensorflow"
        self.supports_jit = not self.fast

    def call(self, x, mask, training=None):
        if training and self.fast:
            return Unpadding(mask).unpad(x)
        return x
