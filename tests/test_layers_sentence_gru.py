"""`layers.sentence_gru` against loops from the equations of a GRU (Cho et al. 2014)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from test_layers_attentive_module import rebuilt
from test_layers_bag_of_words import randomised, to_numpy

from layers.sentence_gru import SentenceGRU

B, M, W, D, V = 2, 3, 5, 7, 23  # dialogs, sentences, words, features, words with an id


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def read_in_loops(ids, layer):
    """The state behind the last word of one sentence.

    As Keras has it: the update gate `z` keeps the old state, the reset gate acts behind the product, and both
    products have a bias.
    """
    table = layer.embedding.embeddings.numpy().astype("float64")
    kernel, recurrent, (input_bias, recurrent_bias) = (w.numpy().astype("float64") for w in layer.gru.weights)
    h = np.zeros(table.shape[1])
    for id in ids:
        if id == 0:
            continue
        x_z, x_r, x_h = np.split(table[id] @ kernel + input_bias, 3)
        h_z, h_r, h_h = np.split(h @ recurrent + recurrent_bias, 3)
        z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
        h = z * h + (1 - z) * np.tanh(x_h + r * h_h)
    return h


@pytest.fixture(scope="module")
def ids():
    """A full sentence, an empty one, one of a single word."""
    ids = np.random.default_rng(0).integers(1, V + 1, (B, M, W)).astype("int32")
    ids[0, 1], ids[0, 2, 1:], ids[1, 0, 3:] = 0, 0, 0
    return ids


def built(**settings):
    layer = SentenceGRU(V, D, **settings)
    layer.build((B, M, W))
    return randomised(layer, 1)


def test_sentence_gru_matches_equations(ids):
    layer = built()
    found = to_numpy(layer(ids))
    assert found.shape == (B, M, D)
    for b, m in np.ndindex(B, M):
        np.testing.assert_allclose(found[b, m], read_in_loops(ids[b, m], layer), atol=1e-5)
    np.testing.assert_array_equal(found[0, 1], np.zeros(D))


def test_sentence_gru_reads_words_in_order(ids):
    layer = built()
    found, backwards = (to_numpy(layer(x[1:, 1:])) for x in (ids, ids[..., ::-1].copy()))
    assert np.abs(found - backwards).max(axis=-1).min() > 0.1


def test_sentence_gru_ignores_padding(ids):
    layer = built()
    alone = to_numpy(layer(ids))
    table = layer.embedding.embeddings
    table.assign(np.concatenate([np.full((1, D), 1e3), table.numpy()[1:]]))
    found = to_numpy(layer(np.pad(ids, ((0, 0), (0, 2), (0, 4)))))
    np.testing.assert_allclose(found[:, :M], alone, atol=1e-6)
    np.testing.assert_array_equal(found[:, M:], 0.0)


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
    assert built()(keras.Input((M, None), dtype="int32")).shape == (None, M, D)


def test_sentence_gru_saves_and_loads(ids):
    layer = built(name="read")
    config = layer.get_config()
    expected = {"vocabulary_size": V, "dimension": D, "name": "read"}
    assert {name: config[name] for name in expected} == expected
    again = rebuilt(layer)
    assert again.get_config() == config
    np.testing.assert_array_equal(to_numpy(again(ids)), to_numpy(layer(ids)))
