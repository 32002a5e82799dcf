"""`layers.layer_norm` against Keras's own layer, in results and gradients."""

import keras
import numpy as np
import pytest
from gradients import gradients_of
from helpers import not_on_jax

from layers.layer_norm import LayerNorm

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
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        *(("float32", 3e-6), ("mixed_bfloat16", 2e-2)),
        *(("mixed_float16", 3e-3), pytest.param("float64", 1e-9, marks=not_on_jax)),  # these are no one operation
    ],
)
def test_output_and_gradients_are_those_of_keras(dtype, tolerance, rows):
    rng = np.random.default_rng(1)
    x, upstream = keras.ops.cast(rng.normal(2.0, 3.0, (2, rows, 3, 7)), dtype.removeprefix("mixed_"))
    ours, theirs = (with_gradients(layer, x, upstream) for layer in build(dtype))
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max(initial=0.0))
