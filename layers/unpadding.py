"""Unpadding: a function of each row of a padded array, applied to the unpadded rows alone.

Shape suffixes:  ... leading axes   P all rows   R unpadded rows   D features
"""

import keras
from keras import ops

from colloquy.layers.gradients import with_gradient
from colloquy.layers.masking import zero_padding


def apply_padded(function, x, mask):
    """Applies a function of single rows to `x`, float `(..., D)`, then sets the padded rows to
    zero.
    """
    return zero_padding(function(x), mask[..., None])


def apply_unpadded(function, x, mask):
    """`apply_padded` without computing padding: the function gets the unpadded rows as one matrix.

    The number of real rows depends on the data, which XLA cannot compile. It is rounded up to a
    multiple of 64 by rows whose results are dropped: on a CPU TensorFlow prepares its kernels for
    each size, so few should occur.

    >>> x, mask = np.array([[[1.0], [2.0]], [[3.0], [4.0]]]), np.array([[True, False], [True, True]])
    >>> keras.ops.convert_to_numpy(apply_unpadded(lambda rows: -rows, x, mask)).ravel().tolist()
    [-1.0, 0.0, -3.0, -4.0]
    """
    if tuple(mask.shape) != tuple(x.shape[:-1]):
        mask = ops.broadcast_to(mask, ops.shape(x)[:-1])
    unpad, repad = unpadding(mask)
    return repad(function(unpad(x)))


def unpadding(mask, multiple=64):
    """`unpad` and `repad` between a padded array and its unpadded rows: gathers, each the gradient
    of the other.

    Autodiff's gradient of a gather, a scatter, takes TensorFlow's CPU eight times as long.

    Args:
        mask: Boolean `(...)`, `True` = real.
        multiple: R is rounded up to it, by copies of the last real row.

    Returns:
        Two functions. `unpad` takes `(..., D)` to `(R, D)`, the unpadded rows in their order.
        `repad` takes `(R, D)` to `(..., D)`, zeros where the padding is.

    >>> unpad, repad = unpadding(np.array([[True, False], [False, True]]), multiple=1)
    >>> keras.ops.convert_to_numpy(unpad(np.array([[[1.0], [2.0]], [[3.0], [4.0]]]))).ravel().tolist()
    [1.0, 4.0]
    >>> keras.ops.convert_to_numpy(repad(np.array([[1.0], [4.0]]))).ravel().tolist()
    [1.0, 0.0, 0.0, 4.0]
    """
    real_P = ops.cast(ops.reshape(mask, (-1,)), "int32")
    [rows_R] = ops.nonzero(real_P)
    real = ops.size(rows_R)
    order_R = ops.arange(real + -real % multiple)
    rows_R = ops.take(rows_R, ops.minimum(order_R, real - 1))
    real_R1 = (order_R < real)[:, None]
    places_P = ops.cumsum(real_P) * real_P  # of each row in the matrix, from 1; 0: padding

    def gather(x):
        return ops.take(ops.reshape(x, (-1, x.shape[-1])), rows_R, axis=0)

    def spread(x):
        zeros_1D = ops.zeros((1, x.shape[-1]), dtype=x.dtype)
        x = ops.take(ops.concatenate([zeros_1D, x], axis=0), places_P, axis=0)
        return ops.reshape(x, (*ops.shape(mask), x.shape[-1]))

    unpad = with_gradient(lambda x: (gather(x), spread))
    repad = with_gradient(lambda x: (spread(x), lambda g: zero_padding(gather(g), real_R1)))
    return unpad, repad


@keras.saving.register_keras_serializable("colloquy")
class UnpadInTraining(keras.layers.Layer):
    """Takes float `(..., D)` and its mask to the unpadded rows, `(R, D)`, in training on
    TensorFlow, else to itself.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.fast = keras.config.backend() == "tensorflow"
        self.supports_jit = not self.fast

    def call(self, x, mask, training=None):
        return unpadding(mask)[0](x) if training and self.fast else x
