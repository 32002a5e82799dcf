"""`layers.dialog_history` against loops from the definition (Bordes et al. 2017, section 4.2)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import check_saves_and_loads, on_tensorflow, randomised, to_numpy
from reference import distances_in_loops, seen_in_loops

from layers.dialog_history import SPEAKERS, SpeakerFeature, TimeFeature, gather_turns, history_mask

B, M, T, R, D = 2, 11, 5, 3, 7  # dialogs, sentences, turns, turn distances, features

# Two dialogs: one with two facts in front, one shorter, with padded sentences and turns.
SPEAKING = np.array([[3, 3, 1, 2, 1, 2, 3, 1, 2, 1, 1], [1, 2, 1, 2, 3, 1, 0, 0, 0, 0, 0]], "int32")
TIMES = np.array([[0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4], [0, 0, 1, 1, 1, 2, 0, 0, 0, 0, 0]], "int32")
TURNS = np.array([[2, 4, 7, 9, 10], [0, 2, 5, 0, 0]], "int32")


# === Masks and rows ===


@pytest.mark.parametrize("including_turn", (False, True))
def test_history_mask_matches_definition(including_turn):
    found = to_numpy(history_mask(SPEAKING, TURNS, including_turn))
    assert found.shape == (B, T, M) and found.dtype == bool
    for b in range(B):
        np.testing.assert_array_equal(found[b], seen_in_loops(SPEAKING[b], TURNS[b], including_turn))
    assert found[0].sum(axis=1).tolist() == [n + including_turn for n in TURNS[0].tolist()]


def test_history_mask_ignores_padding():
    padded = np.pad(SPEAKING[1:, :6], ((0, 0), (0, 9)))
    found = to_numpy(history_mask(padded, np.array([[0, 5, 14, 0]]), including_turn=True))[0]
    assert found.sum(axis=1).tolist() == [1, 6, 6, 1]
    assert not found[:, 6:].any()


def test_history_mask_of_a_turn_without_history_is_empty():
    assert not to_numpy(history_mask(SPEAKING, TURNS))[1, 0].any()


def test_gather_turns_takes_the_turns_own_sentences():
    x = np.random.default_rng(0).normal(size=(B, M, D)).astype("float32")
    found = to_numpy(gather_turns(x, TURNS))
    assert found.shape == (B, T, D)
    for b, t in np.ndindex(B, T):
        np.testing.assert_array_equal(found[b, t], x[b, TURNS[b, t]])


# === Speaker ===


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(1).normal(size=(B, M, D)).astype("float32")


def built_speaker():
    layer = SpeakerFeature(name="who")
    layer.build((B, M, D), (B, M))
    return randomised(layer, 2)


def test_speaker_feature_matches_definition(x):
    layer = built_speaker()
    found, table = to_numpy(layer(x, SPEAKING)), layer.table.numpy()
    assert table.shape == (SPEAKERS, D) == (4, D)
    for b, m in np.ndindex(B, M):
        np.testing.assert_allclose(found[b, m], x[b, m] + table[SPEAKING[b, m]], atol=1e-6)


@on_tensorflow
def test_speaker_feature_gradient_is_dense(x):
    layer = built_speaker()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x, SPEAKING) * x)
    gradient = tape.gradient(loss, layer.table.value)
    assert isinstance(gradient, tf.Tensor)  # no IndexedSlices, see `layers.word_embedding`
    expected = [x[SPEAKING == speaker].sum(axis=0) for speaker in range(SPEAKERS)]
    np.testing.assert_allclose(gradient.numpy(), expected, atol=1e-5)


def test_speaker_feature_knows_its_shape():
    symbolic = built_speaker()(keras.Input((None, D)), keras.Input((None,), dtype="int32"))
    assert symbolic.shape == (None, None, D)


def test_speaker_feature_saves_and_loads(x):
    check_saves_and_loads(built_speaker(), x, SPEAKING, name="who")


# === Time ===


def built_time(limit=R):
    layer = TimeFeature(limit, D, name="when")
    layer.build((B, M), (B, T))
    return randomised(layer, 3)


@pytest.mark.parametrize("limit", (1, R, 13))
def test_time_feature_matches_definition(limit):
    layer = built_time(limit)
    vectors, distances = layer(TIMES, TURNS)
    np.testing.assert_array_equal(to_numpy(vectors), layer.table.numpy())
    found = to_numpy(distances)
    assert vectors.shape == (limit, D) and found.shape == (B, T, M, limit)
    for b in range(B):
        expected = distances_in_loops(TIMES[b], TURNS[b], limit)
        assert len(np.unique(expected)) == min(limit, 5)  # the last is shared where more is longer ago
        for t, m in np.ndindex(T, M):
            assert found[b, t, m].tolist() == [float(r == expected[t, m]) for r in range(limit)]


def test_time_feature_counts_turns_not_places():
    """The same distances wherever the turns stand, and however many turns pad."""
    layer = built_time()
    found = to_numpy(layer(TIMES, TURNS)[1])
    np.testing.assert_array_equal(to_numpy(layer(TIMES, 0 * TURNS)[1]), found)
    np.testing.assert_array_equal(to_numpy(layer(TIMES, np.pad(TURNS, ((0, 0), (0, 2))))[1])[:, :T], found)


def test_time_feature_knows_its_shape():
    layer = built_time()
    symbolic = layer(keras.Input((M,), dtype="int32"), keras.Input((None,), dtype="int32"))
    assert [x.shape for x in symbolic] == [(R, D), (None, None, M, R)]


def test_time_feature_saves_and_loads():
    check_saves_and_loads(built_time(), TIMES, TURNS, limit=R, dimension=D, name="when")
