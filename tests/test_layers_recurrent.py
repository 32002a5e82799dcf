"""The decoder of `layers.recurrent` against loops, at once and word by word."""

import itertools

import keras
import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import D, E, S, T, decoder
from reference_recurrent import decode_in_loops

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


def test_attention_cell_has_the_sizes_of_its_cell_and_context():
    cell = AttentionCell(keras.layers.LSTMCell(D), Attention("additive", S, name="look"), True, name="first")
    cell.build_for(E, D)
    assert cell.state_size == [D, D, -1, -1, -1] and cell.output_size == 2 * D
