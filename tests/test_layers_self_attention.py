"""`layers.self_attention` against loops."""

import keras
import numpy as np
import pytest
from helpers import randomised, to_numpy

from layers.self_attention import SelfAttention

B, T, D, LENGTHS = 3, 5, 4, (5, 3, 1)


def texts():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


def mask():
    return np.arange(T) < np.array(LENGTHS)[:, None]


@pytest.fixture
def layer():
    layer = SelfAttention()
    layer.build((B, T, D))
    return randomised(layer, 1, 0.4)


def test_self_attention_matches_loops(layer):
    m, found = texts().astype("float64"), to_numpy(layer(texts(), mask()))
    w, W, b = (np.asarray(weight, "float64") for weight in layer.get_weights())
    for row, length in enumerate(LENGTHS):
        for t in range(length):
            others = [m[row, k] for k in range(length) if k != t]
            scores = [w.ravel() @ np.concatenate([m[row, t], m_k, m[row, t] * m_k]) for m_k in others]
            share = np.exp(scores) / np.sum(np.exp(scores))
            taken = sum((a * m_k for a, m_k in zip(share, others, strict=True)), np.zeros(D))
            expected = m[row, t] + np.concatenate([m[row, t], taken, m[row, t] * taken]) @ W + b
            np.testing.assert_allclose(found[row, t], expected, atol=1e-5)


def test_self_attention_ignores_padding(layer):
    x, before = texts(), to_numpy(layer(texts(), mask()))
    x[1, 3:], x[2, 1:] = 50.0, -50.0
    found = to_numpy(layer(x, mask()))
    np.testing.assert_allclose(found[mask()], before[mask()], atol=1e-6)
    x[1, 0] *= -1
    assert np.abs(to_numpy(layer(x, mask())) - found)[1, 1:3].max() > 1e-3


def test_self_attention_starts_as_the_identity():
    layer = SelfAttention()
    np.testing.assert_array_equal(to_numpy(layer(texts(), mask())), texts())


def test_self_attention_knows_its_shape_and_is_made_again(layer):
    assert SelfAttention.from_config(SelfAttention("glorot").get_config()).match.start == "glorot"
    inputs = [keras.Input((None, D)), keras.Input((None,), dtype="bool")]
    assert SelfAttention()(*inputs).shape == (None, None, D)
