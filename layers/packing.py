"""Leaves padding out: the real rows of a padded array, one behind the other, and back.

Shape suffixes:  P padded and real rows   R real rows   D features
"""

from keras import ops


def packing(mask):
    """The two directions between a padded array and its real rows.

    Both are gathers, and each is the gradient of the other; the gradient that autodiff finds for a gather, and the
    scatter that would undo it, take TensorFlow's CPU eight times as long.

    Args:
        mask: Boolean of any shape, `True` = real; `P` entries, `R` of them real.

    Returns:
        Two functions. `pack` takes `(P, D)` to the real rows, `(R, D)`, in order; `unpack` takes these back to
        `(P, D)`, with zeros where the padding is. `R` depends on the data: XLA cannot compile them.

    >>> pack, unpack = packing(np.array([[True, False], [False, True]]))
    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> keras.ops.convert_to_numpy(pack(x)).ravel().tolist()
    [1.0, 4.0]
    >>> keras.ops.convert_to_numpy(unpack(pack(x))).ravel().tolist()
    [1.0, 0.0, 0.0, 4.0]
    """
    mask_P = ops.reshape(mask, (-1,))
    [rows_R] = ops.nonzero(mask_P)
    real_P = ops.cast(mask_P, "int32")
    places_P = ops.cumsum(real_P) * real_P  # 0: padding

    all_real = ops.all(mask_P)

    def gather_real(x):
        return ops.cond(all_real, lambda: x, lambda: ops.take(x, rows_R, axis=0))

    def gather_padded(x):
        zeros_1D = ops.zeros((1, x.shape[-1]), dtype=x.dtype)
        return ops.cond(all_real, lambda: x, lambda: ops.take(ops.concatenate([zeros_1D, x], axis=0), places_P, axis=0))

    return _with_gradient(gather_real, gather_padded), _with_gradient(gather_padded, gather_real)


def _with_gradient(function, adjoint):
    @ops.custom_gradient
    def linear(x):
        return function(x), lambda *args, upstream=None: adjoint(args[0] if upstream is None else upstream)

    return linear
