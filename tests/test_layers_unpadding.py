"""`layers.unpadding` against indexing by the mask, and its gradients against autodiff's of the padded computation."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gradients import gradients_of
from helpers import on_tensorflow, to_numpy

from layers.unpadding import apply_padded, apply_unpadded, unpadding

D = 3
MASKS = {
    "ragged": [[True, False, True, True, False], [False, True, False, False, True]],
    "all real": [[True] * 5] * 2,
    "all padding": [[False] * 5] * 2,
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("multiple", [1, 2, 7])
def test_unpadding_is_indexing_by_the_mask_both_ways(name, multiple):
    mask, rng = np.array(MASKS[name]), np.random.default_rng(0)
    real = mask.sum()
    R = -(-real // multiple) * multiple
    x, upstream = rng.normal(size=(2, *mask.shape, D)).astype("float32")
    rows, upstream_rows = rng.normal(size=(2, R, D)).astype("float32")
    upstream_rows[real:] = 0.0  # as `repad` gives it
    unpad, repad = unpadding(mask, multiple)
    unpadded, [x_gradient] = gradients_of(unpad, [x], upstream_rows)
    repadded, [rows_gradient] = gradients_of(repad, [rows], upstream)
    expected = np.zeros((2, *mask.shape, D), "float32")
    expected[0, mask], expected[1, mask] = rows[:real], upstream_rows[:real]
    assert unpadded.shape == (R, D)
    np.testing.assert_array_equal(unpadded[:real], x[mask])
    np.testing.assert_array_equal(unpadded[real:], np.repeat(x[mask][-1:], R - real, axis=0))
    np.testing.assert_array_equal(repadded, expected[0])
    np.testing.assert_array_equal(x_gradient, expected[1])
    np.testing.assert_array_equal(rows_gradient[:real], upstream[mask])
    assert not rows_gradient[real:].any()


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=on_tensorflow)])
def test_unpadded_application_is_the_padded_one(name, compiled):
    """In a graph that knows no sizes too, with the gradients of the function's own weights."""
    mask, rng = np.array(MASKS[name]), np.random.default_rng(0)
    x, upstream = rng.normal(size=(2, *mask.shape, D)).astype("float32")
    x[~mask] = np.nan
    kernel = keras.Variable(rng.normal(size=(D, D)).astype("float32"))

    def by(apply):
        def compute(x, kernel, mask):
            return apply(lambda rows: keras.ops.tanh(keras.ops.matmul(rows, kernel)), x, mask)

        if compiled:
            specs = tf.TensorSpec((None, None, D)), tf.TensorSpec((D, D)), tf.TensorSpec((None, None), "bool")
            compute = tf.function(compute, input_signature=specs)
        return gradients_of(
            lambda x, kernel: compute(x, kernel, keras.ops.convert_to_tensor(mask)), [x, to_numpy(kernel)], upstream
        )

    found, [x_gradient, kernel_gradient] = by(apply_unpadded)
    np.testing.assert_array_equal(found[~mask], 0.0)
    np.testing.assert_array_equal(x_gradient[~mask], 0.0)
    x[~mask] = 0.0
    expected, [x_expected, kernel_expected] = by(apply_padded)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(x_gradient, x_expected, atol=1e-6)
    np.testing.assert_allclose(kernel_gradient, kernel_expected, atol=1e-5)
