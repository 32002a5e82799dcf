"""The aggregation of DAM (Zhou et al. 2018, section 3.6): 3-D convolutions over the stack of match matrices.

Shape suffixes:
    B batch   N candidates   P pairs (B N)   T turns   K utterance words   J response words   C, F channels
"""

import keras
from keras import ops

from layers.attentive_module import MASKINGS
from layers.gradients import add_bias
from layers.masking import max_pool_3d, zero_padding

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

    With `masking="exact"` a padded cell is absent from each pooling and zero in front of the second convolution, as it
    has to be in front of the first; cells beyond the image count as zero features: an image gives the same score
    however much padding surrounds it.

    Args:
        max_turns, max_words: The largest image that is read; they fix the size of `W3`, 576 at 9 x 50 x 50.
        filters: Channels of the two convolutions. The release: (32, 16); Douban (16, 16).
        scale: The image is multiplied by this first; DAM's release takes `1 / sqrt(D)`, the paper says nothing.
        masking: `"exact"`, or `"release"`: nothing is masked, and every image must have the largest size. Images
            without padding give the same score either way, except where a size leaves 1 over after division by 3:
            `SAME` pooling then starts one cell before the image.

    Call arguments:
        matches: The image's channels, a list of C float `(B, N, T, K, J)`, zero in padded cells with `masking="exact"`.
        cell_mask: Boolean `(B, N, T, K, J)`, `True` = real. `None`: every cell is real.

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

    def build(self, matches_shape, cell_mask_shape=None):
        shape = (None, *matches_shape[0][2:], len(matches_shape))
        self.convolutions = []
        for i, filters in enumerate(self.filters):
            convolution = keras.layers.Conv3D(
                filters,
                kernel_size=3,
                padding="same",
                activation="elu",
                kernel_initializer=keras.initializers.RandomUniform(-0.01, 0.01),
                name=f"conv_{i}",
                dtype=self.dtype_policy if self.masking == "exact" else "float32",  # see `_pad_ends`
            )
            convolution.build(shape)
            shape = (*shape[:-1], filters)
            self.convolutions.append(convolution)
        words = pooled_size(self.max_words)
        self.grid = (pooled_size(self.max_turns), words, words, self.filters[-1])
        cells = self.grid[0] * self.grid[1] * self.grid[2] * self.grid[3]
        self.W3 = self.add_weight(name="W3", shape=(cells, 1), initializer="orthogonal")
        self.b3 = self.add_weight(name="b3", shape=(1,), initializer="zeros")

    def call(self, matches, cell_mask=None):
        for axis, (size, largest) in enumerate(
            zip(matches[0].shape[2:], (self.max_turns, self.max_words, self.max_words), strict=True), 2
        ):
            if size is not None and size > largest:
                raise ValueError(
                    f"An image must have at most {self.max_turns} turns of {self.max_words} words. "
                    f"Received: matches of shape {tuple(matches[0].shape)}, axis {axis} is too long"
                )
        B, N, *volume = ops.shape(matches[0])
        matches = [ops.reshape(match, (-1, *volume)) for match in matches]
        if self.masking == "release":
            x = _channels_last(matches) * self.scale
            for convolution in self.convolutions:
                x = max_pool_3d(convolution(x), POOL)
        else:
            mask = ops.ones_like(matches[0], "bool") if cell_mask is None else ops.reshape(cell_mask, (-1, *volume))
            x = _channels_last(matches)
            for convolution, scale in zip(self.convolutions, (self.scale, 1.0), strict=True):
                # Convolutions are linear: what scales the kernel need not scale the image.
                x, mask = convolve_and_pool(x, mask, convolution.kernel * scale, convolution.bias)
        _, t, k, j, _ = ops.shape(x)
        W3_TKJC = ops.reshape(ops.cast(self.W3, "float32"), self.grid)[:t, :k, :j]
        features = ops.cast(x, "float32")
        logits = ops.einsum("atkjc,tkjc->a", features, W3_TKJC) + ops.cast(self.b3, "float32")
        return ops.reshape(logits, (B, N))

    def compute_output_spec(self, matches, cell_mask=None):
        return keras.KerasTensor(matches[0].shape[:2], dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "max_turns": self.max_turns,
            "max_words": self.max_words,
            "filters": self.filters,
            "scale": self.scale,
            "masking": self.masking,
        }


def convolve_and_pool(x, mask, kernel, bias):
    """`max_pool(ELU(conv(x) + b))` over the real cells alone.

    Bias and ELU grow with their argument, so they come after the maximum, which leaves one of 27 cells.

    Args:
        x: Float `(P, T, K, J, C)`, zero in padded cells.
        mask: Boolean `(P, T, K, J)`, `True` = real.
        kernel: Float `(3, 3, 3, C, F)`.
        bias: Float `(F,)`.

    Returns:
        Float `(P, t, k, j, F)`, zero where a window has no real cell, and which windows have one, boolean
        `(P, t, k, j)`.
    """
    # The convolution's own padding is part of what `_pad_ends` puts around x: with oneDNN, TensorFlow 2.21 makes one
    # operation of a padding and a convolution after it, which forgets that the convolution is a "same" one.
    x, mask = _pad_ends(x, around=1), _pad_ends(mask)
    x = ops.conv(x, ops.cast(kernel, x.dtype), padding="valid")
    x, mask = max_pool_3d(x, POOL, mask)
    return zero_padding(ops.elu(add_bias(x, ops.cast(bias, x.dtype))), mask[..., None]), mask


def _channels_last(channels):
    """Float `(P, T, K, J, C)` of C channels `(P, T, K, J)`: stacked in front and moved, much faster than at the end."""
    return ops.transpose(ops.stack(channels), (1, 2, 3, 4, 0))


def _pad_ends(x, around=0):
    """Ends `(P, T, K, J, ...)` such that windows of a pooling begin with the first cell, and turns come in threes.

    So many cells more are put `around` it.

    Windows would begin before the first cell if 1 were left over. What TensorFlow 2.21 computes on a CPU in bfloat16 as
    the gradient of a kernel is garbage where an image is two turns deep.
    """
    _, T, K, J = ops.shape(x)[:4]
    ends = [-T % POOL, *(2 * (n % POOL) * (2 - n % POOL) for n in (K, J))]
    return ops.pad(x, [(0, 0), *((around, around + end) for end in ends), *[(0, 0)] * (len(x.shape) - 4)])
