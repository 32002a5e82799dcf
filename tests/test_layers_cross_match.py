"""`layers.cross_match` against loops from the paper (Zhou et al. 2018, section 3.5)."""

import numpy as np
import pytest
from helpers import check_saves_and_loads, set_random_weights, to_numpy
from reference import cross_match_in_loops

from layers.cross_match import CrossMatch

N, T, K, J, D = 2, 3, 5, 7, 11  # candidates, turns, utterance words, response words, features


@pytest.fixture(scope="module")
def u_r():
    """Utterances broadcast over the candidates, responses over the turns."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype("float32") for s in ((1, T, K, D), (N, 1, J, D))]


@pytest.fixture(scope="module")
def masks():
    """One turn is empty, one full; one response is short."""
    return np.arange(K) < np.array([[[0], [K], [2]]]), np.arange(J) < np.array([[[J]], [[3]]])


def product(U, R):
    return U @ np.swapaxes(R, -1, -2)


def built(**settings):
    layer = CrossMatch(**settings)
    layer.build((1, T, K, D), (N, 1, J, D))
    return set_random_weights(layer, 1)


@pytest.mark.parametrize("scalar_bias", (False, True))
@pytest.mark.parametrize("masked", (True, False))
def test_cross_match_matches_equation(u_r, scalar_bias, masked):
    U, R = u_r
    layer = built(scalar_bias=scalar_bias)
    masks = [np.ones(x.shape[:-1], bool) for x in u_r] if masked else []
    found = to_numpy(layer(U, R, product(U, R), *masks))
    assert found.shape == (N, T, K, J)
    for n, t in np.ndindex(N, T):
        expected = cross_match_in_loops(U[0, t], R[n, 0], layer)
        np.testing.assert_allclose(found[n, t], expected, atol=1e-4)


def test_cross_match_ignores_padding(u_r, masks):
    U, R = u_r
    layer = built()
    for garbage in (0.0, -40.0):
        padded, padded_masks = [], []
        for x, mask, end in zip((U, R), masks, (4, 6), strict=True):
            x = np.where(mask[..., None], x, garbage).astype("float32")
            padded.append(np.pad(x, [(0, 0)] * 2 + [(0, end), (0, 0)], constant_values=garbage))
            padded_masks.append(np.pad(mask, [(0, 0)] * 2 + [(0, end)]))
        found = to_numpy(layer(*padded, product(*padded), *padded_masks))
        u_mask, r_mask = padded_masks
        assert not found[np.broadcast_to(~(u_mask[..., :, None] & r_mask[..., None, :]), found.shape)].any()
        for n, t in np.ndindex(N, T):
            u, r = U[0, t][masks[0][0, t]], R[n, 0][masks[1][n, 0]]
            expected = cross_match_in_loops(u, r, layer)
            np.testing.assert_allclose(found[n, t, : len(u), : len(r)], expected, atol=1e-4)


def test_cross_match_release_matches_release(u_r, masks):
    U, R = u_r
    layer = built(masking="release")
    found = to_numpy(layer(U, R, product(U, R), *masks))
    for n, t in np.ndindex(N, T):
        pairs = masks[0][0, t][:, None] & masks[1][n, 0]
        expected = cross_match_in_loops(U[0, t], R[n, 0], layer, pairs)
        np.testing.assert_allclose(found[n, t], expected, atol=1e-4)


def test_cross_match_has_separate_weights_for_each_direction():
    layer = built()
    assert len(layer.weights) == len({id(w) for w in layer.weights}) == 2 * 8
    assert layer.count_params() == 2 * layer.utterance_attends.count_params()


def test_cross_match_rejects_masking(u_r):
    with pytest.raises(ValueError, match=r"masking must be one of .*Received: masking='padding'"):
        CrossMatch(masking="padding")(*u_r, product(*u_r))


@pytest.mark.parametrize("missing", ("utterance_mask", "response_mask"))
def test_cross_match_rejects_release_without_masks(u_r, masks, missing):
    given = {"utterance_mask": masks[0], "response_mask": masks[1], missing: None}
    with pytest.raises(ValueError, match="masking='release' needs query_mask and key_mask"):
        built(masking="release")(*u_r, product(*u_r), **given)


def test_cross_match_saves_and_loads(u_r, masks):
    settings = {"masking": "release", "scalar_bias": True, "name": "match"}
    check_saves_and_loads(built(**settings), *u_r, product(*u_r), *masks, **settings)
