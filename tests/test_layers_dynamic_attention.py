"""`layers.dynamic_attention` against loops: attention inside a bidirectional LSTM."""

import numpy as np
from helpers import to_numpy
from layer_cases import built
from reference_recurrent import dynamic_in_loops


def test_dynamic_attention_matches_loops():
    layer, inputs = built("DynamicBiLSTM")
    found, (context, query, t_mask, j_mask) = to_numpy(layer(*inputs)), inputs
    for b, (t, j) in enumerate(zip(t_mask.sum(axis=1), j_mask.sum(axis=1), strict=True)):
        np.testing.assert_allclose(found[b, :t], dynamic_in_loops(context[b, :t], query[b, :j], layer), atol=1e-5)
        assert not found[b, t:].any()
    query[0, 0] *= -1
    changed = np.abs(to_numpy(layer(*inputs)) - found).max(axis=(1, 2))
    query[0, 0] *= -1
    assert changed[0] > 1e-3 and changed[1] < 1e-6
