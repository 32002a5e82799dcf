"""`layers.attention` beside its equations: keys by themselves, and the cell against loops (Bahdanau et al. 2015)."""

import keras
import numpy as np
import pytest
from helpers import randomised, to_numpy
from layer_cases import B, D, E, J, S, T, built, floats
from reference_recurrent import STEPS, attention_in_loops

from layers.attention import SCORES, Attention, AttentionCell


@pytest.mark.parametrize("score", SCORES)
def test_attention_with_keys_is_that_without(score):
    layer, (query, memory, mask) = built(f"Attention {score}")
    keys = layer.keys(memory)
    assert keys.shape == (B, S, {"additive": J, "general": D}.get(score, D))
    for found, expected in zip(layer(query, memory, mask, keys), layer(query, memory, mask), strict=True):
        np.testing.assert_allclose(to_numpy(found), to_numpy(expected), atol=1e-6)
    # The scores come from them: those of another memory give other weights.
    other, _ = layer(query, memory, mask, layer.keys(memory[:, ::-1]))
    assert np.abs(to_numpy(other) - to_numpy(layer(query, memory, mask)[0])).max() > 0.01


# === The cell ===

CELLS = {
    "gru": lambda: keras.layers.GRUCell(D, reset_after=False),
    "lstm": lambda: keras.layers.LSTMCell(D),
}


def built_cell(kind, score="additive"):
    """A cell, the word before, and the list of states."""
    _, (_, memory, mask) = built(f"Attention {score}")
    layer = AttentionCell(CELLS[kind](), Attention(score, J, name="look"), name="first")
    layer.build_for(T, memory.shape[-1])
    randomised(layer, 2)
    own = [floats(B, D, seed=seed) for seed in range(2 if kind == "lstm" else 1)]
    return layer, floats(B, T, seed=5), [*own, to_numpy(layer.attention.keys(memory)), memory, mask.astype("float32")]


@pytest.mark.parametrize("score", ("additive", "dot"))
@pytest.mark.parametrize("kind", CELLS)
def test_attention_cell_matches_its_equations(kind, score):
    layer, y, states = built_cell(kind, score)
    found, after = layer(y, states)
    looked, weights = map(to_numpy, layer.attend(states))
    own = states[:-3]
    for b, n in enumerate(states[-1].sum(axis=1).astype(int)):
        c, a = attention_in_loops(own[0][b][None], states[-2][b, :n], layer.attention)
        expected = STEPS[kind](y[b], c[0], *(state[b] for state in own), layer.cell)
        np.testing.assert_allclose(looked[b], c[0], atol=1e-5)
        np.testing.assert_allclose(weights[b], np.pad(a[0], (0, S - n)), atol=1e-5)
        np.testing.assert_allclose(to_numpy(found)[b], expected[0], atol=1e-5)
        for state, e in zip(after[:-3], expected, strict=True):
            np.testing.assert_allclose(to_numpy(state)[b], e, atol=1e-5)
    for state, before in zip(after[-3:], states[-3:], strict=True):
        np.testing.assert_array_equal(to_numpy(state), before)


@pytest.mark.parametrize("kind", CELLS)
def test_attention_cell_saves_and_loads(kind):
    layer, y, states = built_cell(kind)
    gates = {"gru": 3, "lstm": 4}[kind]
    assert layer.count_params() == gates * D * (T + E + D + 1) + (D + E + 1) * J
    assert layer.state_size == [D] * (2 if kind == "lstm" else 1) + [-1, -1, -1] and layer.output_size == D
    stored = layer.get_config()
    again = AttentionCell.from_config(layer.get_config())
    assert again.get_config() == stored
    assert again.name == "first" and again.attention.name == "look" and again.cell.units == D
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(to_numpy(again(y, states)[0]), to_numpy(layer(y, states)[0]))
