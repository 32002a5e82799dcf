"""The decoder of `layers.recurrent` against loops, at once and word by word."""

import itertools

import keras
import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import B, D, E, S, T, decoder, floats
from reference_recurrent import decode_in_loops, sigmoid

from layers.attention import Attention, AttentionCell
from layers.recurrent import AFTER, BEFORE, STATES

ATTENTIONS = ("none", *BEFORE, *AFTER)
DECODERS = [
    {"attention": attention, "cell": cell, "layers": layers}
    for attention, cell, layers in itertools.product(ATTENTIONS, STATES, (1, 2))
]
WHOLE = [{"attention": attention, "cell": "gru", "layers": 2, "output": "all"} for attention in ATTENTIONS]


@pytest.mark.parametrize("settings", [*DECODERS, *WHOLE], ids=str)
def test_decoder_and_its_steps_match_loops(settings):
    case = decoder(**settings)
    layer, (y, memory, mask, states) = case.build(), case.inputs.values()
    found = to_numpy(layer(y, memory, mask, states))
    cache, after, stepped, looks = layer.encoder_cache(memory, mask, states), states, [], []
    for t in range(T):
        output, after, weights = layer.step(y[:, t], after, cache)
        stepped.append(to_numpy(output))
        looks.append(weights)
    for b, n in enumerate(mask.sum(axis=1)):
        outputs, last, weights = decode_in_loops(y[b], memory[b, :n], [state[b] for state in states], layer)
        np.testing.assert_allclose(found[b], outputs, atol=1e-5)
        np.testing.assert_allclose(np.array(stepped)[:, b], outputs, atol=1e-5)
        for state, expected in zip(after, last, strict=True):
            np.testing.assert_allclose(to_numpy(state)[b], expected, atol=1e-5)
        if settings["attention"] == "none":
            assert looks == [None] * T
        else:
            assert np.ptp(weights, axis=1).min() > 0.005
            padded = np.pad(weights, ((0, 0), (0, S - n)))
            np.testing.assert_allclose(np.array([to_numpy(look)[b] for look in looks]), padded, atol=1e-5)


def test_dot_attention_is_that_of_the_article():
    """Sections 2.2 to 2.4 of the article, one step: score with `s_{t-1}`, context in the gates, reset gate first."""
    case = decoder("dot")
    layer, (y, memory, mask, [s]) = case.build(), case.inputs.values()
    found, _, _ = layer.step(y[:, 0], [s], layer.encoder_cache(memory, mask, [s]))
    W, U, b = (w.astype("float64") for w in layer.get_weights())
    assert W.shape == (E + D, 3 * D)  # Keras has the gates in the order z, r, candidate
    (W_yz, W_yr, W_ys), (W_cz, W_cr, W_cs) = np.split(W[:E], 3, axis=1), np.split(W[E:], 3, axis=1)
    (W_sz, W_sr, W_ss), (b_z, b_r, b_s) = np.split(U, 3, axis=1), np.split(b.reshape(-1), 3)
    for i, n in enumerate(mask.sum(axis=1)):
        e = np.array([s[i] @ h for h in memory[i, :n]])
        alpha = np.exp(e) / np.exp(e).sum()
        c = sum(weight * h for weight, h in zip(alpha, memory[i, :n], strict=True))
        r = sigmoid(y[i, 0] @ W_yr + s[i] @ W_sr + c @ W_cr + b_r)
        z = sigmoid(y[i, 0] @ W_yz + s[i] @ W_sz + c @ W_cz + b_z)
        candidate = np.tanh(y[i, 0] @ W_ys + (s[i] * r) @ W_ss + c @ W_cs + b_s)
        np.testing.assert_allclose(to_numpy(found)[i], z * s[i] + (1 - z) * candidate, atol=1e-5)


def test_attention_cell_saves_and_loads():
    cell = AttentionCell(keras.layers.LSTMCell(D), Attention("additive", S, name="look"), True, name="first")
    cell.build_for(E, D)
    assert cell.state_size == [D, D, -1, -1, -1] and cell.output_size == 2 * D
    again = AttentionCell.from_config(cell.get_config())
    assert again.get_config() == cell.get_config() and again.attention.name == "look"
    again.set_weights(cell.get_weights())
    states = [*floats(2, B, D), floats(B, T, S), floats(B, T, D), np.ones((B, T), "float32")]
    for found, expected in zip(again(floats(B, E), states)[:1], cell(floats(B, E), states)[:1], strict=True):
        np.testing.assert_array_equal(to_numpy(found), to_numpy(expected))
