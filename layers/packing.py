"""Leaves padding out: the real rows of a padded array, one behind the other, and back.

Shape suffixes:  ... leading axes   R real rows   D features
"""

from keras import ops

from layers.gradients import sum_broadcast, with_gradient


def packing(mask, own_mask, multiple=1):
    """The two directions between a padded array and its real rows.

    Both are gathers, and each is the gradient of the other; the gradient that autodiff finds for a gather, and the
    scatter that would undo it, take TensorFlow's CPU eight times as long.

    Args:
        mask: Boolean `(...)`, `True` = real; `R` entries are.
        own_mask: Of any values and a shape that broadcasts to that of `mask`; an axis that broadcasts is known to be 1.
        multiple: `R` is rounded up to it, by padded rows that are taken for real as long as there are some: on a CPU
            TensorFlow compiles for each size, so few should occur.

    Returns:
        Two functions. `pack_sum` takes `x`, of the shape of `mask`, and `y`, of the shape of `own_mask`, each with `D`
        behind it, to the real rows of `x + y`, `(R, D)`, in order. `unpack` takes `(R, D)` back to `(..., D)`, with
        zeros where the padding is. `R` depends on the data: XLA cannot compile them.

    >>> pack_sum, unpack = packing(np.array([[True, False], [False, True]]), np.array([[True, True]]))
    >>> rows = pack_sum(np.array([[[1.0], [2.0]], [[3.0], [4.0]]]), np.array([[[10.0], [20.0]]]))
    >>> keras.ops.convert_to_numpy(rows).ravel().tolist()
    [11.0, 24.0]
    >>> keras.ops.convert_to_numpy(unpack(rows)).ravel().tolist()
    [11.0, 0.0, 0.0, 24.0]
    """
    shape, mask_P = ops.shape(mask), ops.reshape(mask, (-1,))
    real_P = ops.cast(mask_P, "int32")
    if multiple > 1:
        mask_P = ops.logical_or(mask_P, ops.cumsum(1 - real_P) <= -ops.sum(real_P) % multiple)
        real_P = ops.cast(mask_P, "int32")
    [rows_R] = ops.nonzero(mask_P)
    places_P = ops.cumsum(real_P) * real_P  # 0: padding
    all_real = ops.all(mask_P)  # then nothing needs to be moved
    # The row of `y` that each real row has.
    numbers = ops.reshape(ops.arange(ops.size(own_mask), dtype="int32"), ops.shape(own_mask))
    y_rows_R = ops.take(ops.reshape(ops.broadcast_to(numbers, shape), (-1,)), rows_R)

    def as_rows(x):
        return ops.reshape(x, (-1, x.shape[-1]))

    def gather_sum(x, y):
        return ops.cond(
            all_real,
            lambda: as_rows(x + y),
            lambda: ops.take(as_rows(x), rows_R, axis=0) + ops.take(as_rows(y), y_rows_R, axis=0),
        )

    def gather(x):
        return ops.cond(all_real, lambda: as_rows(x), lambda: ops.take(as_rows(x), rows_R, axis=0))

    def gather_padded(x):
        zeros_1D = ops.zeros((1, x.shape[-1]), dtype=x.dtype)
        padded = ops.cond(
            all_real, lambda: x, lambda: ops.take(ops.concatenate([zeros_1D, x], axis=0), places_P, axis=0)
        )
        return ops.reshape(padded, (*shape, x.shape[-1]))

    @with_gradient
    def pack_sum(x, y):
        def gradient(g):
            g = gather_padded(g)
            return g, sum_broadcast(g, y)

        return gather_sum(x, y), gradient

    return pack_sum, with_gradient(lambda x: (gather_padded(x), gather))
