"""Sinusoidal positions (Vaswani et al. 2017, section 3.5), of the paper and of DAM's release.

Shape suffixes:  ... leading axes   K words   D features
"""

import math

import keras
import numpy as np
from keras import ops


def sinusoids(length, dimension, max_timescale):
    """Sines and cosines of the positions at geometrically spaced wavelengths.

        signal[p] = [sin(p / s_0), .., sin(p / s_m), cos(p / s_0), .., cos(p / s_m)]
        s_i       = max_timescale^(i / m)

    Returns NumPy float32 `(length, dimension)`. An odd dimension gets a last column of zeros.
    `max_timescale` is the longest wavelength divided by 2 pi.

    >>> sinusoids(2, 4, 10.0).round(3).tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.8410000205039978, 0.10000000149011612, 0.5400000214576721,
    0.9950000047683716]]
    """
    half = dimension // 2
    log_step = math.log(max_timescale) / max(half - 1, 1)
    scales = np.exp(np.arange(half) * log_step)
    angles = np.arange(length)[:, None] / scales
    signal = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return np.pad(signal, ((0, 0), (0, dimension % 2))).astype("float32")


def interleaved_sinusoids(length, dimension):
    """Sines and cosines of the positions, interleaved: NumPy float32 `(length, dimension)`.

        signal[p, 2i] = sin(p / 10000^(2i / d)),   signal[p, 2i + 1] = cos(p / 10000^(2i / d))

    >>> interleaved_sinusoids(2, 4).round(3).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8410000205039978, 0.5400000214576721, 0.009999999776482582, 1.0]]
    """
    feature = np.arange(dimension)
    even = feature // 2 * 2
    angles = np.arange(length)[:, None] / 10_000.0 ** (even / dimension)
    signal = np.where(feature == even, np.sin(angles), np.cos(angles))
    return signal.astype("float32")


@keras.saving.register_keras_serializable("colloquy")
class PositionalEncoding(keras.layers.Layer):
    """Adds sinusoids to word vectors, each position weighted by a learnt number, at first zero.

        output_k = x_k + lambda_k signal_k

    From float `(..., K, D)`, `K <= max_words`, to the same shape and dtype. Source: operations.py
    of DAM's release.

    Args:
        max_words: Number of weights, one per position.
    """

    def __init__(self, max_words, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.max_words = max_words

    def build(self, x_shape):
        self.weight_K = self.add_weight((self.max_words,), "zeros", name="lambda")
        self.signal_KD = sinusoids(self.max_words, x_shape[-1], max_timescale=10.0)

    def call(self, x):
        K = ops.shape(x)[-2]
        signal_KD = ops.convert_to_tensor(self.signal_KD, dtype=x.dtype)[:K]
        return x + self.weight_K[:K, None] * signal_KD

    def compute_output_shape(self, x_shape):
        return x_shape
