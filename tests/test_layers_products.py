"""`layers.products` against loops, and its gradients against autodiff's of `keras.ops.matmul`."""

import keras
import numpy as np
import pytest
from gradients import gradients_of

from layers.attentive_module import row_products

B, T, Q, K, D = 2, 3, 5, 7, 11
SHAPES = {
    "alike": ((B, T, Q, D), (B, T, K, D)),
    "broadcast": ((B, 1, Q, D), (1, T, K, D)),
    "fewer axes": ((B, T, Q, D), (K, D)),
    "no leading axes": ((Q, D), (K, D)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_row_products_are_dot_products_also_backwards(name):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype("float32") for shape in SHAPES[name])
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    expected = np.zeros((*lead, Q, K))
    wide_x, wide_y = np.broadcast_to(x, (*lead, Q, D)), np.broadcast_to(y, (*lead, K, D))
    for *i, q, k in np.ndindex(expected.shape):
        expected[(*i, q, k)] = wide_x[(*i, q)] @ wide_y[(*i, k)]
    upstream = rng.normal(size=expected.shape)
    found, gradients = gradients_of(row_products, [x, y], upstream)
    np.testing.assert_allclose(found, expected, atol=1e-5)

    def plain(x, y):
        return keras.ops.matmul(x, keras.ops.swapaxes(y, -1, -2))

    for one, other in zip(gradients, gradients_of(plain, [x, y], upstream)[1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
