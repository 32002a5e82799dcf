"""The aggregation of DAM (Zhou et al. 2018, section 3.6): 3-D convolutions over the stack of match matrices.

Shape suffixes:  B batch   N candidates   T turns   K utterance words   J response words   C channels
"""

import keras
import numpy as np
from keras import ops

from layers.attentive_module import MASKINGS
from layers.masking import MASKED_LOGIT, max_pool_3d, zero_padding

POOL = 3  # window and stride of both poolings, on all three axes


def pooled_size(size):
    """Cells left of an axis of `size` cells after the two poolings: `ceil(ceil(size / 3) / 3)`.

    >>> [pooled_size(n) for n in (9, 50)]
    [1, 6]
    """
    for _ in range(2):
        size = -(-size // POOL)
    return size


@keras.saving.register_keras_serializable("colloquy")
class MatchAggregation(keras.layers.Layer):
    """Reads one score off a three-dimensional image of matches.

        conv3d 3x3x3 + ELU, max-pool 3/3, conv3d 3x3x3 + ELU, max-pool 3/3, flatten, W3 f + b3

    With `masking="exact"` a padded cell is zero in front of each convolution and absent from each pooling, and cells
    beyond the image count as zero features: an image gives the same score whatever padding surrounds it.

    Args:
        max_turns, max_words: The largest image that is read; they fix the size of `W3`, 576 at 9 x 50 x 50.
        filters: Channels of the two convolutions. The release: (32, 16); Douban (16, 16).
        scale: The image is multiplied by this first; DAM's release takes `1 / sqrt(D)`, the paper says nothing.
        masking: `"exact"`, or `"release"`: nothing is masked, and every image must have the largest size. Images
            without padding give the same score either way, except where a size leaves 1 over after division by 3:
            `SAME` pooling then starts one cell before the image.

    Call arguments:
        image: Float `(B, N, T, K, J, C)`.
        mask: Boolean `(B, N, T, K, J, 1)`, `True` = real. `None`: every cell is real.

    Returns:
        Logits, float32 `(B, N)`.

    Raises:
        ValueError: on an unknown `masking`, or an image larger than `max_turns` or `max_words`.
    """

    def __init__(self, max_turns=9, max_words=50, filters=(32, 16), scale=1.0, masking="exact", **kwargs):
        super().__init__(**kwargs)
        if masking not in MASKINGS:
            raise ValueError(f"masking must be one of {MASKINGS}. Received: masking={masking!r}")
        self.max_turns = max_turns
        self.max_words = max_words
        self.filters = tuple(filters)
        self.scale = scale
        self.masking = masking

    def build(self, image_shape, mask_shape=None):
        shape = (None, *image_shape[2:])
        self.convolutions = []
        for i, filters in enumerate(self.filters):
            convolution = keras.layers.Conv3D(
                filters,
                kernel_size=3,
                padding="same",
                activation="elu",
                kernel_initializer=keras.initializers.RandomUniform(-0.01, 0.01),
                name=f"conv_{i}",
                dtype=self.dtype_policy if self.masking == "exact" else "float32",  # see `_convolve_and_pool`
            )
            convolution.build(shape)
            shape = (*shape[:-1], filters)
            self.convolutions.append(convolution)
        words = pooled_size(self.max_words)
        self.grid = (pooled_size(self.max_turns), words, words, self.filters[-1])
        cells = self.grid[0] * self.grid[1] * self.grid[2] * self.grid[3]
        self.W3 = self.add_weight(name="W3", shape=(cells, 1), initializer="orthogonal")
        self.b3 = self.add_weight(name="b3", shape=(1,), initializer="zeros")

    def call(self, image, mask=None):
        for axis, (size, largest) in enumerate(
            zip(image.shape[2:5], (self.max_turns, self.max_words, self.max_words), strict=True), 2
        ):
            if size is not None and size > largest:
                raise ValueError(
                    f"An image must have at most {self.max_turns} turns of {self.max_words} words. "
                    f"Received: image.shape={tuple(image.shape)}, axis {axis} is too long"
                )
        B, N, *volume = ops.shape(image)
        x = ops.reshape(image, (-1, *volume))
        if mask is None:
            mask = ops.ones_like(x[..., :1], dtype="bool")
        mask = ops.reshape(mask, (-1, *volume[:-1], 1))
        if self.masking == "release":
            x = x * self.scale
            for convolution in self.convolutions:
                x = max_pool_3d(convolution(x), POOL, padding="same")
        else:
            for convolution, scale in zip(self.convolutions, (self.scale, 1.0), strict=True):
                x, mask = _convolve_and_pool(x, mask, convolution, scale)
        _, t, k, j, _ = ops.shape(x)
        W3_TKJC = ops.reshape(ops.cast(self.W3, "float32"), self.grid)[:t, :k, :j]
        features = ops.cast(x, "float32")
        logits = ops.einsum("atkjc,tkjc->a", features, W3_TKJC) + ops.cast(self.b3, "float32")
        return ops.reshape(logits, (B, N))

    def compute_output_spec(self, image, mask=None):
        return keras.KerasTensor(image.shape[:2], dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "max_turns": self.max_turns,
            "max_words": self.max_words,
            "filters": self.filters,
            "scale": self.scale,
            "masking": self.masking,
        }


def _convolve_and_pool(x, mask, convolution, scale):
    """`max_pool(ELU(conv(scale x)))` over the real cells alone, and which pooled cells are real.

    The image is large, so each pass over it counts: the scale goes into the kernel; bias and ELU, which grow with their
    argument, come after the maximum; and padding is kept out of it by one channel more, which is 1 there and has a
    kernel of the lowest number at its centre and 0 around it.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    C, F = convolution.kernel.shape[-2:]
    _, T, K, J, _ = ops.shape(x)
    # What TensorFlow 2.21 computes on a CPU in bfloat16 as the gradient of a kernel is garbage where an image is two
    # turns deep: so turns come in threes. Of words, windows would begin before the first if 1 were left over.
    ends = [-T % POOL, *(2 * (n % POOL) * (2 - n % POOL) for n in (K, J))]
    ends = [(0, 0), *((0, end) for end in ends)]
    mask = ops.pad(mask, [*ends, (0, 0)])
    x = ops.where(mask, ops.pad(x, [*ends, (0, 1)]), ops.cast(np.arange(C + 1) == C, dtype))
    lowest = np.zeros((3, 3, 3, 1, F))
    lowest[1, 1, 1] = -3e4 if dtype == "float16" else MASKED_LOGIT
    kernel = ops.cast(convolution.kernel, dtype) * scale
    x = ops.conv(x, ops.concatenate([kernel, ops.cast(lowest, dtype)], axis=-2), padding="same")
    x = max_pool_3d(x, POOL, padding="same")
    mask = ops.greater(max_pool_3d(ops.cast(mask, dtype), POOL, padding="same"), 0)
    return zero_padding(ops.elu(ops.add(x, ops.cast(convolution.bias, dtype))), mask), mask
