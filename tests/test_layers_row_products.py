"""`layers.row_products` against einsum and autodiff."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.row_products import RowProducts, add_bias, row_products, row_sums

B, T, Q, K, D = 2, 3, 5, 4, 7
SHAPES = {
    "alike": ((B, T, Q, D), (B, T, K, D)),
    "x broadcasts": ((B, 1, Q, D), (B, T, K, D)),
    "both broadcast": ((B, 1, Q, D), (1, T, K, D)),
    "y has fewer axes": ((B, T, Q, D), (K, D)),
    "one row": ((B, T, 1, D), (B, 1, K, D)),
    "y broadcasts": ((B, T, Q, D), (B, 1, K, D)),
    "y broadcasts farther out": ((B, T, Q, D), (1, T, K, D)),
    "each along an axis of its own": ((B, 1, T, Q, D), (B, T, 1, K, D)),
}


def normal(seed, *shape):
    return tf.constant(np.random.default_rng(seed).normal(size=shape), "float32")


def with_gradients(function, inputs, upstream):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        found = function(*inputs)
    return [found, *tape.gradient(found, inputs, upstream)]


def assert_alike(function, plain, inputs, upstream, compiled):
    """Figures and gradients of a function are those that autodiff finds for a plain one."""

    def compute(upstream, *inputs):
        return with_gradients(function, list(inputs), upstream)

    if compiled:
        unknown = [[1 if n == 1 else None for n in x.shape[:-1]] + [x.shape[-1]] for x in inputs]
        shapes = [[None] * (upstream.ndim - 1) + [upstream.shape[-1]], *unknown]
        compute = tf.function(compute, input_signature=[tf.TensorSpec(shape) for shape in shapes])
    expected = with_gradients(plain, inputs, upstream)
    for one, other in zip(compute(upstream, *inputs), expected, strict=True):
        assert one.shape == other.shape and np.abs(other).max() > 0.1
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("compiled", [False, True])
def test_row_products_are_those_of_einsum_also_backwards(name, compiled):
    shapes = SHAPES[name]
    inputs = [normal(seed, *shape) for seed, shape in enumerate(shapes)]
    lead = np.broadcast_shapes(*(shape[:-2] for shape in shapes))
    upstream = normal(3, *lead, shapes[0][-2], K)
    assert_alike(row_products, lambda x, y: tf.einsum("...qd,...kd->...qk", x, y), inputs, upstream, compiled)


SUMS = {
    "alike": (((B, T, Q, K), (B, T, K, D)), -3),
    "no leading axes": (((Q, K), (K, D)), -3),
    "along the last axis": (((B, T, Q, K), (B, 1, K, D)), -3),
    "along another axis": (((B, T, Q, K), (1, T, K, D)), -4),
    "along two": (((B, T, Q, K), (1, 1, K, D)), -3),
    "along the first of three": (((B, 4, T, Q, K), (B, 1, T, K, D)), -4),
    "fewer axes": (((B, T, Q, K), (K, D)), -3),
    "weights broadcast": (((B, 1, Q, K), (B, T, K, D)), -3),
    "neither has the axis": (((B, 1, Q, K), (B, 1, K, D)), -3),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("compiled", [False, True])
def test_row_sums_are_those_of_einsum_with_an_axis_moved(name, compiled):
    shapes, axis = SUMS[name]
    inputs = [normal(seed, *shape) for seed, shape in enumerate(shapes)]
    assert row_sums(*inputs)[1] == axis

    def plain(weights, y):
        sums = tf.einsum("...qk,...kd->...qd", weights, y)
        return sums if axis == -3 else keras.ops.moveaxis(sums, axis, -3)

    assert_alike(lambda *given: row_sums(*given)[0], plain, inputs, normal(3, *plain(*inputs).shape), compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_row_products_with_itself(compiled):
    x, upstream = normal(0, B, T, Q, D), normal(1, B, T, Q, Q)
    plain = lambda x: tf.einsum("...qd,...kd->...qk", x, x)  # noqa: E731
    for function in (lambda x: row_products(x, x), lambda x: RowProducts()(x, x)):
        assert_alike(function, plain, [x], upstream, compiled)


@pytest.mark.parametrize("biases", [1, D])
@pytest.mark.parametrize("compiled", [False, True])
def test_add_bias(biases, compiled):
    inputs = [normal(0, Q, D), normal(1, biases)]
    assert_alike(add_bias, lambda x, b: x + b, inputs, normal(2, Q, D), compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_add_bias_counts_beyond_256_in_bfloat16(compiled):
    def gradient(x, b):
        return with_gradients(add_bias, [x, b], tf.ones_like(x))[2]

    found = (tf.function(gradient) if compiled else gradient)(
        tf.zeros((10_000, 3), "bfloat16"), tf.zeros(3, "bfloat16")
    )
    np.testing.assert_allclose(tf.cast(found, "float32"), 10_000, rtol=0.004)


def test_row_products_of_unknown_sizes_in_a_model():
    x, y = keras.Input((None, None, D)), keras.Input((1, None, D))
    model = keras.Model([x, y], RowProducts()(x, y))
    assert model.output_shape == (None, None, None, None)
    given = normal(0, B, T, Q, D), normal(1, B, 1, K, D)
    np.testing.assert_allclose(model(list(given)), tf.einsum("btqd,bskd->btqk", *given), atol=1e-5)
