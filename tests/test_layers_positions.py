"""`layers.positions` against loops from the definition (Vaswani et al. 2017, section 3.5)."""

import keras
import numpy as np
import pytest
from helpers import check_saves_and_loads, set_random_weights, to_numpy
from reference import signal_in_loops

from layers.positions import PositionalEncoding, sinusoids

A, B, K, D = 2, 3, 5, 7  # leading axes, words, features
MAX_WORDS = 11


def built(**settings):
    layer = PositionalEncoding(MAX_WORDS, **settings)
    layer.build((A, B, K, D))
    return layer


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).normal(size=(A, B, K, D)).astype("float32")


@pytest.mark.parametrize("dimension", (2, 3, 7, 10))
@pytest.mark.parametrize("max_timescale", (10.0, 1e4))
def test_sinusoids_match_definition(dimension, max_timescale):
    found = sinusoids(MAX_WORDS, dimension, max_timescale)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, signal_in_loops(MAX_WORDS, dimension, max_timescale), atol=1e-6)


@pytest.mark.parametrize("max_timescale", (10.0, 1e4))
def test_positional_encoding_matches_equation(x, max_timescale):
    layer = set_random_weights(built(max_timescale=max_timescale), 1)
    signal = signal_in_loops(MAX_WORDS, D, max_timescale)
    found, weight = to_numpy(layer(x)), layer.weight_K.numpy()
    for a, b, k in np.ndindex(A, B, K):
        np.testing.assert_allclose(found[a, b, k], x[a, b, k] + weight[k] * signal[k], atol=1e-5)


def test_positional_encoding_starts_as_identity(x):
    np.testing.assert_array_equal(to_numpy(built()(x)), x)


def test_positional_encoding_ignores_padding(x):
    layer = set_random_weights(built(), 1)
    padded = np.pad(x, [(0, 0)] * 2 + [(0, MAX_WORDS - K), (0, 0)], constant_values=9.0)
    np.testing.assert_allclose(to_numpy(layer(padded))[:, :, :K], to_numpy(layer(x)), atol=1e-6)


@pytest.mark.parametrize("policy", ("mixed_float16", "mixed_bfloat16"))
def test_positional_encoding_keeps_half_precision(x, policy):
    exact, half = set_random_weights(built(), 1), set_random_weights(built(dtype=policy), 1)
    found = half(x)
    assert keras.backend.standardize_dtype(found.dtype) == policy.removeprefix("mixed_")
    np.testing.assert_allclose(to_numpy(keras.ops.cast(found, "float32")), to_numpy(exact(x)), atol=0.05)


def test_positional_encoding_saves_and_loads(x):
    settings = {"max_timescale": 7.0, "name": "positional"}
    check_saves_and_loads(set_random_weights(built(**settings), 1), x, max_words=MAX_WORDS, **settings)
