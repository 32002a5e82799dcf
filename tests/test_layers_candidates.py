"""Layers that score candidates, beside their equations: `layers.candidates`, `entity_pointer`, `lexical_match`."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import CASES, B, E, T, V, built, floats
from reference import sums_in_loops

from layers.candidates import IdTable, sum_of_rows
from layers.entity_pointer import EntityPointer
from layers.lexical_match import LexicalMatch


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


# === Entities ===


def test_entity_pointer_knows_no_entity_by_itself():
    """Entities in another order have the same scores in that order; one that nothing mentions has none."""
    layer, (state, sentences, seen, mentions, *time) = built("EntityPointer")
    mentions, order = mentions.copy(), np.random.default_rng(3).permutation(E)
    mentions[..., 3] = 0
    _, score = layer(state, sentences, seen, mentions, *time)
    _, found = layer(state, sentences, seen, mentions[..., order], *time)
    np.testing.assert_allclose(to_numpy(found), to_numpy(score)[..., order], rtol=1e-4, atol=1e-4)
    assert not to_numpy(score)[..., 3].any()


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
        ([5, 0, 1], [2 * 15 + 20, 20, 5]),  # first = [15, 5, 5], passed = [15, 20, 5]
        ([5, 1, 1], [53, 21, 6]),
    ):
        layer.set_weights([np.reshape(kernel, (1, 3, 1)), np.zeros((1, 1))])
        np.testing.assert_allclose(to_numpy(layer(state, *args)[1])[0, 0], expected, atol=1e-5)


# === Words ===


@pytest.mark.parametrize("name", ["LexicalMatch", "LexicalMatch, stems"])
def test_lexical_match_is_zero_in_training_and_where_texts_share_nothing(name):
    layer, _ = built(name)
    assert not to_numpy(layer(*CASES[name].inputs.values(), training=True)).any()
    layer.idf.assign(np.ones(V + 1))
    if layer.stems:
        layer.stem.assign(np.arange(V + 1))
    for response in ([5, 6], [0, 0], [layer.unknown_id, 0]):
        assert not to_numpy(layer(np.array([[[3, layer.unknown_id]]]), np.array([[response]]))).any()


def test_a_fresh_lexical_match_has_each_word_as_its_stem_and_counts_all_alike():
    plain, stemmed = (LexicalMatch(V, 2, stems=stems) for stems in (False, True))
    context, responses = np.array([[[9, 3], [4, 0]]]), np.array([[[4, 5, 0], [0, 0, 0], [3, 8, 9]]])
    repeated = np.array([[[9, 3, 3], [4, 9, 0]]]), np.array([[[4, 5, 4], [0, 0, 0], [3, 8, 9]]])
    expected = to_numpy(plain(context, responses))
    np.testing.assert_allclose(expected, [[16 / np.sqrt(3 * 2), 0, 16 * 2 / np.sqrt(3 * 3)]], rtol=1e-5)
    np.testing.assert_array_equal(to_numpy(stemmed(context, responses)), expected)
    np.testing.assert_array_equal(to_numpy(stemmed(*repeated)), expected)
    assert stemmed.stem.dtype == "int32"
