"""`layers.attentive_module` beside its equations: the release's masks, sizes, padding left out."""

import keras
import numpy as np
import pytest
from gradients import gradients_of
from helpers import set_random_weights, to_numpy
from layer_cases import B, D, J, S, T, attentive, floats

from layers.attentive_module import AttentiveModule, row_products


def built(**settings):
    """A layer; query, key and value; their masks: a full sentence and one word, of the keys also an empty sentence."""
    case = attentive(**settings)
    layer, (query, key, value, query_mask, key_mask) = case.build(), case.inputs.values()
    key_mask = key_mask & (np.arange(T) != 1)[:, None]
    return set_random_weights(layer, 1), (query, key, value), (query_mask, key_mask)


LEADING = {  # of query and key
    "query along an axis": ((2, 1), (2, 3)),
    "key along another axis": ((2, 3), (1, 3)),
    "both": ((2, 3, 1), (2, 1, 4)),
    "none": ((), ()),
}


@pytest.mark.parametrize("leading", LEADING)
def test_unpadded_words_give_what_padded_ones_give(leading):
    """Also by gradients, and with sentences of nothing but padding; padded words are zero whatever they are given."""
    rng = np.random.default_rng(3)
    query_lead, key_lead = LEADING[leading]
    query, key = (rng.normal(size=(*lead, n, 6)).astype("float32") for lead, n in ((query_lead, 5), (key_lead, 4)))
    query_mask = np.arange(5) < rng.integers(0, 6, (*query_lead, 1))
    query_mask[..., 0] |= not query_lead
    key_mask = np.arange(4) < rng.integers(0, 5, (*key_lead, 1))
    key_mask[..., 0] |= not key_lead
    layer = AttentiveModule(scalar_bias=leading == "both")
    layer.build(query.shape, key.shape)
    set_random_weights(layer, seed=4)
    lead = np.broadcast_shapes(query_lead, key_lead)
    assert layer.compute_output_shape(query.shape, key.shape) == (*lead, 5, 6)
    real = np.broadcast_to(query_mask & key_mask.any(axis=-1, keepdims=True), (*lead, 5))
    upstream = rng.normal(size=(*lead, 5, 6)).astype("float32")
    found = []
    for unpad, upstream_of in ((True, upstream), (False, upstream), (True, upstream * real[..., None])):
        layer.fast = unpad
        y, gradients = gradients_of(
            lambda query, key, *_: layer(query, key, key, query_mask, key_mask),
            [query, key, *layer.trainable_variables],
            upstream_of,
        )
        found.append([y, *gradients])
    assert 0 < real.mean() and not y[~real].any()
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_allclose(one, other, atol=5e-5)
    assert not to_numpy(layer(query, key, key, np.zeros_like(query_mask), key_mask)).any()


@pytest.mark.parametrize(
    ("x_shape", "y_shape"), [((B, T, S, D), (B, T, J, D)), ((B, 1, S, D), (1, T, J, D)), ((S, D), (J, D))]
)
def test_row_products_are_dot_products_also_backwards(x_shape, y_shape):
    x, y = floats(*x_shape), floats(*y_shape, seed=1)
    lead = np.broadcast_shapes(x_shape[:-2], y_shape[:-2])
    wide_x, wide_y = np.broadcast_to(x, (*lead, S, D)), np.broadcast_to(y, (*lead, J, D))
    expected, upstream = np.zeros((*lead, S, J)), floats(*lead, S, J, seed=2)
    for *i, q, k in np.ndindex(expected.shape):
        expected[(*i, q, k)] = wide_x[(*i, q)] @ wide_y[(*i, k)]
    found, gradients = gradients_of(row_products, [x, y], upstream)
    np.testing.assert_allclose(found, expected, atol=1e-5)

    def plain(x, y):
        return keras.ops.matmul(x, keras.ops.swapaxes(y, -1, -2))

    for one, other in zip(gradients, gradients_of(plain, [x, y], upstream)[1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
