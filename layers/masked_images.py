"""Convolution and pooling of three-dimensional images with padded cells.

Shape suffixes:
    P images   T, K, J axes of an image   t, k, j axes of the pooled image   C, F channels
"""

import keras
from keras import ops

from colloquy.layers.gradients import add_bias
from colloquy.layers.masking import MASKED_LOGIT, zero_padding

POOL = 3
"""Size and stride of a pooling window, on all three axes."""


def convolve_and_pool(x, mask, kernel, bias):
    """`max_pool(ELU(conv(x) + bias))`, where pooling skips padded cells.

    Args:
        x: Float `(P, T, K, J, C)`, zero in padded cells.
        mask: Boolean `(P, T, K, J)`, `True` = real.
        kernel: `(3, 3, 3, C, F)`.
        bias: `(F,)`.

    Returns:
        Float `(P, t, k, j, F)`, zero where a window has no real cell.
        The mask of windows that have one, boolean `(P, t, k, j)`.
    """
    after = _padding_for_pooling(x)
    # Convolution with `padding="same"` needs one more cell on every side. It is added here, because
    # TensorFlow 2.21 merges a padding into a convolution after it, and then forgets the "same".
    around = [(1, 1 + cells) for cells in after]
    x = ops.pad(x, [(0, 0), *around, (0, 0)])
    mask = ops.pad(mask, [(0, 0), *[(0, cells) for cells in after]])
    x = ops.conv(x, kernel, padding="valid")

    # A bias and ELU keep the order of numbers, so they can follow the maximum: there, only one of
    # 27 cells is left to compute.
    x, mask = max_pool_3d(x, mask)
    x = ops.elu(add_bias(x, bias))
    return zero_padding(x, mask[..., None]), mask


def _padding_for_pooling(x):
    """The cells to add after each axis, so that pooling begins with its first cell.

    If an axis leaves 1 over after division by 3, Keras would begin one cell before it. If it leaves
    2, Keras itself adds one cell after it. But it is added to the turns here: for images two turns
    deep in bfloat16, on a CPU, TensorFlow 2.21 computes a wrong gradient of the kernel.
    """
    _, T, K, J = ops.shape(x)[:4]
    return -T % POOL, _missing_words(K), _missing_words(J)


def _missing_words(n):
    """2 if 1 is left over after division by 3, else 0; `n` may be a tensor."""
    remainder = n % POOL
    return 2 * remainder * (2 - remainder)


def max_pool_3d(x, mask=None):
    """The maximum over windows of 3 x 3 x 3 cells, among the real cells alone.

    Args:
        x: Float `(P, T, K, J, C)`.
        mask: Boolean `(P, T, K, J)`, `True` = real. `None`: every cell is real.

    Returns:
        Float `(P, t, k, j, C)`, of the dtype of `x`; a window without a real cell yields zero.
        With a mask also which windows have a real cell, boolean `(P, t, k, j)`.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    # TensorFlow has no kernel for float16 on a CPU.
    pool_dtype = "float32" if dtype == "float16" else dtype

    def pool(x):
        maxima = ops.max_pool(ops.cast(x, pool_dtype), POOL, POOL, padding="same")
        return ops.cast(maxima, dtype)

    if mask is None:
        return pool(x)
    mask_PTKJ1 = mask[..., None]
    pooled_mask_Ptkj1 = ops.greater(pool(ops.cast(mask_PTKJ1, dtype)), 0)

    # float16 has no number below -65504, so it needs a smaller one than the others.
    lowest = -3e4 if dtype == "float16" else MASKED_LOGIT
    masked_x = ops.where(mask_PTKJ1, x, ops.full((), lowest, dtype=dtype))
    return zero_padding(pool(masked_x), pooled_mask_Ptkj1), pooled_mask_Ptkj1[..., 0]
