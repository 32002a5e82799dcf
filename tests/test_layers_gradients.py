"""`layers.gradients` against autodiff."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gradients import gradients_of
from helpers import on_tensorflow
from layer_cases import B, D, T, floats

from layers.gradients import add_bias


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
