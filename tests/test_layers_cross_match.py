"""`layers.cross_match` against loops from the paper (Zhou et al. 2018, section 3.5)."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import CASES, built, cross
from reference import cross_match_in_loops


@pytest.mark.parametrize("name", ["CrossMatch", "CrossMatch, scalar bias"])
@pytest.mark.parametrize("empty", (False, True))
def test_cross_match_matches_equation(name, empty):
    layer, (U, R, scores, u_mask, r_mask) = built(name)
    if empty:
        u_mask = u_mask & (np.arange(u_mask.shape[1]) > 0)[:, None]  # a turn without a word
    found = to_numpy(layer(U, R, scores, u_mask, r_mask))
    assert not found[np.broadcast_to(~(u_mask[..., :, None] & r_mask[..., None, :]), found.shape)].any()
    for n, t in np.ndindex(found.shape[:2]):
        u, r = U[0, t][u_mask[0, t]], R[n, 0][r_mask[n, 0]]
        expected = cross_match_in_loops(u, r, layer)
        np.testing.assert_allclose(found[n, t, : len(u), : len(r)], expected, atol=1e-4)
    if not empty:  # without masks every word is real
        everything = to_numpy(layer(U, R, scores))
        np.testing.assert_allclose(everything[0, 0], cross_match_in_loops(U[0, 0], R[0, 0], layer), atol=1e-4)


def test_cross_match_release_matches_release():
    case = cross(masking="release")
    layer, (U, R, scores, u_mask, r_mask) = case.build(), case.inputs.values()
    found = to_numpy(layer(U, R, scores, u_mask, r_mask))
    for n, t in np.ndindex(found.shape[:2]):
        pairs = u_mask[0, t][:, None] & r_mask[n, 0]
        np.testing.assert_allclose(found[n, t], cross_match_in_loops(U[0, t], R[n, 0], layer, pairs), atol=1e-4)
    for missing in ("utterance_mask", "response_mask"):
        with pytest.raises(ValueError, match="masking='release' needs query_mask and key_mask"):
            layer(**{**case.inputs, missing: None})


def test_cross_match_has_separate_weights_for_each_direction():
    layer = CASES["CrossMatch"].build()
    assert len(layer.weights) == len({id(w) for w in layer.weights}) == 2 * 8
    assert layer.count_params() == 2 * layer.utterance_attends.count_params()
