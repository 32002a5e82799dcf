"""`layers.self_attention` against loops."""

import numpy as np
from helpers import to_numpy
from layer_cases import built
from reference import self_attention_in_loops

from layers.self_attention import SelfAttention


def test_self_attention_matches_loops():
    layer, (x, _) = built("SelfAttention")
    mask = np.arange(5) < [[3], [1]]  # of three words, and of one
    found = to_numpy(layer(x, mask))
    for b, n in enumerate(mask.sum(axis=1)):
        np.testing.assert_allclose(found[b, :n], self_attention_in_loops(x[b, :n], layer), atol=1e-5)


def test_self_attention_starts_as_the_identity():
    _, (x, mask) = built("SelfAttention")
    np.testing.assert_array_equal(to_numpy(SelfAttention()(x, mask)), x)
