"""`layers.gradients` against autodiff and Keras, and the tied logits of `layers.word_embedding` against loops."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gradients import gradients_of
from helpers import on_tensorflow
from layer_cases import B, D, S, T, V, floats

from layers.gradients import add_bias
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


@on_tensorflow
def test_reversible_word_embedding_adds_the_gradients_of_both_uses():
    layer, ids, x = ReversibleWordEmbedding(V, D), np.array([[3, 10, 3]]), floats(1, 3, D)
    layer.build((B, S))
    looked_up = np.zeros((V, D))
    for id, row in zip(ids[0], x[0], strict=True):
        looked_up[id] += row
    for scored in (0.0, 1.0):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids) * x) + scored * tf.reduce_sum(layer(x, scored=layer.input_dim))
        gradient = tape.gradient(loss, layer.embeddings.value)
        assert isinstance(gradient, tf.Tensor)  # no IndexedSlices, see `layers.word_embedding`
        np.testing.assert_allclose(gradient.numpy(), looked_up + scored * x.sum(axis=(0, 1)), atol=1e-5)
