"""`layers.attentive_module` beside its equations: padding left out."""

import numpy as np
import pytest
from gradients import gradients_of
from helpers import randomised, to_numpy

from layers.attentive_module import AttentiveModule

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
    randomised(layer, seed=4)
    lead = np.broadcast_shapes(query_lead, key_lead)
    assert layer.compute_output_shape(query.shape, key.shape) == (*lead, 5, 6)
    real = np.broadcast_to(query_mask & key_mask.any(axis=-1, keepdims=True), (*lead, 5))
    upstream = rng.normal(size=(*lead, 5, 6)).astype("float32")
    found = []

    def attend(query, key, *_):
        return layer(query, key, key, query_mask, key_mask)

    for unpad, upstream_of in ((True, upstream), (False, upstream), (True, upstream * real[..., None])):
        layer.fast = unpad
        y, gradients = gradients_of(attend, [query, key, *layer.trainable_variables], upstream_of)
        found.append([y, *gradients])
    assert 0 < real.mean() and not y[~real].any()
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_allclose(one, other, atol=5e-5)
    assert not to_numpy(layer(query, key, key, np.zeros_like(query_mask), key_mask)).any()
