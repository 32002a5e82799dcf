"""`layers.dialog_history` against loops from the definition (Bordes et al. 2017, section 4.2)."""

import numpy as np
import pytest
from helpers import randomised, to_numpy
from layer_cases import D
from reference import distances_in_loops, seen_in_loops

from layers.dialog_history import TimeFeature, history_mask

B, M, T, R = 2, 11, 5, 3  # dialogs, sentences, turns, turn distances

# Two dialogs: one with two facts in front, one shorter, with padded sentences and turns.
SPEAKING = np.array([[3, 3, 1, 2, 1, 2, 3, 1, 2, 1, 1], [1, 2, 1, 2, 3, 1, 0, 0, 0, 0, 0]], "int32")
TIMES = np.array([[0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4], [0, 0, 1, 1, 1, 2, 0, 0, 0, 0, 0]], "int32")
TURNS = np.array([[2, 4, 7, 9, 10], [0, 2, 5, 0, 0]], "int32")


@pytest.mark.parametrize("including_turn", (False, True))
def test_history_mask_matches_definition(including_turn):
    found = to_numpy(history_mask(SPEAKING, TURNS, including_turn))
    assert found.shape == (B, T, M) and found.dtype == bool
    for b in range(B):
        np.testing.assert_array_equal(found[b], seen_in_loops(SPEAKING[b], TURNS[b], including_turn))
    assert found[0].sum(axis=1).tolist() == [n + including_turn for n in TURNS[0].tolist()]
    assert found[1, 0].any() == including_turn  # a turn without history


@pytest.mark.parametrize("limit", (1, R, 13))
def test_time_feature_matches_definition(limit):
    """Turns count, not places: wherever the turns are, the distances are the same."""
    layer = TimeFeature(limit, D)
    layer.build((B, M), (B, T))
    randomised(layer, 3)
    vectors, distances = layer(TIMES, TURNS)
    np.testing.assert_array_equal(to_numpy(vectors), layer.table.numpy())
    found = to_numpy(distances)
    np.testing.assert_array_equal(to_numpy(layer(TIMES, 0 * TURNS)[1]), found)
    for b in range(B):
        expected = distances_in_loops(TIMES[b], TURNS[b], limit)
        assert len(np.unique(expected)) == min(limit, 5)  # the last is shared where more is longer ago
        for t, m in np.ndindex(T, M):
            assert found[b, t, m].tolist() == [float(r == expected[t, m]) for r in range(limit)]
