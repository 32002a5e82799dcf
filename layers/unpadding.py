"""Unpadding: a function of each row of a padded array, applied to the unpadded rows alone.

Shape suffixes:  ... leading axes   P all rows   R unpadded rows   D features
"""

import keras
from keras import ops

from colloquy.layers.gradients import with_gradient
from colloquy.layers.masking import zero_padding


def apply_padded(function, x, mask):
    """Applies a function of single rows to `x`, float `(..., D)`, and zeroes the padded rows."""
    return zero_padding(function(x), mask[..., None])


def apply_unpadded(function, x, mask):
    """`apply_padded` without computing padding: the function gets the unpadded rows as one matrix.

    The number of real rows depends on the data, which XLA cannot compile. It is rounded up to a
    multiple of 64 by rows whose results are dropped: on a CPU TensorFlow prepares its kernels for
    each size, so few should occur.

    >>> x = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> mask = np.array([[True, False], [True, True]])
    >>> keras.ops.convert_to_numpy(apply_unpadded(lambda rows: -rows, x, mask)).ravel().tolist()
    [-1.0, 0.0, -3.0, -4.0]
    """
    if tuple(mask.shape) != tuple(x.shape[:-1]):
        mask = ops.broadcast_to(mask, ops.shape(x)[:-1])
    unpad, repad = unpadding(mask)
    return repad(function(unpad(x)))


def apply_padding_last(function, x, mask):
    """`function(x, mask)` for a function of texts whose padding comes after their words.

    Elsewhere padding may be anywhere: the function gets the real words first, in their order, and
    its results return to the places of the words. Nothing is moved where padding is last in the
    whole batch.

    Args:
        function: From float `(B, T, D)` and boolean `(B, T)` to float `(B, T, H)`.
        x: Float `(B, T, D)`.
        mask: Boolean `(B, T)`, `True` = real.

    >>> x = np.array([[[0.0], [1.0], [2.0]]])
    >>> mask = np.array([[False, True, True]])
    >>> y = apply_padding_last(lambda x, mask: ops.cumsum(x, axis=1) + 7, x, mask)
    >>> keras.ops.convert_to_numpy(y).ravel().tolist()
    [10.0, 8.0, 10.0]
    """
    T = ops.shape(mask)[1]
    place_T = ops.arange(T)
    is_moved = ops.any(mask[:, 1:] & ~mask[:, :-1])
    length_B1 = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)

    def words_first():
        """The place of each word, then of each padding, int `(B, T)`."""
        return ops.argsort(ops.where(mask, place_T, place_T + T), axis=1)

    def move(array, index_BT):
        return ops.take_along_axis(array, index_BT[..., None], axis=1)

    moved = ops.cond(is_moved, lambda: move(x, words_first()), lambda: x)
    y = function(moved, place_T < length_B1)
    return ops.cond(is_moved, lambda: move(y, ops.argsort(words_first(), axis=1)), lambda: y)


def unpadding(mask, multiple=64):
    """`unpad` and `repad` between a padded array and its unpadded rows.

    Both are gathers, each the gradient of the other. Autodiff's gradient of a gather, a scatter,
    takes TensorFlow's CPU eight times as long.

    Args:
        mask: Boolean `(...)`, `True` = real.
        multiple: R is rounded up to it, by copies of the last real row.

    Returns:
        Two functions. `unpad` takes `(..., D)` to `(R, D)`, the unpadded rows in their order.
        `repad` takes `(R, D)` to `(..., D)`, zeros where the padding is.

    >>> unpad, repad = unpadding(np.array([[True, False], [False, True]]), multiple=1)
    >>> x = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> keras.ops.convert_to_numpy(unpad(x)).ravel().tolist()
    [1.0, 4.0]
    >>> keras.ops.convert_to_numpy(repad(np.array([[1.0], [4.0]]))).ravel().tolist()
    [1.0, 0.0, 0.0, 4.0]
    """
    is_real_P = ops.cast(ops.reshape(mask, (-1,)), "int32")
    [real_rows] = ops.nonzero(is_real_P)
    num_real = ops.size(real_rows)

    # The rows after the last real one are copies of it.
    index_R = ops.arange(num_real + -num_real % multiple)
    row_R = ops.take(real_rows, ops.minimum(index_R, num_real - 1))
    is_real_R1 = (index_R < num_real)[:, None]

    # The place of each row in the matrix, from 1; 0: padding.
    place_P = ops.cumsum(is_real_P) * is_real_P

    def gather(x):
        rows_PD = ops.reshape(x, (-1, x.shape[-1]))
        return ops.take(rows_PD, row_R, axis=0)

    def spread(x_RD):
        D = x_RD.shape[-1]
        zeros_1D = ops.zeros((1, D), dtype=x_RD.dtype)
        with_zeros = ops.concatenate([zeros_1D, x_RD], axis=0)
        x_PD = ops.take(with_zeros, place_P, axis=0)
        return ops.reshape(x_PD, (*ops.shape(mask), D))

    def gradient_of_spread(g):
        return zero_padding(gather(g), is_real_R1)

    unpad = with_gradient(lambda x: (gather(x), spread))
    repad = with_gradient(lambda x: (spread(x), gradient_of_spread))
    return unpad, repad


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
        if not (training and self.fast):
            return x
        unpad, _ = unpadding(mask)
        return unpad(x)
