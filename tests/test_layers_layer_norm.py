"""`layers.layer_norm` against its definition, and its gradient against autodiff and differences."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.layer_norm import LayerNorm
from layers.tensorflow_kernels import can_normalize_rows, normalize_rows

SHAPE = (2, 3, 7)


def build(dtype="float32", epsilon=1e-3):
    layers = [kind(epsilon=epsilon, dtype=dtype) for kind in (LayerNorm, keras.layers.LayerNormalization)]
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=7).astype("float32"), rng.normal(size=7).astype("float32")]
    for layer in layers:
        layer.build(SHAPE)
        layer.set_weights(weights)
    return layers


def gradients(layer, x, upstream, compiled):
    def compute(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        return [y, *tape.gradient(y, [x, *(v.value for v in layer.trainable_variables)], output_gradients=upstream)]

    return [tf.cast(result, "float32").numpy() for result in (tf.function(compute) if compiled else compute)(x)]


@pytest.mark.parametrize("one_pass", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 3e-6), ("mixed_bfloat16", 2e-2)])
def test_output_and_gradients_are_those_of_keras(dtype, tolerance, compiled, one_pass, monkeypatch):
    if not one_pass:  # as on other backends and on a GPU
        monkeypatch.setattr("layers.layer_norm.can_normalize_rows", lambda dtype: False)
    rng = np.random.default_rng(1)
    kind = "float32" if dtype == "float32" else "bfloat16"
    x, upstream = (tf.cast(rng.normal(2.0, 3.0, SHAPE), kind) for _ in range(2))
    ours, theirs = (gradients(layer, x, upstream, compiled) for layer in build(dtype))
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


def test_rows_are_normalized():
    layer, _ = build(epsilon=1e-6)
    layer.set_weights([np.ones(7), np.zeros(7)])
    y = layer(np.random.default_rng(2).normal(5.0, 4.0, SHAPE).astype("float32")).numpy()
    np.testing.assert_allclose(y.mean(-1), 0.0, atol=1e-6)
    np.testing.assert_allclose(y.std(-1), 1.0, atol=1e-5)


def test_a_constant_row_has_no_gradient_that_is_not_finite():
    layer, _ = build()
    y, *found = gradients(layer, tf.fill(SHAPE, 4.0), tf.ones(SHAPE), compiled=True)
    np.testing.assert_allclose(y, np.broadcast_to(layer.get_weights()[1], SHAPE), atol=1e-6)
    assert all(np.isfinite(gradient).all() for gradient in found)


def test_it_is_rebuilt_from_its_config():
    layer = LayerNorm(epsilon=1e-5, name="norm")
    assert LayerNorm.from_config(layer.get_config()).epsilon == 1e-5


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_rows_normalized_in_one_pass_are_those_of_the_definition(rows, dtype, tolerance):
    rng = np.random.default_rng(4)
    gamma, beta = rng.normal(size=(2, 7)).astype("float32")
    x = tf.cast(rng.normal(3.0, 2.0, (rows, 7)), dtype)
    signature = [tf.TensorSpec([None, 7], dtype)]  # as in a model, where the number of rows is not known
    found = tf.function(lambda x: normalize_rows(x, gamma, beta, 1e-3), input_signature=signature)(x)
    assert found.dtype == dtype
    exact = tf.cast(x, "float64").numpy()
    mean, variance = exact.mean(-1, keepdims=True), exact.var(-1, keepdims=True)
    expected = (exact - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    np.testing.assert_allclose(tf.cast(found, "float64"), expected, rtol=tolerance, atol=2 * tolerance)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes_are_normalized_too(dtype):
    assert not can_normalize_rows(dtype)
    x = np.random.default_rng(5).normal(2.0, 3.0, SHAPE).astype(dtype)
    ours, theirs = build(dtype)
    np.testing.assert_allclose(ours(x), theirs(x), rtol=5e-3, atol=5e-3)
