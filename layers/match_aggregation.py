"""The aggregation of DAM (Zhou et al. 2018, section 3.6): 3-D convolutions over match matrices.

Shape suffixes:
    B batch   N candidates   P pairs (B N)   T turns   K utterance words   J response words
    C channels   t, k, j axes of the pooled image
"""

import math

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.attentive_module import MASKINGS
from colloquy.layers.masked_images import POOL, convolve_and_pool, max_pool_3d


def pooled_size(size):
    """Cells left of an axis of `size` cells after the two poolings: `ceil(ceil(size / 3) / 3)`.

    >>> [pooled_size(n) for n in (9, 50)]
    [1, 6]
    """
    return math.ceil(math.ceil(size / POOL) / POOL)


@keras.saving.register_keras_serializable("colloquy")
class MatchAggregation(keras.layers.Layer):
    """Scores a three-dimensional image of matches.

        conv3d 3x3x3 + ELU, max-pool 3/3, conv3d 3x3x3 + ELU, max-pool 3/3, flatten, W3 f + b3

    With `masking="exact"` an image gives the same score however much padding it has. Padded cells
    are zero before each convolution, as cells beyond the image are, and the poolings skip them.

    Args:
        max_turns, max_words: The largest image; they fix the size of `W3`, 576 at 9 x 50 x 50.
        filters: Channels of the two convolutions. The release: (32, 16); Douban (16, 16).
        scale: Factor of the image; `1 / sqrt(D)` in DAM's release, the paper has none.
        masking: `"exact"`, or `"release"`: nothing is masked, and every image must have the largest
            size. An image without padding gives the same score either way, unless a size such as 7
            leaves 1 over after division by 3: the release's first pooling window then begins one
            cell before the image.

    Call arguments:
        matches: The image's channels, a list of C float `(B, N, T, K, J)`, zero in padded cells
            with `masking="exact"`.
        cell_mask: Boolean `(B, N, T, K, J)`, `True` = real. `None`: every cell is real.

    Returns:
        Logits, float32 `(B, N)`.
    """

    def __init__(
        self, max_turns=9, max_words=50, filters=(32, 16), scale=1.0, masking="exact", **kwargs
    ):
        super().__init__(**kwargs)
        check_choice("masking", masking, MASKINGS)
        self.max_turns = max_turns
        self.max_words = max_words
        self.filters = tuple(filters)
        self.scale = scale
        self.masking = masking

    def build(self, matches_shape, cell_mask_shape=None):
        shape = (None, *matches_shape[0][2:], len(matches_shape))
        # In bfloat16, TensorFlow's convolution needs the padding of `convolve_and_pool`.
        dtype = self.dtype_policy if self.masking == "exact" else "float32"
        self.convolutions = []
        for i, filters in enumerate(self.filters):
            convolution = keras.layers.Conv3D(
                filters,
                kernel_size=3,
                padding="same",
                activation="elu",
                kernel_initializer=keras.initializers.RandomUniform(-0.01, 0.01),
                name=f"conv_{i}",
                dtype=dtype,
            )
            convolution.build(shape)
            shape = (*shape[:-1], filters)
            self.convolutions.append(convolution)
        words = pooled_size(self.max_words)
        self.grid = (pooled_size(self.max_turns), words, words, self.filters[-1])
        self.W3 = self.add_weight((math.prod(self.grid), 1), "orthogonal", name="W3")
        self.b3 = self.add_weight((1,), "zeros", name="b3")

    def call(self, matches, cell_mask=None):
        self._check_sizes(matches[0].shape)
        B, N, *volume = ops.shape(matches[0])
        channels_CPTKJ = ops.stack([ops.reshape(match, (-1, *volume)) for match in matches])
        # This is much faster than a stack on the last axis.
        x = ops.transpose(channels_CPTKJ, (1, 2, 3, 4, 0))
        if self.masking == "release":
            x = x * self.scale
            for convolution in self.convolutions:
                x = max_pool_3d(convolution(x))
        else:
            if cell_mask is None:
                mask = ops.ones_like(x[..., 0], "bool")
            else:
                mask = ops.reshape(cell_mask, (-1, *volume))
            first, second = self.convolutions
            # `conv(scale x)` is the same with a scaled kernel, which is smaller than the image.
            x, mask = convolve_and_pool(x, mask, first.kernel * self.scale, first.bias)
            x, mask = convolve_and_pool(x, mask, second.kernel, second.bias)

        # `W3` has a weight for each cell of the largest image. A smaller one uses the first.
        _, t, k, j, _ = ops.shape(x)
        W3_TKJC = ops.reshape(ops.cast(self.W3, "float32"), self.grid)[:t, :k, :j]
        logits = ops.einsum("ptkjc,tkjc->p", ops.cast(x, "float32"), W3_TKJC)
        return ops.reshape(logits + ops.cast(self.b3, "float32"), (B, N))

    def _check_sizes(self, shape):
        limits = (self.max_turns, self.max_words, self.max_words)
        for axis, (size, largest) in enumerate(zip(shape[2:], limits, strict=True), 2):
            if size is not None and size > largest:
                raise ValueError(
                    f"An image must have at most {self.max_turns} turns of {self.max_words} words. "
                    f"Received: matches of shape {tuple(shape)}, axis {axis} is too long"
                )

    def compute_output_spec(self, matches, cell_mask=None):
        # JAX cannot trace `call` with unknown sizes: it compares sizes, and cuts W3 to them.
        return keras.KerasTensor(matches[0].shape[:2], dtype="float32")
