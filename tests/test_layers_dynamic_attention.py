"""`layers.dynamic_attention` against loops: attention inside of a bidirectional LSTM."""

import keras
import numpy as np
import pytest
from helpers import randomised, to_numpy
from reference_recurrent import sigmoid

from layers.dynamic_attention import DynamicBiLSTM

B, T, J, D, H = 2, 5, 3, 7, 4  # batch, context words, query words, features, units
LENGTHS_T, LENGTHS_J = (5, 3), (2, 3)


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def mask(lengths, width):
    return np.arange(width) < np.array(lengths)[:, None]


@pytest.fixture
def layer():
    layer = DynamicBiLSTM(H)
    layer.build((B, T, D), (B, J, D))
    return randomised(layer, 1, 0.4)


def read_in_loops(h, u, cell):
    """One direction over one example without padding."""
    W_s, W_h, v = (np.asarray(w, "float64") for w in (cell.attention.W_s, cell.attention.W_h, cell.attention.v))
    kernel, recurrent, bias = (w.astype("float64") for w in cell.cell.get_weights())
    s, c, states = np.zeros(H), np.zeros(H), []
    for h_t in h:
        e = np.array([v @ np.tanh(np.concatenate([h_t, s]) @ W_s + u_j @ W_h) for u_j in u])
        u_t = (np.exp(e) / np.exp(e).sum()) @ u
        x = np.concatenate([h_t, u_t, h_t * u_t])
        i, f, g, o = np.split(x @ kernel + s @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        s = sigmoid(o) * np.tanh(c)
        states.append(s)
    return np.array(states)


def test_dynamic_attention_matches_loops(layer):
    context, query = array(B, T, D), array(B, J, D, seed=1)
    found = to_numpy(layer(context, query, mask(LENGTHS_T, T), mask(LENGTHS_J, J)))
    assert found.shape == (B, T, 2 * H)
    forward, backward = (rnn.cell for rnn in layer.directions)
    for b, (t, j) in enumerate(zip(LENGTHS_T, LENGTHS_J, strict=True)):
        h, u = context[b, :t].astype("float64"), query[b, :j].astype("float64")
        expected = [read_in_loops(h, u, forward), read_in_loops(h[::-1], u, backward)[::-1]]
        np.testing.assert_allclose(found[b, :t], np.concatenate(expected, axis=1), atol=1e-5)
        assert not found[b, t:].any()


def test_dynamic_attention_ignores_padding(layer):
    context, query, masks = array(B, T, D), array(B, J, D, seed=1), (mask(LENGTHS_T, T), mask(LENGTHS_J, J))
    before = to_numpy(layer(context, query, *masks))
    context[1, 3:], query[0, 2:] = 50.0, -50.0
    np.testing.assert_allclose(to_numpy(layer(context, query, *masks)), before, atol=1e-6)
    query[0, 0] *= -1
    changed = np.abs(to_numpy(layer(context, query, *masks)) - before).max(axis=(1, 2))
    assert changed[0] > 1e-3 and changed[1] < 1e-6


def test_dynamic_attention_knows_its_shape_and_is_made_again(layer):
    assert DynamicBiLSTM.from_config(layer.get_config()).units == H
    inputs = [keras.Input((None, D)), keras.Input((None, D)), *[keras.Input((None,), dtype="bool")] * 2]
    assert DynamicBiLSTM(H)(*inputs).shape == (None, None, 2 * H)
