"""`layers.layer_norm` against Keras's own layer, in results and gradients."""

import keras
import numpy as np
import pytest
from gradients import gradients_of
from helpers import not_on_jax, to_numpy

from layers.layer_norm import LayerNorm
from layers.tensorflow_kernels import has_kernels

SHAPE = (2, 3, 7)


def build(dtype="float32", epsilon=1e-3):
    layers = [kind(epsilon=epsilon, dtype=dtype) for kind in (LayerNorm, keras.layers.LayerNormalization)]
    weights = np.random.default_rng(0).normal(size=(2, 7)).astype("float32")
    for layer in layers:
        layer.build(SHAPE)
        layer.set_weights(list(weights))
    return layers


def with_gradients(layer, x, upstream):
    found, gradients = gradients_of(lambda x, *_: layer(x), [x, *layer.trainable_variables], upstream)
    return [found, *gradients]


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 3e-6), ("mixed_bfloat16", 2e-2)])
def test_output_and_gradients_are_those_of_keras(dtype, tolerance, rows):
    rng = np.random.default_rng(1)
    x, upstream = keras.ops.cast(rng.normal(2.0, 3.0, (2, rows, 3, 7)), dtype.removeprefix("mixed_"))
    ours, theirs = (with_gradients(layer, x, upstream) for layer in build(dtype))
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max(initial=0.0))


@pytest.mark.parametrize("dtype", ["float16", pytest.param("float64", marks=not_on_jax)])
def test_dtypes_without_one_operation_are_normalized_too(dtype):
    assert not has_kernels(dtype)
    x = np.random.default_rng(5).normal(2.0, 3.0, SHAPE).astype(dtype)
    ours, theirs = build(dtype)
    np.testing.assert_allclose(to_numpy(ours(x)), to_numpy(theirs(x)), rtol=5e-3, atol=5e-3)


def test_without_that_operation_output_and_gradients_are_the_same(monkeypatch):
    x, upstream = np.random.default_rng(6).normal(size=(2, *SHAPE)).astype("float32")
    expected = with_gradients(build()[0], x, upstream)
    monkeypatch.setattr("layers.layer_norm.has_kernels", lambda dtype: False)
    for one, other in zip(with_gradients(build()[0], x, upstream), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-6, atol=3e-6)
