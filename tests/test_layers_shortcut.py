"""`layers.shortcut` against loops from the paper (MEMMA, equations 12 to 14)."""

import numpy as np
import pytest
from helpers import randomised, to_numpy
from layer_cases import B, D, floats
from reference import ACTIVATIONS, join_in_loops

from layers.shortcut import KINDS, Shortcut


@pytest.mark.parametrize("settings", [{}, *({"kind": kind, "activation": a} for kind in KINDS for a in ACTIVATIONS)])
def test_shortcut_matches_equations_12_to_14(settings):
    layer, o, x = Shortcut(**settings), floats(B, D), floats(B, D, seed=1)
    layer.build(o.shape, x.shape)
    randomised(layer, 1)
    for found, o_b, x_b in zip(to_numpy(layer(o, x)), o, x, strict=True):
        np.testing.assert_allclose(found, join_in_loops(o_b, x_b, layer), atol=1e-5)
    gated = settings.get("kind", "gated") == "gated"
    assert [w.shape for w in layer.trainable_weights] == ([(D, D), (D,)] if gated else [])


def test_shortcut_gate_of_tanh_also_subtracts():
    """The paper's gate is the default."""
    layer = Shortcut()
    assert (layer.kind, layer.activation) == ("gated", "tanh")
    o, x = np.full((1, D), 2.0, "float32"), np.full((1, D), 3.0, "float32")
    layer(o, x)
    for bias, expected in ((-40.0, 2 * 3.0 - 2.0), (0.0, 3.0), (40.0, 2.0)):
        layer.gate.set_weights([np.zeros((D, D)), np.full(D, bias)])
        np.testing.assert_allclose(to_numpy(layer(o, x)), np.full((1, D), expected), atol=1e-5)
