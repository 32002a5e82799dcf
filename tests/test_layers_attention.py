"""`layers.attention` against loops from its equations (Bahdanau et al., Luong et al. 2015, Vaswani et al. 2017)."""

import keras
import numpy as np
import pytest
from helpers import check_saves_and_loads, randomised, to_numpy
from reference_recurrent import STEPS, attention_in_loops

from layers.attention import SCORES, Attention, AttentionCell

B, T, S, Q, D, A = 2, 3, 5, 7, 11, 13  # batch, queries, keys, features of a query, of a memory entry, hidden layer
E = 17  # features of a word
LENGTHS = (5, 3)


def inputs(score, seed=0):
    """Query, memory, mask: the second memory has two entries of padding."""
    rng = np.random.default_rng(seed)
    size = Q if "dot" in score else D
    query, memory = (rng.normal(0, 0.7, (B, n, d)).astype("float32") for n, d in ((T, Q), (S, size)))
    return query, memory, np.arange(S) < np.array(LENGTHS)[:, None]


def built(score, units=A):
    layer = Attention(score, units)
    layer.build(*(x.shape for x in inputs(score)[:2]))
    return randomised(layer, 1)


# === Attention ===


@pytest.mark.parametrize("score", SCORES)
def test_attention_matches_its_equations(score):
    query, memory, mask = inputs(score)
    layer = built(score)
    c, a = map(to_numpy, layer(query, memory, mask))
    assert c.shape == (B, T, memory.shape[-1]) and a.shape == (B, T, S)
    for b, n in enumerate(LENGTHS):
        contexts, weights = attention_in_loops(query[b], memory[b, :n], layer)
        assert np.ptp(weights, axis=1).min() > 0.05  # they look at something
        np.testing.assert_allclose(c[b], contexts, atol=1e-5)
        np.testing.assert_allclose(a[b, :, :n], weights, atol=1e-5)
        np.testing.assert_array_equal(a[b, :, n:], 0.0)


@pytest.mark.parametrize("score", SCORES)
def test_attention_ignores_padding(score):
    query, memory, mask = inputs(score)
    layer = built(score)
    c, a = map(to_numpy, layer(query, memory, mask))
    for garbage in (0.0, -40.0, 40.0):
        padded = np.pad(np.where(mask[..., None], memory, garbage), ((0, 0), (0, 2), (0, 0)), constant_values=garbage)
        found, weights = map(to_numpy, layer(query, padded, np.pad(mask, ((0, 0), (0, 2)))))
        np.testing.assert_allclose(found, c, atol=1e-6)
        np.testing.assert_allclose(weights[..., :S], a, atol=1e-6)
        np.testing.assert_array_equal(weights[..., S:], 0.0)


