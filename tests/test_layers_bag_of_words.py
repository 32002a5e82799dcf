"""`layers.bag_of_words` against loops from the definition (Sukhbaatar et al. 2015, section 4.1; MEMMA, eq. 5 to 8)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import check_saves_and_loads, on_tensorflow, randomised, to_numpy
from reference import sum_in_loops

from layers.bag_of_words import BagOfWords

A, B, W, D, V = 2, 3, 7, 5, 23  # leading axes, words of a sentence, features, words with an id
MAX_WORDS = 11


@pytest.fixture(scope="module")
def ids():
    """A full sentence, an empty one, padding at the end and in between, a word that occurs twice."""
    ids = np.random.default_rng(0).integers(1, V + 1, (A, B, W)).astype("int32")
    ids[0, 1] = 0
    ids[0, 2, 3:] = 0
    ids[1, 0, [1, 4]] = 0
    ids[1, 1, :3] = 5
    return ids


def built(max_words=0, **settings):
    layer = BagOfWords(V, D, max_words, **settings)
    layer.build((A, B, W))
    return randomised(layer, 1)


@pytest.mark.parametrize("max_words", (0, W, MAX_WORDS))
def test_bag_of_words_matches_equation(ids, max_words):
    layer = built(max_words)
    found = to_numpy(layer(ids))
    assert found.shape == (A, B, D)
    for a, b in np.ndindex(A, B):
        np.testing.assert_allclose(found[a, b], sum_in_loops(ids[a, b], layer), atol=1e-5)
    np.testing.assert_array_equal(found[0, 1], np.zeros(D))


@pytest.mark.parametrize("max_words", (0, MAX_WORDS))
def test_bag_of_words_end_to_end_matches_equation(ids, max_words):
    """Sentence 1 has no word, and so has the last, of which `rows` says nothing."""
    layer, sentences = built(max_words), [*ids.reshape(-1, W), []]
    words = np.array([id for sentence in sentences for id in sentence if id], "int32")
    rows = np.array([row for row, sentence in enumerate(sentences) for id in sentence if id], "int32")
    found = to_numpy(layer(words, rows=rows, count=A * B + 1))
    assert found.shape == (A * B + 1, D)
    for sentence, x in zip(sentences, found, strict=True):
        np.testing.assert_allclose(x, sum_in_loops(sentence, layer), atol=1e-5)


@pytest.mark.parametrize("max_words", (0, W))
def test_bag_of_words_ignores_padding(ids, max_words):
    layer = built(max_words)
    alone = to_numpy(layer(ids))
    layer.embeddings.assign(np.concatenate([np.full((1, D), 1e3), layer.embeddings.numpy()[1:]]))
    padded = np.pad(ids, [(0, 0), (0, 2), (2, 4)])
    found = to_numpy(layer(padded))
    np.testing.assert_allclose(found[:, :B], alone, atol=1e-6)
    np.testing.assert_array_equal(found[:, B:], 0.0)


@on_tensorflow
@pytest.mark.parametrize("end_to_end", (False, True))
def test_bag_of_words_gradient_is_dense_and_spares_padding(ids, end_to_end):
    layer = built(MAX_WORDS)
    weights = np.random.default_rng(2).normal(size=(A * B, D)).astype("float32")
    rows = np.repeat(np.arange(A * B), W)
    with tf.GradientTape() as tape:
        x = layer(ids.ravel(), rows=rows, count=A * B) if end_to_end else layer(ids.reshape(-1, W))
        loss = tf.reduce_sum(x * weights)
    gradient = tape.gradient(loss, layer.embeddings.value)
    assert isinstance(gradient, tf.Tensor)  # no IndexedSlices, see `layers.word_embedding`
    expected = np.zeros((V + 1, D))
    for row, id in zip(rows, ids.ravel(), strict=True):
        expected[id] += weights[row] if id else 0.0  # a word that occurs twice: the sum
    assert np.abs(expected).max() > 1.0 and not expected[0].any()
    np.testing.assert_allclose(gradient.numpy(), expected, atol=1e-5)
    np.testing.assert_array_equal(gradient.numpy()[0], 0.0)


def test_bag_of_words_starts_with_small_vectors():
    keras.utils.set_random_seed(0)
    layer = BagOfWords(V * 100, D)
    layer.build((None, None))
    values = layer.embeddings.numpy()
    assert values.mean() == pytest.approx(0.0, abs=0.005) and values.std() == pytest.approx(0.1, abs=0.005)


def test_bag_of_words_leaves_frozen_vectors_as_they_are():
    assert [w.name for w in built().trainable_weights] == ["embeddings"]
    frozen = built(trainable=False)
    assert not frozen.trainable_weights and len(frozen.weights) == 1


def test_bag_of_words_knows_its_shape():
    layer = built()
    assert layer(keras.Input((B, None), dtype="int32")).shape == (None, B, D)
    words, rows = (keras.Input((), dtype="int32") for _ in range(2))
    assert layer(words, rows=rows, count=W).shape == (W, D)


def test_bag_of_words_saves_and_loads(ids):
    settings = {"max_words": MAX_WORDS, "trainable": False, "name": "bag"}
    check_saves_and_loads(built(**settings), ids, vocabulary_size=V, dimension=D, **settings)


def test_a_longer_sentence_than_any_counts_as_the_longest():
    layer = BagOfWords(7, 3, max_words=2)
    ids = np.array([[1, 2, 3], [4, 5, 0]])
    with_positions = keras.ops.convert_to_numpy(layer(ids))
    plain = BagOfWords(7, 3)
    plain.build(ids.shape)
    plain.set_weights(layer.get_weights())
    signal = with_positions - keras.ops.convert_to_numpy(plain(ids))
    np.testing.assert_allclose(signal[0], signal[1], atol=1e-6)
    assert np.abs(signal).max() > 0.01
