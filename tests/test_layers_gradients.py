"""`layers.gradients` against autodiff and Keras, and the tied logits of `layers.word_embedding` against loops."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gradients import gradients_of
from helpers import on_tensorflow, randomised, to_numpy
from layer_cases import B, D, J, S, T, V, floats

from layers.gradients import Dense, add_bias
from layers.word_embedding import ReversibleWordEmbedding


@pytest.mark.parametrize("biases", [1, D])
def test_add_bias_is_addition_also_backwards(biases):
    inputs, upstream = [floats(B, T, D), floats(biases)], floats(B, T, D, seed=1)
    found, gradients = gradients_of(add_bias, inputs, upstream)
    expected, expected_gradients = gradients_of(lambda x, b: x + b, inputs, upstream)
    for one, other in zip([found, *gradients], [expected, *expected_gradients], strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=on_tensorflow)])
def test_add_bias_counts_beyond_256_in_bfloat16(compiled):
    x, b = keras.ops.zeros((10_000, 3), "bfloat16"), keras.ops.zeros(3, "bfloat16")
    _, [_, found] = gradients_of(tf.function(add_bias) if compiled else add_bias, [x, b])
    np.testing.assert_allclose(found, 10_000, rtol=0.004)


@pytest.mark.parametrize("policy", ("float32", "mixed_float16", "mixed_bfloat16"))
@pytest.mark.parametrize("shape", [(S, D), (B, S, D), (B, T, S, D)], ids=len)
@pytest.mark.parametrize("settings", [{"activation": "tanh"}, {"use_bias": False}], ids=str)
def test_dense_is_that_of_keras(shape, policy, settings):
    ours, theirs = (kind(J, dtype=policy, **settings) for kind in (Dense, keras.layers.Dense))
    for layer in (ours, theirs):
        layer.build(shape)
        randomised(layer, 1)
    x = floats(*shape)
    found, expected = ours(x), theirs(x)
    assert found.shape == (*shape[:-1], J) and found.dtype == expected.dtype
    rtol = 1e-5 if policy == "float32" else 0.02
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), rtol=rtol, atol=1e-5)
    for row, y in zip(x.reshape(-1, D), to_numpy(found).reshape(-1, J), strict=True):
        by_hand = row @ ours.get_weights()[0] + (ours.get_weights()[1] if ours.use_bias else 0)
        np.testing.assert_allclose(y, np.tanh(by_hand) if ours.use_bias else by_hand, atol=0.05)


@on_tensorflow
@pytest.mark.parametrize("leading", [(), (None,), (None, S)], ids=len)
def test_dense_takes_batches_of_unknown_size(leading):
    layer = Dense(J)
    assert layer(keras.Input((*leading, D))).shape == (None, *leading, J)
    graph = tf.function(layer, input_signature=[tf.TensorSpec((None, *leading, D))])
    for size in (B, T):
        given = floats(size, *(n or T for n in leading), D)
        np.testing.assert_allclose(to_numpy(graph(given)), given @ layer.get_weights()[0], atol=1e-5)


# === Tied logits ===


@pytest.mark.parametrize("policy", ("float32", "mixed_float16", "mixed_bfloat16"))
@pytest.mark.parametrize("leading", [(B,), (B, S)], ids=len)
def test_reversible_word_embedding_scores_each_word_by_its_vector(leading, policy):
    layer = ReversibleWordEmbedding(V, D, dtype=policy)
    layer.build((B, S))
    table, x = randomised(layer, 1).get_weights()[0], floats(*leading, D)
    logits, atol = to_numpy(layer(x, reverse=True)), 1e-5 if policy == "float32" else 0.05
    for row, scores in zip(x.reshape(-1, D), logits.reshape(-1, V), strict=True):
        np.testing.assert_allclose(scores, [row @ vector for vector in table], atol=atol)
    ids = np.array([[3, 10], [0, 3]])
    np.testing.assert_allclose(to_numpy(layer(ids)), table[ids], atol=atol)


@on_tensorflow
def test_reversible_word_embedding_adds_the_gradients_of_both_uses():
    layer, ids, x = ReversibleWordEmbedding(V, D), np.array([[3, 10, 3]]), floats(1, 3, D)
    layer.build((B, S))
    looked_up = np.zeros((V, D))
    for id, row in zip(ids[0], x[0], strict=True):
        looked_up[id] += row
    for scored in (0.0, 1.0):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids) * x) + scored * tf.reduce_sum(layer(x, reverse=True))
        gradient = tape.gradient(loss, layer.embeddings.value)
        assert isinstance(gradient, tf.Tensor)  # no IndexedSlices, see `layers.word_embedding`
        np.testing.assert_allclose(gradient.numpy(), looked_up + scored * x.sum(axis=(0, 1)), atol=1e-5)
