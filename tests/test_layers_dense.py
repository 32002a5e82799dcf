"""`layers.dense` and tied logits against loops."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import on_tensorflow, randomised, to_numpy

from layers.gradients import Dense
from layers.word_embedding import ReversibleWordEmbedding

B, T, S, E, H = 2, 3, 5, 7, 11  # batch, target words, source words, features of a word, units


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 0.7, shape).astype("float32")


# === Dense ===


@pytest.mark.parametrize("policy", ("float32", "mixed_float16", "mixed_bfloat16"))
@pytest.mark.parametrize("shape", [(S, E), (B, S, E), (B, T, S, E)], ids=len)
def test_dense_is_that_of_keras(shape, policy):
    keras.config.set_dtype_policy(policy)  # tests/conftest.py sets it back
    for settings in ({"activation": "tanh"}, {"use_bias": False}):
        ours, theirs = Dense(H, **settings), keras.layers.Dense(H, **settings)
        for layer in (ours, theirs):
            layer.build(shape)
            randomised(layer, 1)
        x = array(*shape)
        found, expected = ours(x), theirs(x)
        assert found.shape == (*shape[:-1], H) and found.dtype == expected.dtype
        assert keras.backend.standardize_dtype(found.dtype) == policy.removeprefix("mixed_")
        found, expected = (to_numpy(keras.ops.cast(y, "float32")) for y in (found, expected))
        np.testing.assert_allclose(found, expected, rtol=1e-5 if policy == "float32" else 0.02, atol=1e-5)
        for row, y in zip(x.reshape(-1, E), found.reshape(-1, H), strict=True):
            by_hand = row @ ours.get_weights()[0] + (ours.get_weights()[1] if ours.use_bias else 0)
            np.testing.assert_allclose(y, np.tanh(by_hand) if ours.use_bias else by_hand, atol=0.05)


@on_tensorflow
@pytest.mark.parametrize("leading", [(), (None,), (None, S)], ids=len)
def test_dense_takes_batches_of_unknown_size(leading):
    layer = Dense(H)
    assert layer(keras.Input((*leading, E))).shape == (None, *leading, H)
    graph = tf.function(layer, input_signature=[tf.TensorSpec((None, *leading, E))])
    for size in (B, T):
        given = array(size, *(n or T for n in leading), E)
        np.testing.assert_allclose(to_numpy(graph(given)), given @ layer.get_weights()[0], atol=1e-5)
    assert Dense.from_config(layer.get_config()).get_config() == layer.get_config()


# === Tied logits ===


@pytest.mark.parametrize("policy", ("float32", "mixed_float16", "mixed_bfloat16"))
@pytest.mark.parametrize("leading", [(B,), (B, S)], ids=len)
def test_reversible_word_embedding_scores_each_word_by_its_vector(leading, policy):
    keras.config.set_dtype_policy(policy)
    layer = ReversibleWordEmbedding(H, E)
    layer.build((B, S))
    table = randomised(layer, 1).get_weights()[0]
    x = array(*leading, E)
    logits = layer(keras.ops.cast(x, layer.compute_dtype), reverse=True)
    assert logits.shape == (*leading, H)
    assert keras.backend.standardize_dtype(logits.dtype) == policy.removeprefix("mixed_")
    atol = 1e-5 if policy == "float32" else 0.05
    for row, scores in zip(x.reshape(-1, E), to_numpy(keras.ops.cast(logits, "float32")).reshape(-1, H), strict=True):
        np.testing.assert_allclose(scores, [row @ vector for vector in table], atol=atol)
    ids = np.array([[3, 10], [0, 3]])
    np.testing.assert_allclose(to_numpy(keras.ops.cast(layer(ids), "float32")), table[ids], atol=atol)


def test_reversible_word_embedding_knows_its_shapes():
    layer = ReversibleWordEmbedding(H, E)
    assert layer(keras.Input((None,), dtype="int32")).shape == (None, None, E)
    assert layer(keras.Input((None, E)), reverse=True).shape == (None, None, H)


@on_tensorflow
def test_reversible_word_embedding_adds_the_gradients_of_both_uses():
    layer = ReversibleWordEmbedding(H, E)
    layer.build((B, S))
    randomised(layer, 1)
    ids, x = np.array([[3, 10, 3]]), array(1, 3, E)
    looked_up = np.zeros((H, E))
    for id, row in zip(ids[0], x[0], strict=True):
        looked_up[id] += row
    for scored in (0.0, 1.0):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids) * x)
            if scored:
                loss += tf.reduce_sum(layer(x, reverse=True))
        gradient = tape.gradient(loss, layer.embeddings.value)
        assert isinstance(gradient, tf.Tensor)  # no IndexedSlices, see `layers.word_embedding`
        np.testing.assert_allclose(gradient.numpy(), looked_up + scored * x.sum(axis=(0, 1)), atol=1e-5)
