"""Leaves padding out: the real rows of a padded array, one behind the other, and back.

Shape suffixes:  ... leading axes   R real rows   P all rows   D features
"""

from keras import ops

from layers.gradients import sum_broadcast, with_gradient
from layers.masking import zero_padding


def packing(mask, own_mask, multiple=1, axis=-2):
    """The two directions between a padded array and its real rows.

    Both are gathers, and each is the gradient of the other; the gradient that autodiff finds for a gather, and the
    scatter that would undo it, take TensorFlow's CPU eight times as long.

    Args:
        mask: Boolean `(...)`, `True` = real; `R` entries are.
        own_mask: Of any values and a shape that broadcasts to that of `mask`; an axis that broadcasts is known to be 1.
        multiple: `R` is rounded up to it, by padded rows as long as there are some, which count for nothing: on a CPU
            TensorFlow compiles for each size, so few should occur.
        axis: An axis of `mask`, negative, which stands at -2 in what `pack_sum` takes for `x`.

    Returns:
        Two functions. `pack_sum` takes `x`, of the shape of `mask` but for `axis`, and `y`, of the shape of `own_mask`,
        each with `D` behind it, to the real rows of `x + y`, `(R, D)`, in the order of `mask`. `unpack` takes `(R, D)`
        to `(..., D)`, in the order of `mask`, with zeros where the padding is. `R` depends on the data: XLA cannot
        compile them.

    >>> pack_sum, unpack = packing(np.array([[True, False], [False, True]]), np.array([[True, True]]))
    >>> rows = pack_sum(np.array([[[1.0], [2.0]], [[3.0], [4.0]]]), np.array([[[10.0], [20.0]]]))
    >>> keras.ops.convert_to_numpy(rows).ravel().tolist()
    [11.0, 24.0]
    >>> keras.ops.convert_to_numpy(unpack(rows)).ravel().tolist()
    [11.0, 0.0, 0.0, 24.0]
    """
    real_P = taken_P = ops.reshape(mask, (-1,))
    if multiple > 1:
        padding_P = ops.cast(ops.logical_not(real_P), "int32")
        missing = (ops.sum(padding_P) - ops.size(padding_P)) % multiple
        taken_P = ops.logical_or(real_P, ops.cumsum(padding_P) <= missing)
    [taken_R] = ops.nonzero(taken_P)
    real_R1 = ops.take(real_P, taken_R)[:, None]
    all_real, all_taken = ops.all(real_P), ops.all(taken_P)  # then nothing needs to be moved
    in_order = axis == -2

    def move(x, source, target):
        return x if in_order else ops.moveaxis(x, source, target)

    def numbered(x):
        return ops.reshape(ops.arange(ops.size(x), dtype="int32"), ops.shape(x))

    def taken(numbers):
        return ops.take(ops.reshape(ops.broadcast_to(numbers, ops.shape(mask)), (-1,)), taken_R)

    # Where each row is among the packed ones, from 1; 0: padding.
    places = ops.reshape(ops.cumsum(ops.cast(taken_P, "int32")) * ops.cast(real_P, "int32"), ops.shape(mask))
    x_places = move(places, axis, -2)
    x_rows_R, y_rows_R = taken(move(numbered(x_places), -2, axis)), taken(numbered(own_mask))

    def as_rows(x):
        return ops.reshape(x, (-1, x.shape[-1]))

    def spread(x, places, in_order=True):
        def gathered():
            zeros_1D = ops.zeros((1, x.shape[-1]), dtype=x.dtype)
            return ops.take(ops.concatenate([zeros_1D, x], axis=0), ops.reshape(places, (-1,)), axis=0)

        padded = ops.cond(all_real, lambda: x, gathered) if in_order else gathered()
        return ops.reshape(padded, (*ops.shape(places), x.shape[-1]))

    @with_gradient
    def pack_sum(x, y):
        def gathered():
            return ops.take(as_rows(x), x_rows_R, axis=0) + ops.take(as_rows(y), y_rows_R, axis=0)

        def gradient(g):
            g = spread(g, x_places, in_order)
            y_axes = *[1] * (len(x.shape) - len(y.shape)), *ops.shape(y)
            y_gradient = sum_broadcast(g, move(ops.reshape(y, y_axes), axis - 1, -3))
            return g, ops.reshape(move(y_gradient, -3, axis - 1), ops.shape(y))

        return ops.cond(all_taken, lambda: as_rows(x + y), gathered) if in_order else gathered(), gradient

    @with_gradient
    def unpack(x):
        def gradient(g):
            def gathered():
                return zero_padding(ops.take(as_rows(g), taken_R, axis=0), real_R1)

            return ops.cond(all_real, lambda: as_rows(g), gathered)

        return spread(x, places), gradient

    return pack_sum, unpack
