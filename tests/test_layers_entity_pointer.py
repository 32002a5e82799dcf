"""`layers.entity_pointer` against loops from its docstring."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import B, E, S, T, built
from reference import point_in_loops, sums_in_loops

from layers.entity_pointer import EntityPointer


@pytest.fixture
def pointed():
    """The layer and its inputs: a turn saw nothing, a sentence mentions nothing, nothing mentions the last entity.

    The first candidate has no entity, the second only that one.
    """
    layer, (state, sentences, seen, mentions, *time) = built("EntityPointer")
    seen, mentions, entities = seen.copy(), mentions.copy(), layer.entity_CK.numpy()
    seen[1, 2], mentions[0, 1], mentions[..., E - 1], entities[0], entities[1] = False, 0, 0, 0, [E, 0]
    layer.entity_CK.assign(entities)
    return layer, (state, sentences, seen, mentions, *time)


def test_entity_pointer_matches_equations(pointed):
    layer, inputs = pointed
    state, sentences, seen, mentions, vectors, distances = inputs
    gain, score = map(to_numpy, layer(*inputs))
    for b, t in np.ndindex(B, T):
        timed = np.array([sentences[b, m] + vectors[distances[b, t, m].argmax()] for m in range(S)], "float64")
        expected = point_in_loops(state[b, t], timed, seen[b, t], mentions[b], layer)
        np.testing.assert_allclose(score[b, t], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(gain[b, t], sums_in_loops(expected, layer.entity_CK.numpy()), rtol=1e-4, atol=1e-4)
    assert np.abs(gain[0]).max() > 1.0
    assert not score[..., E - 1].any() and not score[1, 2].any() and not gain[..., :2].any()


def test_entity_pointer_knows_no_entity_by_itself(pointed):
    """Entities in another order have the same scores in that order."""
    layer, (state, sentences, seen, mentions, *time) = pointed
    order = np.random.default_rng(3).permutation(E)
    _, score = layer(state, sentences, seen, mentions, *time)
    _, found = layer(state, sentences, seen, mentions[..., order], *time)
    np.testing.assert_allclose(to_numpy(found), to_numpy(score)[..., order], rtol=1e-4, atol=1e-4)


def test_entity_pointer_passes_scores_on_through_a_fact():
    """Entity 1 was offered, and a fact names it beside entity 2: only `a_3 * passed` tells 2 from 3."""
    layer = EntityPointer((1, 1))
    layer.build((1, 1, 1))
    state, vectors, distances = np.ones((1, 1, 1), "float32"), np.zeros((1, 1), "float32"), np.ones((1, 1, 3, 1))
    sentences = np.array([[[2.0], [1.0], [1.0]]], "float32")
    mentions = np.array([[[1, 0, 0], [1, 1, 0], [0, 0, 1]]], "uint8")
    args = sentences, np.ones((1, 1, 3), bool), mentions, vectors, distances.astype("float32")
    for kernel, expected in (
        ([0, 1, 0], [3, 1, 1]),  # by the sentences alone
        ([5, 1, 0], [3, 1, 1]),
        ([5, 0, 1], [2 * 15 + 20, 20, 5]),  # first = [15, 5, 5], passed = [15, 20, 5]
        ([5, 1, 1], [53, 21, 6]),
    ):
        layer.set_weights([np.reshape(kernel, (1, 3, 1)), np.zeros((1, 1))])
        np.testing.assert_allclose(to_numpy(layer(state, *args)[1])[0, 0], expected, atol=1e-5)
