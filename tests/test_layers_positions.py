"""`layers.positions` against loops from the definition (Vaswani et al. 2017, section 3.5)."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import D, J, built
from reference import signal_in_loops

from layers.positions import PositionalEncoding, sinusoids


@pytest.mark.parametrize("dimension", (2, 3, 7, 10))
@pytest.mark.parametrize("max_timescale", (10.0, 1e4))
def test_sinusoids_match_definition(dimension, max_timescale):
    found = sinusoids(11, dimension, max_timescale)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, signal_in_loops(11, dimension, max_timescale), atol=1e-6)


def test_positional_encoding_matches_equation():
    layer, [x] = built("PositionalEncoding")
    signal, found, weight = signal_in_loops(J, D, 7.0), to_numpy(layer(x)), layer.weight_K.numpy()
    for *at, k in np.ndindex(x.shape[:-1]):
        np.testing.assert_allclose(found[(*at, k)], x[(*at, k)] + weight[k] * signal[k], atol=1e-5)
    np.testing.assert_array_equal(to_numpy(PositionalEncoding(J)(x)), x)  # starts as the identity
