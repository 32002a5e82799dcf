"""`layers.ordered_words` against loops: position encoding (Sukhbaatar et al. 2015) and attention between words."""

import keras
import numpy as np
import pytest
from helpers import randomised, rebuilt, to_numpy
from reference import ordered_in_loops

from layers.ordered_words import OrderedWords

S, W, D, V, H = 5, 7, 6, 23, 2  # sentences, words, features, words with an id, heads
MAX_WORDS = 11
ENCODINGS = ("position", "attention")


@pytest.fixture(scope="module")
def ids():
    """A full sentence, an empty one, one word, padding at the end and in between."""
    ids = np.random.default_rng(0).integers(1, V + 1, (S, W)).astype("int32")
    ids[1] = 0
    ids[2, 1:] = 0
    ids[3, 3:] = 0
    ids[4, [1, 4]] = 0
    return ids


def built(encoding, **settings):
    layer = OrderedWords(V, D, MAX_WORDS, encoding=encoding, heads=H, **settings)
    layer.build((S, W))
    return randomised(layer, 1)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ordered_words_match_loops(ids, encoding):
    layer = built(encoding)
    found = to_numpy(layer(ids))
    assert found.shape == (S, D)
    for sentence, expected in zip(found, [ordered_in_loops(row, layer) for row in ids], strict=True):
        np.testing.assert_allclose(sentence, expected, atol=1e-4)
    np.testing.assert_array_equal(found[1], np.zeros(D))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_order_of_words_counts(ids, encoding):
    layer = built(encoding)
    found = to_numpy(layer(ids[:1])) - to_numpy(layer(ids[:1, ::-1].copy()))
    assert np.abs(found).max() > 0.01


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ordered_words_ignore_padding(ids, encoding):
    layer = built(encoding)
    wider = np.pad(ids, ((0, 0), (0, 3)))
    np.testing.assert_allclose(to_numpy(layer(wider)), to_numpy(layer(ids)), atol=1e-5)
    longer = np.tile(ids[:1], 3)  # more words than there are places
    assert np.isfinite(to_numpy(layer(longer))).all()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_candidates_are_sums(encoding):
    layer = built(encoding)
    rows = np.array([0, 0, 2], "int32")
    found = to_numpy(layer(np.array([3, 5, 4], "int32"), rows=rows, count=3))
    table = layer.embeddings.numpy()
    np.testing.assert_allclose(found, [table[3] + table[5], np.zeros(D), table[4]], atol=1e-6)


def test_fixed_word_vectors_leave_the_attention_to_train():
    names = [weight.path.split("/")[-1] for weight in built("attention", trainable_embeddings=False).trainable_weights]
    assert sorted(names) == ["key", "output", "query", "value"]
    assert [weight.name for weight in built("position").trainable_weights] == ["embeddings"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ordered_words_save_and_load(ids, encoding):
    layer = built(encoding, trainable_embeddings=False)
    again = rebuilt(layer)
    assert len(again.trainable_weights) == len(layer.trainable_weights)
    np.testing.assert_array_equal(to_numpy(again(ids)), to_numpy(layer(ids)))


def test_ordered_words_know_their_shapes():
    layer = OrderedWords(V, D, MAX_WORDS, encoding="attention", heads=H)
    assert layer(keras.Input((None,), dtype="int32")).shape == (None, D)


def test_ordered_words_reject_another_encoding():
    with pytest.raises(ValueError, match=r"encoding must be one of \('position', 'attention'\)\. Received: .*'sum'$"):
        OrderedWords(V, D, encoding="sum")
