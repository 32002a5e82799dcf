"""`layers.candidates` against loops from the definition (Bordes et al. 2017, section 4.2)."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import B, D, S, T, built, floats
from reference import sums_in_loops

from layers.candidates import IdTable, MatchTypes, sum_of_rows

E, Y = 17, 7  # entities, types


def test_id_table_is_what_it_was_set_to():
    table, _ = built("IdTable")
    found = table(np.zeros((B, T)))
    np.testing.assert_array_equal(to_numpy(found), table.get_weights()[0])
    assert not to_numpy(IdTable((3, 2))(np.zeros(1))).any()


def test_sum_of_rows_matches_definition():
    rng = np.random.default_rng(0)
    values, numbers = floats(B, T, E), rng.integers(0, E + 1, (11, 4))
    numbers[0], numbers[1] = 0, [E, 1, E, 0]  # a candidate of nothing; a number that occurs twice counts twice
    found = to_numpy(sum_of_rows(values, numbers))
    assert found.shape == (B, T, 11) and not found[..., 0].any()
    for b, t in np.ndindex(B, T):
        np.testing.assert_allclose(found[b, t], sums_in_loops(values[b, t], numbers), atol=1e-5)


# === Match types ===

TYPE_OF = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6, 0]  # of each entity
# Entities of each candidate, counted from 0: 0, 1, 2 and 16 are of one type, and 3 and 4.
CANDIDATES = [[0, 1], [], [0, 3, 5, 7], [0], [3, 4, 16, 2], [16], [8, 9], [10, 11, 12], [13, 14, 15], [6], [3, 4]]


def groups():
    """Sets of entities of one type that a candidate has, their types, and the sets of each candidate, from 1."""
    members, types, of_candidates = [], [], []
    for entities in CANDIDATES:
        of_candidates.append([])
        for y in range(Y):
            group = [e + 1 for e in entities if TYPE_OF[e] == y]
            if group and group not in members:
                members.append(group)
                types.append(y)
            if group:
                of_candidates[-1].append(members.index(group) + 1)
    return padded(members), np.array(types), padded(of_candidates)


def padded(rows):
    return np.array([row + [0] * (max(map(len, rows)) - len(row)) for row in rows])


@pytest.fixture(scope="module")
def layer():
    members, types, of_candidates = groups()
    layer = MatchTypes(Y, members.shape, of_candidates.shape)
    layer.build((B, T, D))
    assert [w.name for w in layer.trainable_weights] == ["types"]
    layer.set_weights([np.random.default_rng(1).normal(size=(Y, D)), members, types, of_candidates])
    return layer


def test_match_types_matches_definition(layer):
    """A type counts for a candidate if one of its words of that type was said; one turn has seen nothing."""
    rng, state = np.random.default_rng(2), floats(B, T, D)
    mentions, seen = (rng.random((B, S, E)) < 0.5).astype("uint8"), rng.random((B, T, S)) < 0.8
    mentions[0, 0, [0, 1]], seen[0, 0, 0], seen[1, 2] = 1, True, False  # both words of the first candidate occur
    found, vectors, counts = to_numpy(layer(state, mentions, seen)), layer.type_YD.numpy(), set()
    for b, t in np.ndindex(B, T):
        mentioned = {e for m in range(S) for e in range(E) if seen[b, t, m] and mentions[b, m, e]}
        for c, entities in enumerate(CANDIDATES):
            types = {TYPE_OF[e] for e in entities if e in mentioned}
            counts.add(len(types))
            gain = sum(state[b, t] @ vectors[y] for y in types)
            assert found[b, t, c] == pytest.approx(gain, abs=1e-4)
    assert counts == {0, 1, 2, 3, 4} and not found[1, 2].any()


def test_match_types_counts_two_words_of_a_type_once(layer):
    state, seen = floats(B, T, D), np.ones((B, T, 1), bool)
    for mentioned in ([0], [1], [0, 1]):
        mentions = np.zeros((B, 1, E), "uint8")
        mentions[:, :, mentioned] = 1
        expected = state @ layer.type_YD.numpy()[TYPE_OF[0]]
        np.testing.assert_allclose(to_numpy(layer(state, mentions, seen))[..., 0], expected, atol=1e-4)
