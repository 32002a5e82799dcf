"""`layers.unpadding` against indexing by the mask, and its gradients against autodiff's of the padded computation."""

import numpy as np
import pytest
from gradients import gradients_of

from layers.unpadding import unpadding

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
