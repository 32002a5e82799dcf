"""`layers.memory_attention` against loops from the paper (MEMMA, equations 9 to 11)."""

import keras
import numpy as np
import pytest
from helpers import check_saves_and_loads, randomised, to_numpy
from reference import hop_in_loops

from layers.memory_attention import MemoryAttention

B, T, M, R, H, E = 2, 3, 5, 7, 11, 13  # dialogs, turns, sentences, distances in time, heads, features of a head
D = H * E
SIZES = ({"heads": H}, {"heads": 1}, {"projected": False})


@pytest.fixture(scope="module")
def inputs():
    """Query, memory and mask: one turn remembers all, one a single sentence, one nothing."""
    rng = np.random.default_rng(0)
    mask = rng.random((B, T, M)) < 0.6
    mask[0, 0], mask[0, 1], mask[1, 2] = True, np.arange(M) == 2, False
    return *(rng.normal(0, 0.5, (B, n, D)).astype("float32") for n in (T, M)), mask


@pytest.fixture(scope="module")
def times():
    """Vectors, and distances as numbers."""
    rng = np.random.default_rng(1)
    return rng.normal(0, 0.5, (R, D)).astype("float32"), rng.integers(0, R, (B, T, M))


def one_hot(distances):
    return np.eye(R, dtype="float32")[distances]


def built(**settings):
    layer = MemoryAttention(**settings)
    layer.build((B, T, D), (B, M, D))
    return randomised(layer, 2, 0.07)


@pytest.mark.parametrize("divisor", (1.0, 7.0))
@pytest.mark.parametrize("timed", (False, True))
@pytest.mark.parametrize("settings", SIZES)
def test_memory_attention_matches_equations_9_to_11(inputs, times, settings, timed, divisor):
    query, memory, mask = inputs
    vectors, distances = times
    layer = built(divisor=divisor, **settings)
    o, weights = map(to_numpy, layer(*inputs, vectors, one_hot(distances)) if timed else layer(*inputs))
    assert o.shape == (B, T, D) and weights.shape == (B, layer.heads, T, M)
    for b in range(B):
        # A memory of each turn's own, (T, M, D): every sentence with the vector of its time.
        memories = np.array([memory[b] + (vectors[distances[b, t]] if timed else 0.0) for t in range(T)])
        expected, expected_weights = hop_in_loops(query[b], memories, mask[b], layer)
        assert np.abs(expected).max() > 0.1 and (b or expected_weights[0, 0].max() < 0.99)
        np.testing.assert_allclose(o[b], expected, atol=1e-4)
        np.testing.assert_allclose(weights[b], expected_weights, atol=1e-5)


@pytest.mark.parametrize("settings", SIZES)
def test_memory_attention_with_times_is_attention_over_sentences_with_times(inputs, times, settings):
    """The same layer, one turn at a time, with the vectors added to its memory before."""
    query, memory, mask = inputs
    vectors, distances = times
    layer = built(divisor=2.0, **settings)
    o, weights = map(to_numpy, layer(*inputs, vectors, one_hot(distances)))
    for b, t in np.ndindex(B, T):
        timed = memory[b] + vectors[distances[b, t]]
        o_t, weights_t = layer(query[None, None, b, t], timed[None], mask[None, None, b, t])
        np.testing.assert_allclose(o[b, t], to_numpy(o_t)[0, 0], atol=1e-4)
        np.testing.assert_allclose(weights[b, :, t], to_numpy(weights_t)[0, :, 0], atol=1e-5)
    untimed, _ = layer(*inputs)
    assert np.abs(o - to_numpy(untimed)).max() > 0.1


@pytest.mark.parametrize("settings", SIZES)
def test_memory_attention_ignores_padding(inputs, times, settings):
    query, memory, mask = inputs
    vectors, distances = times
    layer = built(**settings)
    found, found_weights = map(to_numpy, layer(*inputs, vectors, one_hot(distances)))
    for garbage in (0.0, -40.0):
        padded = np.pad(memory, ((0, 0), (0, 2), (0, 0)), constant_values=garbage)
        padded_mask = np.pad(mask, ((0, 0), (0, 0), (0, 2)))
        padded_distances = one_hot(np.pad(distances, ((0, 0), (0, 0), (0, 2)), constant_values=R - 1))
        o, weights = map(to_numpy, layer(query, padded, padded_mask, vectors, padded_distances))
        np.testing.assert_allclose(o, found, atol=1e-5)
        np.testing.assert_allclose(weights[..., :M], found_weights, atol=1e-6)
        np.testing.assert_array_equal(weights[..., M:], 0.0)


@pytest.mark.parametrize("timed", (False, True))
@pytest.mark.parametrize("settings", SIZES)
def test_memory_attention_of_a_turn_without_history_is_zero(inputs, times, settings, timed):
    _, _, mask = inputs
    vectors, distances = times
    o, weights = built(**settings)(*inputs, *((vectors, one_hot(distances)) if timed else ()))
    assert not mask[1, 2].any()
    np.testing.assert_array_equal(to_numpy(o)[1, 2], np.zeros(D))
    np.testing.assert_array_equal(to_numpy(weights)[1, :, 2], 0.0)


def test_memory_attention_counts_parameters():
    """Four square matrices, however many heads; without projections nothing."""
    assert built(heads=H).count_params() == built(heads=1).count_params() == 4 * D * D
    assert not built(projected=False).weights


@pytest.mark.parametrize("settings", SIZES)
def test_memory_attention_knows_its_shape(settings):
    layer = built(**settings)
    query, memory = keras.Input((None, D)), keras.Input((M, D))
    o, weights = layer(query, memory, keras.Input((None, M), dtype="bool"))
    assert o.shape == (None, None, D) and weights.shape == (None, layer.heads, None, M)


def test_memory_attention_rejects_heads():
    with pytest.raises(ValueError, match=rf"multiple of the heads\. Received: features={D}, heads=7$"):
        MemoryAttention(heads=7).build((B, T, D), (B, M, D))


def test_memory_attention_rejects_several_heads_without_projections():
    with pytest.raises(ValueError, match=r"heads need projections\. Received: heads=2, projected=False$"):
        MemoryAttention(heads=2, projected=False)


@pytest.mark.parametrize("settings", ({"heads": H, "projected": True}, {"heads": 1, "projected": False}))
def test_memory_attention_saves_and_loads(inputs, times, settings):
    settings = {**settings, "divisor": 3.0, "name": "attend"}
    check_saves_and_loads(built(**settings), *inputs, times[0], one_hot(times[1]), **settings)
