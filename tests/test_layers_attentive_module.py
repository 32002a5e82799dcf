"""`layers.attentive_module` against loops from the paper (Zhou et al. 2018, section 3.3)."""

import numpy as np
import pytest
from gradients import gradients_of
from helpers import check_saves_and_loads, on_tensorflow, set_random_weights, to_numpy
from reference import block_in_loops, block_weights

from layers.attentive_module import AttentiveModule

A, N, Q, K, D = 2, 3, 5, 7, 11  # two leading axes, query words, key words, features


@pytest.fixture(scope="module")
def q_k_v():
    """The query broadcasts over the second leading axis, key and value over the first."""
    rng = np.random.default_rng(0)
    shapes = (A, 1, Q, D), (1, N, K, D), (1, N, K, D)
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


@pytest.fixture(scope="module")
def masks():
    """Key mask: one sentence has no word, one has all. Query mask: likewise."""
    key = np.arange(K) < np.array([[[0], [K], [3]]])
    query = np.arange(Q) < np.array([[[Q]], [[2]]])
    return query, key


def built(seed=1, q_k_v_shapes=((A, 1, Q, D), (1, N, K, D), (1, N, K, D)), **settings):
    layer = AttentiveModule(**settings)
    layer.build(*q_k_v_shapes)
    return set_random_weights(layer, seed)


@pytest.mark.parametrize("scalar_bias", (False, True))
@pytest.mark.parametrize("epsilon", (1e-6, 0.5))
def test_attentive_module_matches_equation(q_k_v, scalar_bias, epsilon):
    layer = built(scalar_bias=scalar_bias, epsilon=epsilon)
    found = to_numpy(layer(*q_k_v))
    assert found.shape == (A, N, Q, D)
    for a, n in np.ndindex(A, N):
        expected = block_in_loops(q_k_v[0][a, 0], q_k_v[1][0, n], q_k_v[2][0, n], block_weights(layer), epsilon)
        np.testing.assert_allclose(found[a, n], expected, atol=1e-5)


def test_attentive_module_takes_scores_that_the_caller_has(q_k_v):
    query, key, value = q_k_v
    layer = built()
    scores = query @ np.swapaxes(key, -1, -2)
    alone = to_numpy(layer(query, key, value))
    np.testing.assert_allclose(to_numpy(layer(*q_k_v, scores=scores)), alone, atol=1e-5)
    # The product is taken from the caller: the key itself is not looked at.
    np.testing.assert_allclose(to_numpy(layer(query, 0 * key, value, scores=scores)), alone, atol=1e-5)


def test_attentive_module_ignores_padding(q_k_v, masks):
    query, key, value = q_k_v
    _, key_mask = masks
    layer = built()
    found = to_numpy(layer(query, key, value, key_mask=key_mask))
    for garbage in (0.0, -40.0):
        full = (np.where(key_mask[..., None], x, garbage).astype("float32") for x in (key, value))
        padded = [np.pad(x, [(0, 0)] * 2 + [(0, 2), (0, 0)], constant_values=garbage) for x in full]
        mask = np.pad(key_mask, [(0, 0)] * 2 + [(0, 2)])
        again = to_numpy(layer(query, *padded, key_mask=mask))
        some_real = np.broadcast_to(key_mask.any(axis=-1, keepdims=True), found.shape[:-1])
        np.testing.assert_allclose(again[some_real], found[some_real], atol=1e-5)
        assert 0 < some_real.mean() < 1 and np.isfinite(again).all()
    for a, n in np.ndindex(A, N):
        real = key_mask[0, n]
        if real.any():
            expected = block_in_loops(query[a, 0], key[0, n][real], value[0, n][real], block_weights(layer))
            np.testing.assert_allclose(found[a, n], expected, atol=1e-5)


def test_attentive_module_ignores_padded_queries(q_k_v, masks):
    query, key, value = q_k_v
    query_mask, key_mask = masks
    layer = built()
    alone = to_numpy(layer(query, key, value, query_mask, key_mask))
    padded = np.pad(query, [(0, 0)] * 2 + [(0, 2), (0, 0)])
    mask = np.pad(query_mask, [(0, 0)] * 2 + [(0, 2)])
    found = to_numpy(layer(padded, key, value, mask, key_mask))
    np.testing.assert_allclose(found[:, :, :Q], alone, atol=1e-5)
    assert np.isfinite(found).all()


def test_attentive_module_release_matches_release(q_k_v, masks):
    query, key, value = q_k_v
    query_mask, key_mask = masks
    layer = built(masking="release")
    found = to_numpy(layer(query, key, value, query_mask, key_mask))
    for a, n in np.ndindex(A, N):
        pairs = query_mask[a, 0][:, None] & key_mask[0, n]
        expected = block_in_loops(query[a, 0], key[0, n], value[0, n], block_weights(layer), pairs=pairs)
        np.testing.assert_allclose(found[a, n], expected, atol=1e-5)


