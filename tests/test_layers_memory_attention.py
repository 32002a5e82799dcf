"""`layers.memory_attention` against loops from the paper (MEMMA, equations 9 to 11)."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import B, D, S, T, memory
from reference import hop_in_loops

SIZES = ({"heads": 3}, {"heads": 1}, {"projected": False})


def built(timed=True, **settings):
    """A layer and its inputs: one turn remembers all, one a single sentence, one nothing."""
    case = memory(timed, **settings)
    query, sentences, mask, *times = case.inputs.values()
    mask = np.array([[[1] * S, [0, 0, 1, 0, 0], [1, 1, 0, 0, 0]], [[0] * S, [0, 1, 1, 0, 1], [1] * S]], bool)
    return case.build(), (query, sentences, mask, *times)


@pytest.mark.parametrize("divisor", (1.0, 7.0))
@pytest.mark.parametrize("timed", (False, True))
@pytest.mark.parametrize("settings", SIZES)
def test_memory_attention_matches_equations_9_to_11(settings, timed, divisor):
    """A turn's memory is each sentence with the vector of its time; a turn without history reads zeros."""
    layer, inputs = built(timed, **settings)
    layer.divisor = divisor
    o, weights = map(to_numpy, layer(*inputs))
    query, sentences, mask, *times = inputs
    for b in range(B):
        memories = np.repeat(sentences[b][None], T, axis=0)
        if timed:
            memories = memories + times[0][times[1][b].argmax(axis=-1)]
        expected, expected_weights = hop_in_loops(query[b], memories, mask[b], layer)
        np.testing.assert_allclose(o[b], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(weights[b], expected_weights, atol=1e-5)
    assert not o[1, 0].any() and not weights[1, :, 0].any()
    untimed, _ = layer(*inputs[:3])
    assert not timed or np.abs(o - to_numpy(untimed)).max() > 0.1


def test_memory_attention_counts_parameters():
    """Four square matrices, however many heads; without projections nothing."""
    counts = [built(**settings)[0].count_params() for settings in SIZES]
    assert counts == [4 * (3 * D) ** 2] * 2 + [0]
