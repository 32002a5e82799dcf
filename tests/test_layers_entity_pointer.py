"""`layers.entity_pointer` against loops from its docstring."""

import keras
import numpy as np
import pytest
from helpers import check_saves_and_loads, to_numpy
from reference import point_in_loops, sums_in_loops

from layers.entity_pointer import EntityPointer

B, T, M, E, R, C, K, D = 2, 3, 5, 11, 7, 13, 4, 17
# dialogs, turns, sentences, entities, distances in time, candidates, entities of a candidate at most, features


@pytest.fixture(scope="module")
def inputs():
    """State, sentences, what was seen, mentions, vectors and distances of time.

    One turn has seen nothing, one sentence mentions nothing, and nothing mentions the last entity.
    """
    rng = np.random.default_rng(0)
    state, sentences, vectors = (rng.normal(size=s).astype("float32") for s in ((B, T, D), (B, M, D), (R, D)))
    seen, mentions = rng.random((B, T, M)) < 0.6, (rng.random((B, M, E)) < 0.3).astype("uint8")
    seen[1, 2], mentions[0, 1], mentions[..., E - 1] = False, 0, 0
    return state, sentences, seen, mentions, vectors, np.eye(R, dtype="float32")[rng.integers(0, R, (B, T, M))]


def built(**settings):
    layer = EntityPointer((C, K), **settings)
    layer.build((B, T, D))
    rng = np.random.default_rng(1)
    entities = rng.integers(0, E + 1, (C, K))
    entities[0] = 0  # a candidate without an entity
    entities[1] = [E, 0, 0, 0]  # one whose only entity is never mentioned
    layer.set_weights([rng.normal(0, 0.2, (D, 3, D)), entities])
    return layer


def test_entity_pointer_matches_equations(inputs):
    state, sentences, seen, mentions, vectors, distances = inputs
    layer = built()
    gain, score = map(to_numpy, layer(*inputs))
    assert gain.shape == (B, T, C) and score.shape == (B, T, E)
    for b, t in np.ndindex(B, T):
        timed = np.array([sentences[b, m] + vectors[distances[b, t, m].argmax()] for m in range(M)], "float64")
        expected = point_in_loops(state[b, t], timed, seen[b, t], mentions[b], layer)
        np.testing.assert_allclose(score[b, t], expected, rtol=1e-4, atol=1e-4)
        expected = sums_in_loops(expected, layer.entity_CK.numpy())
        np.testing.assert_allclose(gain[b, t], expected, rtol=1e-4, atol=1e-4)
    assert np.abs(gain[0]).max() > 1.0


def test_entity_pointer_leaves_out_what_was_not_mentioned(inputs):
    gain, score = map(to_numpy, built()(*inputs))
    np.testing.assert_array_equal(score[..., E - 1], 0.0)
    np.testing.assert_array_equal(score[1, 2], 0.0)  # a turn that has seen nothing
    np.testing.assert_array_equal(gain[..., :2], 0.0)
    assert (np.abs(gain[0, :, 2:]).max(axis=1) > 0.1).all()


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


def test_entity_pointer_knows_no_entity_by_itself(inputs):
    """Entities in another order have the same scores in that order."""
    state, sentences, seen, mentions, *time = inputs
    layer, order = built(), np.random.default_rng(3).permutation(E)
    _, score = layer(*inputs)
    _, found = layer(state, sentences, seen, mentions[..., order], *time)
    np.testing.assert_allclose(to_numpy(found), to_numpy(score)[..., order], rtol=1e-4, atol=1e-4)


def test_entity_pointer_ignores_padding(inputs):
    """Sentences that do not count, of a batch with a longer dialog, mention everything."""
    state, sentences, seen, mentions, vectors, distances = inputs
    layer = built()
    more = ((0, 0), (0, 2), (0, 0))
    found = layer(
        np.pad(state, more),
        np.pad(sentences, more, constant_values=-40.0),
        np.pad(seen, ((0, 0), (0, 2), (0, 2))),
        np.pad(mentions, more, constant_values=1),
        vectors,
        np.pad(distances, ((0, 0), (0, 2), (0, 2), (0, 0)), constant_values=1.0),
    )
    for x, alone in zip(map(to_numpy, found), map(to_numpy, layer(*inputs)), strict=True):
        np.testing.assert_allclose(x[:, :T], alone, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(x[:, T:], 0.0)


def test_entity_pointer_trains_its_kernel_alone():
    assert [w.name for w in built().trainable_weights] == ["kernel"]
    assert [w.name for w in built().non_trainable_weights] == ["candidate_entities"]


def test_entity_pointer_knows_its_shape(inputs):
    symbolic = [keras.Input(x.shape[1:], dtype=str(x.dtype)) for x in inputs[:4]]
    time = keras.Input(batch_shape=(R, D)), keras.Input((T, M, R))
    assert [x.shape for x in built()(*symbolic, *time)] == [(None, T, C), (None, T, E)]


def test_entity_pointer_saves_and_loads(inputs):
    check_saves_and_loads(built(name="point"), *inputs, candidates=(C, K), name="point")
