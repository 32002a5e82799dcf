"""Products of rows, and biases, with gradients that read and write as little as they can.

Shape suffixes:  ... leading axes   Q, K rows   D features
"""

import keras
from keras import ops

from layers.gradients import sum_broadcast, with_gradient


@keras.saving.register_keras_serializable("colloquy")
class RowProducts(keras.layers.Layer):
    """`row_products` as a layer, for a model made of layers.

    Call arguments:
        x: Float `(..., Q, D)`.
        y: Float `(..., K, D)`.

    Returns:
        Float `(..., Q, K)`.

    >>> RowProducts()(np.ones((2, 3, 5), "float32"), np.ones((2, 7, 5), "float32")).shape.as_list()
    [2, 3, 7]
    """

    def call(self, x, y):
        return row_products(x, y)


def row_products(x, y):
    """`x y^T`: the dot product of every row of `x` with every row of `y`.

    Autodiff would transpose `y` and its gradient in memory; here the gradient is

        dx = g y,    dy = g^T x

    and where `x` is `y`, as in self-attention, `dx = (g + g^T) x`: one product.

    Args:
        x: Float `(..., Q, D)`.
        y: Float `(..., K, D)`. The leading axes broadcast; one that does is known to be 1.

    Returns:
        Float `(..., Q, K)`.

    >>> keras.ops.convert_to_numpy(row_products(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]))).tolist()
    [[11.0, 17.0]]
    """
    if x is y:

        @with_gradient
        def with_itself(x):
            return ops.matmul(x, ops.swapaxes(x, -1, -2)), lambda g: ops.matmul(g + ops.swapaxes(g, -1, -2), x)

        return with_itself(x)

    @with_gradient
    def with_each_other(x, y):
        def gradient(g):
            dx, dy = ops.matmul(g, y), ops.matmul(ops.swapaxes(g, -1, -2), x)
            return sum_broadcast(dx, x), sum_broadcast(dy, y)

        return ops.matmul(x, ops.swapaxes(y, -1, -2)), gradient

    if _shared_axis(x, y) != -3:
        return with_each_other(x, y)
    return _apart(with_each_other(*_as_one(x, y, -3)), *ops.shape(x)[-3:-1])


def row_sums(weights, y):
    """`A y`: for every query the sum of the rows of `y`, weighted.

    Where `y` is the same along a leading axis, as an utterance is that several responses attend to, all queries along
    it are rows of one matrix: fewer products and larger ones. The large result is not moved back then.

    Args:
        weights: `A`, float `(..., Q, K)`.
        y: Float `(..., K, D)`. The leading axes broadcast; one that does is known to be 1.

    Returns:
        The sums, float `(..., Q, D)`, and a leading axis, negative, which stands at -3 in them. -3: all is in order.

    >>> weights, y = np.ones((2, 3, 4, 5), "float32"), np.ones((1, 3, 5, 7), "float32")
    >>> sums, axis = row_sums(weights, y)
    >>> sums.shape.as_list(), axis
    ([3, 2, 4, 7], -4)
    """
    axis = _shared_axis(weights, y)
    if axis is None:
        return ops.matmul(weights, y), -3
    shape = ops.shape(weights)
    return _apart(ops.matmul(*_as_one(weights, y, axis)), shape[axis], shape[-2]), axis


def _shared_axis(x, y):
    """The last leading axis that `y` is known to be the same along and `x` is not, negative, or `None`."""
    if len(x.shape) != len(y.shape):
        return None
    shared = [axis for axis in range(-len(x.shape), -2) if y.shape[axis] == 1 != x.shape[axis]]
    return shared[-1] if shared else None


def _as_one(x, y, axis):
    """`x` with that axis and its rows as one axis of rows, and `y` without it."""
    x = x if axis == -3 else ops.moveaxis(x, axis, -3)
    shape = ops.shape(x)
    return ops.reshape(x, (*shape[:-3], shape[-3] * shape[-2], shape[-1])), ops.squeeze(y, axis)


def _apart(x, size, Q):
    """Every `size` times `Q` rows of `x` with an axis of `size` in front of them again."""
    *lead, _, D = ops.shape(x)
    return ops.reshape(x, (*lead, size, Q, D))


def add_bias(x, b):
    """`x + b`, with the gradient of `b` as a sum.

    In bfloat16 TensorFlow's own gradient of a bias on a CPU counts no further than to 256: it adds row after row in
    bfloat16.

    Args:
        x: Float `(..., D)`.
        b: Float `(D,)` or `(1,)`, of the dtype of `x`.

    Returns:
        Float `(..., D)`.

    >>> keras.ops.convert_to_numpy(add_bias(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))).tolist()
    [[4.0, 6.0]]
    """
    add = with_gradient(lambda x, b: (ops.add(x, b), lambda g: (g, sum_broadcast(g, b))))
    return add(x, b)
