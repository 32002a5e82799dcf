"""`layers.lexical_match` against loops."""

import numpy as np
import pytest
from helpers import to_numpy
from reference import cosine_of_words

from layers.lexical_match import LexicalMatch

B, N, T, K, X, V, UNKNOWN = 2, 3, 5, 7, 11, 13, 2


@pytest.fixture(params=[(1.0, False), (1.7, False), (1.7, True)], ids=str)
def case(request):
    rng = np.random.default_rng(3)
    context, responses = rng.integers(0, V + 1, (B, T, K)), rng.integers(0, V + 1, (B, N, X))
    power, stems = request.param
    layer = LexicalMatch(V, unknown_id=UNKNOWN, gain=1.5, power=power, stems=stems)
    layer(context, responses)
    if stems:
        layer.stem.assign([0, 1, 2, 3, 4, 5, 6, 4, 8, 9, 3, 11, 11, 13])
    layer.idf.assign(rng.uniform(0.0, 1.0, V + 1))
    return layer, context, responses


def test_logits_are_those_of_loops(case):
    layer, context, responses = case
    logits = to_numpy(layer(context, responses))
    assert logits.shape == (B, N) and logits.dtype == np.float32 and len(np.unique(logits)) == B * N
    for b, n in np.ndindex(logits.shape):
        expected = cosine_of_words(context[b][context[b] > 0], responses[b, n][responses[b, n] > 0], layer)
        assert logits[b, n] == pytest.approx(expected, abs=1e-5)


def test_nothing_in_common_is_zero_also_without_a_word(case):
    layer, *_ = case
    for response in ([5, 6], [0, 0], [UNKNOWN, 0]):
        assert not to_numpy(layer(np.array([[[3, UNKNOWN]]]), np.array([[response]]))).any()


def test_training_sees_none_of_it(case):
    layer, context, responses = case
    assert not to_numpy(layer(context, responses, training=True)).any() and not layer.trainable_weights


def test_fresh_every_word_is_its_own_stem_and_counts_once():
    plain, stemmed = (LexicalMatch(V, unknown_id=UNKNOWN, stems=stems) for stems in (False, True))
    context, responses = np.array([[[9, 3], [4, 0]]]), np.array([[[4, 5, 0], [0, 0, 0], [3, 8, 9]]])
    repeated = np.array([[[9, 3, 3], [4, 9, 0]]]), np.array([[[4, 5, 4], [0, 0, 0], [3, 8, 9]]])
    np.testing.assert_array_equal(to_numpy(stemmed(context, responses)), to_numpy(plain(context, responses)))
    np.testing.assert_array_equal(to_numpy(stemmed(*repeated)), to_numpy(plain(context, responses)))
    assert stemmed.stem.dtype == "int32" and not stemmed.trainable_weights


def test_a_fresh_layer_counts_every_word_alike():
    logits = LexicalMatch(V)(np.array([[[3, 4], [4, 0]]]), np.array([[[4, 5, 5, 5]]]))
    assert to_numpy(logits)[0, 0] == pytest.approx(16 * 2 / np.sqrt(3 * 4))
