"""`layers.packing` against indexing, and its gradients against the definition."""

import numpy as np
import pytest
import tensorflow as tf

from layers.packing import packing

D = 3
MASKS = {
    "ragged": [[True, False, True, True, False], [False, True, False, False, True]],
    "all real": [[True] * 5] * 2,
    "all padding": [[False] * 5] * 2,
}


def compute(mask, x, y, upstream_packed, upstream):
    """`pack(x)`, `unpack(y)` and what either gives back of an upstream gradient."""
    pack, unpack = packing(mask)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        packed, unpacked = pack(x), unpack(y)
    back = tape.gradient(packed, x, upstream_packed), tape.gradient(unpacked, y, upstream)
    return packed, unpacked, *back


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("compiled", [False, True])
def test_packing_is_indexing_by_the_mask_both_ways(name, compiled):
    mask = np.array(MASKS[name])
    rng, real = np.random.default_rng(0), mask.ravel()
    x, upstream = rng.normal(size=(2, 10, D)).astype("float32")
    y, upstream_packed = rng.normal(size=(2, real.sum(), D)).astype("float32")
    rows = [tf.TensorSpec([None, D], "float32")] * 4
    signature = [tf.TensorSpec([None, None], "bool"), *rows]
    function = tf.function(compute, input_signature=signature) if compiled else compute
    packed, unpacked, x_gradient, y_gradient = function(*map(tf.constant, (mask, x, y, upstream_packed, upstream)))
    padded = np.zeros((2, 10, D), "float32")
    padded[0, real], padded[1, real] = y, upstream_packed
    np.testing.assert_array_equal(packed, x[real])
    np.testing.assert_array_equal(unpacked, padded[0])
    np.testing.assert_array_equal(x_gradient, padded[1])
    np.testing.assert_array_equal(y_gradient, upstream[real])
