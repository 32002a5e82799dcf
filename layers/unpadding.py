"""Unpadding: a function of each row of a padded array, applied to the unpadded rows alone.

Shape suffixes:  ... leading axes   P all rows   R unpadded rows   D features
"""

import keras
from keras import ops

from colloquy.layers.gradients import with_gradient
from colloquy.layers.masking import zero_padding


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
    if tuple(mask.shape) != tuple(x.shape[:-1]):
        mask = ops.broadcast_to(mask, ops.shape(x)[:-1])
    rows = Unpadding(mask)
    return rows.repad(function(rows.unpad(x)))


class Unpadding:
    """Takes the unpadded rows out of a padded array, and puts them back.

    Both are gathers, each the gradient of the other. Autodiff's gradient of a gather, a scatter,
    takes TensorFlow's CPU eight times as long.

    Args:
        mask: Boolean `(...)`, `True` = real.
        multiple: The number of rows R is rounded up to a multiple of this. The rows after the last
            real one are copies of it; `repad` drops them. On a CPU, TensorFlow prepares its kernels
            for each number of rows, so few different ones should occur.

    >>> rows = Unpadding(np.array([[True, False], [False, True]]), multiple=1)
    >>> x = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> keras.ops.convert_to_numpy(rows.unpad(x)).ravel().tolist()
    [1.0, 4.0]
    >>> keras.ops.convert_to_numpy(rows.repad(np.array([[1.0], [4.0]]))).ravel().tolist()
    [1.0, 0.0, 0.0, 4.0]
    """

    def __init__(self, mask, multiple=64):
        is_real_P = ops.cast(ops.reshape(mask, (-1,)), "int32")
        [real_places] = ops.nonzero(is_real_P)
        num_real = ops.size(real_places)
        num_copies = (-num_real) % multiple
        row_R = ops.arange(num_real + num_copies)

        self._leading_axes = ops.shape(mask)
        # For the mask [T, F, T] and R = 4: [0, 2, 2, 2].
        self._place_of_row_R = ops.take(real_places, ops.minimum(row_R, num_real - 1))
        # [True, True, False, False]
        self._is_real_R1 = (row_R < num_real)[:, None]
        # Counted from 1, because `repad` puts a row of zeros before them: [1, 0, 2].
        self._row_of_place_P = ops.cumsum(is_real_P) * is_real_P

    def unpad(self, x):
        """From `(..., D)` to the unpadded rows in their order, `(R, D)`."""

        def compute(x):
            gradient = self._spread
            return self._gather(x), gradient

        return with_gradient(compute)(x)

    def repad(self, x_RD):
        """From `(R, D)` to `(..., D)`, with zeros where the padding is."""

        def gradient(g):
            # The copies at the end had no influence on the result.
            return zero_padding(self._gather(g), self._is_real_R1)

        def compute(x_RD):
            return self._spread(x_RD), gradient

        return with_gradient(compute)(x_RD)

    def _gather(self, x):
        x_PD = ops.reshape(x, (-1, x.shape[-1]))
        return ops.take(x_PD, self._place_of_row_R, axis=0)

    def _spread(self, x_RD):
        D = x_RD.shape[-1]
        zeros_1D = ops.zeros((1, D), dtype=x_RD.dtype)
        zeros_and_rows = ops.concatenate([zeros_1D, x_RD], axis=0)
        x_PD = ops.take(zeros_and_rows, self._row_of_place_P, axis=0)
        return ops.reshape(x_PD, (*self._leading_axes, D))


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
