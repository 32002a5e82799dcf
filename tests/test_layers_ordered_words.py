"""`layers.ordered_words` against loops: position encoding (Sukhbaatar et al. 2015) and attention between words."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import built
from reference import ordered_in_loops

ENCODINGS = ("position", "attention")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ordered_words_match_loops(encoding):
    """A full sentence, a short one, an empty one, one word, padding in between; more words than places."""
    layer, [ids] = built(f"OrderedWords, {encoding}")
    first = ids[0]
    ids = np.array([*ids, 0 * first, first * (np.arange(5) == 0), first * (np.arange(5) != 2)])
    found = to_numpy(layer(ids))
    for sentence, row in zip(found, ids, strict=True):
        np.testing.assert_allclose(sentence, ordered_in_loops(row, layer), atol=1e-4)
    np.testing.assert_array_equal(found[2], 0.0)
    assert np.abs(to_numpy(layer(ids[:1, ::-1].copy())) - found[0]).max() > 0.01  # the order counts
    assert np.isfinite(to_numpy(layer(np.tile(ids[:1], 3)))).all()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_candidates_are_sums(encoding):
    layer, _ = built(f"OrderedWords, {encoding}")
    found = to_numpy(layer(np.array([3, 5, 4], "int32"), rows=np.array([0, 0, 2], "int32"), count=3))
    table = layer.embeddings.numpy()
    np.testing.assert_allclose(found, [table[3] + table[5], 0 * table[0], table[4]], atol=1e-6)


def test_fixed_word_vectors_leave_the_attention_to_train():
    names = [weight.path.split("/")[-1] for weight in built("OrderedWords, attention")[0].trainable_weights]
    assert sorted(names) == ["key", "output", "query", "value"]
    assert [weight.name for weight in built("OrderedWords, position")[0].trainable_weights] == ["embeddings"]