def test_attentive_module_release_attends_uniformly_from_padded_queries(q_k_v, masks):
    query, key, value = q_k_v
    query_mask, key_mask = masks
    layer = built(masking="release")
    found = to_numpy(layer(query, key, value, query_mask, key_mask))
    # Equal values have their own mean: uniform attention, whatever the logits.
    mean = np.broadcast_to(value.mean(axis=-2, keepdims=True), value.shape).astype("float32")
    uniform = to_numpy(layer(query, key, mean, query_mask, key_mask))
    padded = np.broadcast_to(~query_mask | ~key_mask.any(axis=-1)[..., None], (A, N, Q))
    np.testing.assert_allclose(found[padded], uniform[padded], atol=1e-5)
    assert np.abs(found - uniform)[~padded].max() > 0.1


def test_attentive_module_release_is_exact_without_padding(q_k_v):
    masks = np.ones((A, 1, Q), bool), np.ones((1, N, K), bool)
    release, exact = built(masking="release"), built()
    np.testing.assert_allclose(to_numpy(release(*q_k_v, *masks)), to_numpy(exact(*q_k_v, *masks)), atol=1e-5)


def test_attentive_module_counts_as_many_parameters_as_the_release():
    """At d = 200 the release has 80,802: two matrices, two numbers, two pairs of vectors."""
    d = 200
    shapes = ((None, 3, d),) * 3
    scalar = built(q_k_v_shapes=shapes, scalar_bias=True)
    vector = built(q_k_v_shapes=shapes)
    assert scalar.count_params() == 2 * d * d + 2 * 1 + 2 * 2 * d == 80_802
    assert vector.count_params() == 2 * d * d + 2 * d + 2 * 2 * d == 81_200


def test_attentive_module_takes_away_a_scalar_b2(q_k_v):
    """The release's b2, added to every feature alike, falls to the layer norm after it."""
    layer = built(scalar_bias=True)
    before = to_numpy(layer(*q_k_v))
    layer.b2.assign([3.0])
    np.testing.assert_allclose(to_numpy(layer(*q_k_v)), before, atol=1e-5)


def test_attentive_module_rejects_masking():
    with pytest.raises(ValueError, match=r"masking must be one of .*Received: masking='padding'"):
        AttentiveModule(masking="padding")


@pytest.mark.parametrize("missing", ("query_mask", "key_mask"))
def test_attentive_module_rejects_release_without_masks(q_k_v, masks, missing):
    given = {"query_mask": masks[0], "key_mask": masks[1], missing: None}
    with pytest.raises(ValueError, match=f"(?s)needs query_mask and.*{missing}=None"):
        built(masking="release")(*q_k_v, **given)


def test_attentive_module_saves_and_loads(q_k_v, masks):
    settings = {"masking": "release", "scalar_bias": True, "epsilon": 0.25, "name": "attend"}
    check_saves_and_loads(built(**settings), *q_k_v, *masks, **settings)


LEADING = {  # of query and key
    "query along an axis": ((2, 1), (2, 3)),
    "key along the last axis": ((2, 3), (2, 1)),
    "key along another axis": ((2, 3), (1, 3)),
    "both": ((2, 3, 1), (2, 1, 4)),
    "alike": ((2, 3), (2, 3)),
    "none": ((), ()),
}


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("scalar_bias", [False, True])
def test_unpadded_words_give_what_padded_ones_give(leading, scalar_bias):
    """Also by gradients, and with sentences of nothing but padding; padded words are zero whatever they are given."""
    rng = np.random.default_rng(3)
    query_lead, key_lead = LEADING[leading]
    query, key = (rng.normal(size=(*lead, n, 6)).astype("float32") for lead, n in ((query_lead, 5), (key_lead, 4)))
    query_mask = np.arange(5) < rng.integers(0, 6, (*query_lead, 1))
    query_mask[..., 0] |= not query_lead
    key_mask = np.arange(4) < rng.integers(0, 5, (*key_lead, 1))
    key_mask[..., 0] |= not key_lead
    layer = AttentiveModule(scalar_bias=scalar_bias)
    layer.build(query.shape, key.shape)
    set_random_weights(layer, seed=4)
    lead = np.broadcast_shapes(query_lead, key_lead)
    real = np.broadcast_to(query_mask & key_mask.any(axis=-1, keepdims=True), (*lead, 5))
    upstream = rng.normal(size=(*lead, 5, 6)).astype("float32")
    found = []
    for unpad, upstream_of in ((True, upstream), (False, upstream), (True, upstream * real[..., None])):
        layer.unpad = unpad
        assert layer.supports_jit is not unpad
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


@on_tensorflow
def test_words_are_unpadded_on_tensorflow_unless_asked_otherwise_and_never_under_the_releases_masks():
    assert AttentiveModule().unpad and not AttentiveModule(unpad=False).unpad
    assert not AttentiveModule(masking="release").unpad and AttentiveModule(masking="release").supports_jit
    assert not AttentiveModule.from_config(AttentiveModule(unpad=False).get_config()).unpad
