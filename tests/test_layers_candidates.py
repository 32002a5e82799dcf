"""`layers.candidates` against loops from the definition (Bordes et al. 2017, section 4.2)."""

import keras
import numpy as np
import pytest
from helpers import check_saves_and_loads, randomised, to_numpy
from reference import sums_in_loops

from layers.candidates import IdTable, MatchTypes, sum_of_rows

B, T, M, E, Y, C, K, D = 2, 3, 5, 17, 7, 11, 4, 13
# dialogs, turns, sentences, entities, types, candidates, entity words of a candidate at most, features

# === Tables ===


def test_id_table_is_what_it_was_set_to():
    table, ids = IdTable((C, K), name="table"), np.arange(C * K, dtype="int32").reshape(C, K)
    assert not to_numpy(table(np.zeros(1))).any()
    table.set_weights([ids])
    found = table(np.zeros((B, T)))
    assert keras.backend.standardize_dtype(found.dtype) == "int32"
    np.testing.assert_array_equal(to_numpy(found), ids)
    assert len(table.weights) == 1 and not table.trainable_weights
    assert table(keras.Input((None,))).shape == (C, K)


def test_id_table_saves_and_loads():
    table = IdTable((C,), name="table")
    table.build((B, T))
    table.set_weights([np.arange(C)])
    check_saves_and_loads(table, np.zeros(1), shape=(C,))


def test_sum_of_rows_matches_definition():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(B, T, E)).astype("float32")
    numbers = rng.integers(0, E + 1, (C, K))
    numbers[0], numbers[1] = 0, [E, 1, E, 0]  # a candidate of nothing; a number that occurs twice counts twice
    found = to_numpy(sum_of_rows(values, numbers))
    assert found.shape == (B, T, C)
    for b, t in np.ndindex(B, T):
        np.testing.assert_allclose(found[b, t], sums_in_loops(values[b, t], numbers), atol=1e-5)
    np.testing.assert_array_equal(found[..., 0], 0.0)


# === Match types ===

TYPE_OF = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6, 0]  # of each entity

# Entities of each candidate, counted from 0: 0, 1, 2 and 16 are of one type, and 3 and 4.
CANDIDATES = [
    [0, 1],
    [],
    [0, 3, 5, 7],
    [0],
    [3, 4, 16, 2],
    [16],
    [8, 9],
    [10, 11, 12],
    [13, 14, 15],
    [6],
    [3, 4],
]


def bits_in_loops(mentioned):
    """`bits[c][t]`: whether a word of candidate `c` is a value of type `t` and was mentioned."""
    bits = np.zeros((len(CANDIDATES), Y))
    for c, entities in enumerate(CANDIDATES):
        for e in entities:
            if e in mentioned:
                bits[c, TYPE_OF[e]] = 1
    return bits


def groups():
    """What `tasks.dialog.data.World.match_groups` says: sets of entities of one type that a candidate has."""
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
    return tuple(padded(rows) for rows in (members, types, of_candidates))


def padded(rows):
    if not isinstance(rows[0], list):
        return np.array(rows)
    return np.array([row + [0] * (max(map(len, rows)) - len(row)) for row in rows])


def built(**settings):
    members, types, of_candidates = groups()
    layer = MatchTypes(Y, members.shape, of_candidates.shape, **settings)
    layer.build((B, T, D))
    layer.set_weights([np.random.default_rng(1).normal(size=(Y, D)), members, types, of_candidates])
    return layer


@pytest.fixture(scope="module")
def inputs():
    """State, mentions and what was seen; one turn has seen nothing."""
    rng = np.random.default_rng(2)
    state = rng.normal(size=(B, T, D)).astype("float32")
    mentions = (rng.random((B, M, E)) < 0.4).astype("uint8")
    seen = rng.random((B, T, M)) < 0.5
    mentions[0, 0, [0, 1]], seen[0, 0, 0] = 1, True  # both words of the first candidate occur
    seen[1, 2] = False
    return state, mentions, seen


def test_match_types_matches_definition(inputs):
    state, mentions, seen = inputs
    layer = built()
    found, vectors = to_numpy(layer(*inputs)), layer.type_YD.numpy()
    assert found.shape == (B, T, C)
    counts = set()
    for b, t in np.ndindex(B, T):
        bits = bits_in_loops({e for m in range(M) for e in range(E) if seen[b, t, m] and mentions[b, m, e]})
        counts |= set(bits.sum(axis=1).tolist())
        for c in range(C):
            gain = state[b, t] @ sum((bits[c, y] * vectors[y] for y in range(Y)), np.zeros(D))
            assert found[b, t, c] == pytest.approx(gain, abs=1e-4)
    assert counts == {0, 1, 2, 3, 4}
    np.testing.assert_array_equal(found[1, 2], 0.0)


def test_match_types_counts_two_words_of_a_type_once(inputs):
    state, _, _ = inputs
    layer = built()
    vectors = layer.type_YD.numpy()
    seen = np.ones((B, T, 1), bool)
    for mentioned in ([0], [1], [0, 1]):
        mentions = np.zeros((B, 1, E), "uint8")
        mentions[:, :, mentioned] = 1
        found = to_numpy(layer(state, mentions, seen))
        np.testing.assert_allclose(found[..., 0], state @ vectors[TYPE_OF[0]], atol=1e-4)


def test_match_types_ignores_padding(inputs):
    """Sentences that do not count, of a batch with a longer dialog, mention everything."""
    state, mentions, seen = inputs
    layer = built()
    longer = np.pad(mentions, ((0, 0), (0, 2), (0, 0)), constant_values=1)
    found = layer(np.pad(state, ((0, 0), (0, 4), (0, 0))), longer, np.pad(seen, ((0, 0), (0, 4), (0, 2))))
    np.testing.assert_allclose(to_numpy(found)[:, :T], to_numpy(layer(*inputs)), atol=1e-5)
    np.testing.assert_array_equal(to_numpy(found)[:, T:], 0.0)


def test_match_types_trains_its_vectors_alone():
    assert [w.name for w in built().trainable_weights] == ["types"]
    assert [w.name for w in built().non_trainable_weights] == ["members", "group_types", "candidate_groups"]


def test_match_types_knows_its_shape():
    state, mentions = keras.Input((None, D)), keras.Input((None, E), dtype="uint8")
    assert built()(state, mentions, keras.Input((None, None), dtype="bool")).shape == (None, None, C)


def test_match_types_saves_and_loads(inputs):
    members, _, of_candidates = groups()
    expected = {"types": Y, "groups": members.shape, "candidates": of_candidates.shape, "name": "match"}
    check_saves_and_loads(built(name="match"), *inputs, **expected)
    fresh = MatchTypes(Y, members.shape, of_candidates.shape)
    fresh.build((B, T, D))
    assert not to_numpy(randomised(fresh, 3)(*inputs)).any()  # the tables are not set
