"""`layers.shortcut` against loops from the paper (MEMMA, equations 12 to 14)."""

import keras
import numpy as np
import pytest
from helpers import check_saves_and_loads, randomised, to_numpy
from reference import ACTIVATIONS, join_in_loops

from layers.shortcut import KINDS, Shortcut

B, T, D = 2, 3, 7  # dialogs, turns, features


@pytest.fixture(scope="module")
def o_x():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(B, T, D)).astype("float32") for _ in range(2)]


def built(**settings):
    layer = Shortcut(**settings)
    layer.build((B, T, D), (B, T, D))
    return randomised(layer, 1)


@pytest.mark.parametrize(
    "settings", [{}, *({"kind": k, "activation": a} for k in ("gated", "identity", "none") for a in ACTIVATIONS)]
)
def test_shortcut_matches_equations_12_to_14(o_x, settings):
    o, x = o_x
    layer = built(**settings)
    found = to_numpy(layer(o, x))
    assert found.shape == (B, T, D)
    for b, t in np.ndindex(B, T):
        np.testing.assert_allclose(found[b, t], join_in_loops(o[b, t], x[b, t], layer), atol=1e-5)


def test_shortcut_is_the_papers_by_default():
    assert (Shortcut().kind, Shortcut().activation) == ("gated", "tanh")


def test_shortcut_gate_of_tanh_also_subtracts():
    layer = built()
    o, x = np.full((1, D), 2.0, "float32"), np.full((1, D), 3.0, "float32")
    kernel, bias = layer.gate.weights
    kernel.assign(np.zeros((D, D)))
    for b, expected in ((-40.0, 2 * 3.0 - 2.0), (0.0, 3.0), (40.0, 2.0)):
        bias.assign(np.full(D, b))
        np.testing.assert_allclose(to_numpy(layer(o, x)), np.full((1, D), expected), atol=1e-5)


def test_shortcut_has_weights_where_it_has_a_gate():
    assert [tuple(w.shape) for w in built(kind="gated").trainable_weights] == [(D, D), (D,)]
    assert not built(kind="identity").weights and not built(kind="none").weights


def test_shortcut_rejects_kind():
    with pytest.raises(ValueError, match=r"kind must be one of .*'none'\)\. Received: kind='highway'$"):
        Shortcut("highway")


def test_shortcut_knows_its_shape():
    assert built()(keras.Input((None, D)), keras.Input((None, D))).shape == (None, None, D)


@pytest.mark.parametrize("kind", KINDS)
def test_shortcut_saves_and_loads(o_x, kind):
    settings = {"kind": kind, "activation": "sigmoid", "name": "join"}
    check_saves_and_loads(built(**settings), *o_x, **settings)
