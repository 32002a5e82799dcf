"""The maximum over windows of three axes, with a mask.

Shape suffixes:  P images   T, K, J axes of an image   t, k, j windows along them   C channels
"""

import keras
from keras import ops

from colloquy.layers.masking import MASKED_LOGIT, zero_padding


def max_pool_3d(x, size, mask=None):
    """The maximum over windows of `size` cells on each of three axes, among the real cells alone.

    The first window of an axis begins with its first cell if `size` divides the axis. (Otherwise
    Keras adds padding at both ends, as it does with `padding="same"`.)

    Args:
        x: Float `(P, T, K, J, C)`.
        size: Int.
        mask: Boolean `(P, T, K, J)`, `True` = real. `None`: every cell is real.

    Returns:
        Float `(P, t, k, j, C)`, of the dtype of `x`; a window without a real cell yields zero.
        With a mask also which windows have a real cell, boolean `(P, t, k, j)`.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    # TensorFlow has no kernel for float16 on a CPU.
    pool_dtype = "float32" if dtype == "float16" else dtype

    def pool(x):
        maxima = ops.max_pool(ops.cast(x, pool_dtype), size, size, padding="same")
        return ops.cast(maxima, dtype)

    if mask is None:
        return pool(x)
    mask_PTKJ1 = mask[..., None]
    pooled_mask_Ptkj1 = ops.greater(pool(ops.cast(mask_PTKJ1, dtype)), 0)

    # float16 has no number below -65504, so it needs a smaller one than the others.
    lowest = -3e4 if dtype == "float16" else MASKED_LOGIT
    masked_x = ops.where(mask_PTKJ1, x, ops.full((), lowest, dtype=dtype))
    return zero_padding(pool(masked_x), pooled_mask_Ptkj1), pooled_mask_Ptkj1[..., 0]
