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


OWN = {"alike": (2, 5), "broadcast": (1, 5), "fewer axes": (5,), "both": (1,)}


def compute(mask, own_mask, x, y, rows, upstream_rows, upstream):
    """`pack_sum(x, y)`, `unpack(rows)` and what either gives back of an upstream gradient."""
    pack_sum, unpack = packing(mask, own_mask)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y, rows])
        packed, unpacked = pack_sum(x, y), unpack(rows)
    return packed, unpacked, *tape.gradient(packed, [x, y], upstream_rows), tape.gradient(unpacked, rows, upstream)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("compiled", [False, True])
def test_packing_is_indexing_by_the_mask_both_ways(name, own, compiled):
    mask, own_shape = np.array(MASKS[name]), OWN[own]
    rng, R = np.random.default_rng(0), mask.sum()
    x, upstream = rng.normal(size=(2, 2, 5, D)).astype("float32")
    rows, upstream_rows = rng.normal(size=(2, R, D)).astype("float32")
    y = rng.normal(size=(*own_shape, D)).astype("float32")
    given = mask, np.zeros(own_shape, bool), x, y, rows, upstream_rows, upstream
    unknown = [[1 if n == 1 else None for n in array.shape[:-1]] + [array.shape[-1]] for array in given[2:]]
    signature = [
        *(tf.TensorSpec([1 if n == 1 else None for n in array.shape], "bool") for array in given[:2]),
        *(tf.TensorSpec(shape, "float32") for shape in unknown),
    ]
    function = tf.function(compute, input_signature=signature) if compiled else compute
    packed, unpacked, x_gradient, y_gradient, rows_gradient = function(*map(tf.constant, given))
    padded = np.zeros((2, 2, 5, D), "float32")
    padded[0, mask], padded[1, mask] = rows, upstream_rows
    np.testing.assert_array_equal(packed, (x + y)[mask])
    np.testing.assert_array_equal(unpacked, padded[0])
    np.testing.assert_array_equal(x_gradient, padded[1])
    broadcast = tuple(range(2 - len(own_shape))) + tuple(
        2 - len(own_shape) + axis for axis, n in enumerate(own_shape) if n == 1
    )
    np.testing.assert_allclose(y_gradient, padded[1].sum(axis=broadcast).reshape(y.shape), atol=1e-6)
    np.testing.assert_array_equal(rows_gradient, upstream[mask])


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("multiple", [2, 4, 7])
def test_packing_rounds_up_by_padded_rows(name, multiple):
    mask = np.array(MASKS[name])
    x = np.random.default_rng(0).normal(size=(*mask.shape, D)).astype("float32")
    pack_sum, unpack = packing(mask, mask, multiple)
    rows = pack_sum(x, x)
    assert len(rows) == min(-(-mask.sum() // multiple) * multiple, mask.size)
    found = unpack(rows).numpy()
    np.testing.assert_array_equal(found[mask], 2 * x[mask])
    kept = (found != 0).any(axis=-1)
    np.testing.assert_array_equal(found[kept], 2 * x[kept])
    assert kept.sum() == len(rows)
