"""`layers.layer_norm` against its definition, and its gradient against autodiff and differences."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.layer_norm import LayerNorm

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


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 3e-6), ("mixed_bfloat16", 2e-2)])
def test_output_and_gradients_are_those_of_keras(dtype, tolerance, compiled):
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
