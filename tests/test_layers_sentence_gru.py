"""`layers.sentence_gru` against loops from the equations of a GRU (Cho et al. 2014)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import check_saves_and_loads, on_tensorflow, randomised, to_numpy
from reference_recurrent import sentence_in_loops

from layers.sentence_gru import SentenceGRU

S, W, D, V = 3, 5, 7, 23  # sentences, words, features, words with an id


@pytest.fixture(scope="module")
def ids():
    """A full sentence, an empty one, one of a single word."""
    ids = np.random.default_rng(0).integers(1, V + 1, (S, W)).astype("int32")
    ids[1], ids[2, 1:] = 0, 0
    return ids


def built(**settings):
    layer = SentenceGRU(V, D, **settings)
    layer.build((S, W))
    return randomised(layer, 1)


def test_sentence_gru_matches_equations(ids):
    layer = built()
    found = to_numpy(layer(ids))
    assert found.shape == (S, D)
    for words, state in zip(ids, found, strict=True):
        np.testing.assert_allclose(state, sentence_in_loops(words, layer), atol=1e-5)
    np.testing.assert_array_equal(found[1], np.zeros(D))


def test_sentence_gru_reads_words_in_order(ids):
    layer = built()
    found, backwards = (to_numpy(layer(x)) for x in (ids[:1], ids[:1, ::-1].copy()))
    assert np.abs(found - backwards).max() > 0.1


def test_sentence_gru_ignores_padding(ids):
    layer = built()
    alone = to_numpy(layer(ids))
    table = layer.embedding.embeddings
    table.assign(np.concatenate([np.full((1, D), 1e3), table.numpy()[1:]]))
    found = to_numpy(layer(np.pad(ids, ((0, 2), (0, 4)))))
    np.testing.assert_allclose(found[:S], alone, atol=1e-6)
    np.testing.assert_array_equal(found[S:], 0.0)


@on_tensorflow
def test_sentence_gru_gradient_is_dense_and_spares_padding(ids):
    layer = built()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids) ** 2)
    gradient = tape.gradient(loss, layer.embedding.embeddings.value)
    assert isinstance(gradient, tf.Tensor)  # no IndexedSlices, see `layers.word_embedding`
    used = np.isin(np.arange(V + 1), ids[ids > 0])
    assert (np.abs(gradient.numpy()[used]).max(axis=1) > 1e-4).all()
    np.testing.assert_array_equal(gradient.numpy()[~used], 0.0)
    assert not used[0]


def test_sentence_gru_knows_its_shape():
    assert built()(keras.Input((None,), dtype="int32")).shape == (None, D)


def test_sentence_gru_leaves_frozen_vectors_as_they_are():
    assert len(built().trainable_weights) == 4
    frozen = built(train_embedding=False)
    assert [w.path for w in frozen.trainable_weights] == [w.path for w in frozen.gru.weights]
    assert [w.path for w in frozen.non_trainable_weights] == [frozen.embedding.embeddings.path]


def test_sentence_gru_saves_and_loads(ids):
    settings = {"train_embedding": False, "name": "read"}
    check_saves_and_loads(built(**settings), ids, vocabulary_size=V, dimension=D, **settings)