@pytest.mark.parametrize("score", SCORES)
def test_attention_on_nothing_gives_zeros(score):
    query, memory, mask = inputs(score)
    mask[0] = False
    c, a = map(to_numpy, built(score)(query, memory, mask))
    np.testing.assert_array_equal(c[0], 0.0)
    np.testing.assert_array_equal(a[0], 0.0)
    np.testing.assert_allclose(a[1].sum(axis=-1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("score", SCORES)
def test_attention_with_keys_is_that_without(score):
    query, memory, mask = inputs(score)
    layer = built(score)
    keys = layer.keys(memory)
    assert keys.shape == (B, S, {"additive": A, "general": Q}.get(score, Q))
    for found, expected in zip(layer(query, memory, mask, keys), layer(query, memory, mask), strict=True):
        np.testing.assert_allclose(to_numpy(found), to_numpy(expected), atol=1e-6)
    # They are what is looked at: those of another memory give other weights.
    other, _ = layer(query, memory, mask, layer.keys(memory[:, ::-1]))
    assert np.abs(to_numpy(other) - to_numpy(layer(query, memory, mask)[0])).max() > 0.01


def test_attention_has_the_weights_of_its_score():
    shapes = {score: {w.name: tuple(w.shape) for w in built(score).trainable_weights} for score in SCORES}
    assert shapes == {
        "additive": {"W_s": (Q, A), "W_h": (D, A), "v": (A,)},
        "dot": {},
        "scaled_dot": {},
        "general": {"W": (D, Q)},
    }
    assert [tuple(w.shape) for w in built("additive", None).trainable_weights] == [(Q, Q), (D, Q), (Q,)]


@pytest.mark.parametrize("score", SCORES)
def test_attention_knows_its_shapes(score):
    size = Q if "dot" in score else D
    query, memory, mask = keras.Input((None, Q)), keras.Input((S, size)), keras.Input((S,), dtype="bool")
    c, a = built(score)(query, memory, mask)
    assert c.shape == (None, None, size) and a.shape == (None, None, S)


@pytest.mark.parametrize("policy", ("mixed_float16", "mixed_bfloat16"))
@pytest.mark.parametrize("score", SCORES)
def test_attention_in_half_precision_is_near_float32(score, policy):
    exact = built(score)
    keras.config.set_dtype_policy(policy)  # tests/conftest.py sets it back
    layer = built(score)
    for found, expected in zip(layer(*inputs(score)), exact(*inputs(score)), strict=True):
        assert keras.backend.standardize_dtype(found.dtype) == policy.removeprefix("mixed_")
        np.testing.assert_allclose(to_numpy(keras.ops.cast(found, "float32")), to_numpy(expected), atol=0.03)


def test_attention_rejects_another_score():
    with pytest.raises(ValueError, match=r"^score must be one of \('additive', .*\)\. Received: score='cosine'$"):
        Attention("cosine")


@pytest.mark.parametrize("score", ("dot", "scaled_dot"))
def test_attention_rejects_sizes_that_do_not_agree(score):
    with pytest.raises(ValueError, match=rf"^score='{score}' needs query and memory of one size\. Received: 7 and 11$"):
        Attention(score).build((B, T, Q), (B, S, D))


@pytest.mark.parametrize("score", SCORES)
def test_attention_saves_and_loads(score):
    check_saves_and_loads(built(score), *inputs(score), score=score, units=A)


# === The cell ===

CELLS = {
    "gru": lambda: keras.layers.GRUCell(Q, reset_after=False),
    "lstm": lambda: keras.layers.LSTMCell(Q),
}


def built_cell(kind, score="additive"):
    layer = AttentionCell(CELLS[kind](), Attention(score, A, name="look"), name="first")
    layer.build_for(E, Q if "dot" in score else D)
    return randomised(layer, 2)


def cell_inputs(kind, layer, score="additive"):
    """The word before, the list of states."""
    _, memory, mask = inputs(score)
    rng = np.random.default_rng(3)
    own = [rng.normal(0, 0.7, (B, Q)).astype("float32") for _ in range(2 if kind == "lstm" else 1)]
    y = rng.normal(0, 0.7, (B, E)).astype("float32")
    return y, [*own, to_numpy(layer.attention.keys(memory)), memory, mask.astype("float32")]


@pytest.mark.parametrize("score", ("additive", "dot"))
@pytest.mark.parametrize("kind", CELLS)
def test_attention_cell_matches_its_equations(kind, score):
    layer = built_cell(kind, score)
    y, states = cell_inputs(kind, layer, score)
    found, after = layer(y, states)
    looked, weights = map(to_numpy, layer.attend(states))
    assert found.shape == (B, Q) and len(after) == len(states) == (5 if kind == "lstm" else 4)
    own = states[:-3]
    for b, n in enumerate(LENGTHS):
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
def test_attention_cell_counts_parameters(kind):
    gates = {"gru": 3, "lstm": 4}[kind]
    layer = built_cell(kind)
    assert sum(w.numpy().size for w in layer.trainable_weights) == gates * Q * (E + D + Q + 1) + (Q + D + 1) * A
    assert layer.state_size == [Q] * (2 if kind == "lstm" else 1) + [-1, -1, -1] and layer.output_size == Q


@pytest.mark.parametrize("kind", CELLS)
def test_attention_cell_saves_and_loads(kind):
    layer = built_cell(kind)
    stored = layer.get_config()
    again = AttentionCell.from_config(layer.get_config())
    assert again.get_config() == stored
    assert again.name == "first" and again.attention.name == "look" and again.cell.units == Q
    again.set_weights(layer.get_weights())
    y, states = cell_inputs(kind, layer)
    np.testing.assert_array_equal(to_numpy(again(y, states)[0]), to_numpy(layer(y, states)[0]))
