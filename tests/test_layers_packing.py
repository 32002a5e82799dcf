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
def test_packing_rounds_up_by_padded_rows_that_count_for_nothing(name, multiple):
    mask = np.array(MASKS[name])
    x, upstream = np.random.default_rng(0).normal(size=(2, *mask.shape, D)).astype("float32")
    pack_sum, unpack = packing(mask, mask, multiple)
    with tf.GradientTape() as tape:
        rows = pack_sum(x, x)
        tape.watch(rows)
        found = unpack(rows)
    assert len(rows) == min(-(-mask.sum() // multiple) * multiple, mask.size)
    np.testing.assert_array_equal(found, np.where(mask[..., None], 2 * x, 0.0))
    gradient = tape.gradient(found, rows, tf.constant(upstream)).numpy()
    some = (gradient != 0).any(axis=-1)
    np.testing.assert_array_equal(gradient[some], upstream[mask])


@pytest.mark.parametrize("axis", [-4, -3, -2])
@pytest.mark.parametrize("own_shape", [(2, 3, 4, 5), (2, 3, 1, 5), (1, 3, 4, 5), (4, 1)])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_packing_takes_an_axis_from_elsewhere(axis, own_shape, full, compiled):
    rng = np.random.default_rng(0)
    mask = np.ones((2, 3, 4, 5), bool) if full else rng.random((2, 3, 4, 5)) < 0.4
    y = rng.normal(size=(*own_shape, D)).astype("float32")
    x = rng.normal(size=(*mask.shape, D)).astype("float32")
    given = np.moveaxis(x, axis - 1, -3)
    R = -(-mask.sum() // 8) * 8
    upstream = rng.normal(size=(R, D)).astype("float32")

    def compute(x, y, upstream):
        pack_sum, unpack = packing(mask, np.zeros(own_shape, bool), 8, axis)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            rows = pack_sum(x, y)
            back = unpack(rows)
        return back, *tape.gradient(back, [x, y], unpack(upstream))

    function = tf.function(compute) if compiled else compute
    back, x_gradient, y_gradient = function(*map(tf.constant, (given, y, upstream)))
    np.testing.assert_array_equal(back, np.where(mask[..., None], x + y, 0.0))
    padded = np.moveaxis(x_gradient.numpy(), -3, axis - 1)
    assert not padded[~mask].any() and (padded[mask] != 0).all()
    _, unpack = packing(mask, mask, 8)
    np.testing.assert_array_equal(padded, unpack(upstream))
    with tf.GradientTape() as tape:
        plain = tf.constant(y)
        tape.watch(plain)
        total = tf.broadcast_to(plain, padded.shape)
    np.testing.assert_allclose(y_gradient, tape.gradient(total, plain, tf.constant(padded)), atol=1e-5)
