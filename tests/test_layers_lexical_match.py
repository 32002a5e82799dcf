"""`layers.lexical_match` against loops."""

import numpy as np
import pytest
from helpers import rebuilt, set_random_weights, to_numpy

from layers.lexical_match import LexicalMatch

B, N, T, K, J, V, UNKNOWN = 2, 3, 5, 7, 11, 13, 2


def match_of_words(u, r, layer):
    """The match of two ids, neither padding."""
    w = layer.w.numpy().astype("float64")
    return w[u] * w[r] if u == r != layer.unknown_id else 0.0


def cosine_of_words(turns, response, layer):
    """The logit of a context, lists of ids, and a response."""
    context = [id for ids in turns for id in ids]
    total = sum(match_of_words(u, r, layer) for u in context for r in response)
    squares = [sum(match_of_words(id, id, layer) for id in ids) for ids in (context, response)]
    return layer.g.numpy() * total / np.sqrt(max(squares[0] * squares[1], 1e-6))


@pytest.fixture
def case():
    rng = np.random.default_rng(3)
    turns, responses = rng.integers(0, V + 1, (B, T, K)), rng.integers(0, V + 1, (B, N, J))
    layer = LexicalMatch(V, unknown_id=UNKNOWN)
    layer(turns, responses)
    return set_random_weights(layer, 1), turns, responses


def test_matches_and_logits_are_those_of_loops(case):
    layer, turns, responses = case
    match, logits = map(to_numpy, layer(turns, responses))
    assert match.shape == (B, N, T, K, J) and logits.shape == (B, N) and logits.dtype == np.float32
    for b, n, t, k, j in np.ndindex(match.shape):
        u, r = turns[b, t, k], responses[b, n, j]
        assert match[b, n, t, k, j] == pytest.approx(match_of_words(u, r, layer) if u else 0.0, abs=1e-6)
    real = [[[id for id in ids if id] for ids in some] for some in (*turns, *responses)]
    for b, n in np.ndindex(logits.shape):
        assert logits[b, n] == pytest.approx(cosine_of_words(real[b], real[B + b][n], layer), abs=1e-5)


def test_nothing_in_common_is_zero_also_without_a_word(case):
    layer, *_ = case
    for response in ([5, 6], [0, 0], [UNKNOWN, 0]):
        match, logits = layer(np.array([[[3, UNKNOWN]]]), np.array([[response]]))
        assert not to_numpy(match).any() and not to_numpy(logits).any()


def test_config_builds_an_equal_layer(case):
    layer, turns, responses = case
    for found, expected in zip(rebuilt(layer)(turns, responses), layer(turns, responses), strict=True):
        np.testing.assert_array_equal(to_numpy(found), to_numpy(expected))


def test_a_fresh_layer_counts_every_word_alike():
    match, logits = LexicalMatch(V)(np.array([[[3, 4], [4, 0]]]), np.array([[[4, 5, 5, 5]]]))
    assert to_numpy(match).sum() == 2.0
    assert to_numpy(logits)[0, 0] == pytest.approx(20 * 2 / np.sqrt(3 * 4))
