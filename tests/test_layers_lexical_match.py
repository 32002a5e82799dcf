"""`layers.lexical_match` beside its equations: training, texts that share nothing, stems."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import CASES, V, built

from layers.lexical_match import LexicalMatch


@pytest.mark.parametrize("name", ["LexicalMatch", "LexicalMatch, stems"])
def test_lexical_match_is_zero_in_training_and_where_texts_share_nothing(name):
    layer, _ = built(name)
    assert not to_numpy(layer(*CASES[name].inputs.values(), training=True)).any()
    layer.idf.assign(np.ones(V + 1))
    if layer.stems:
        layer.stem.assign(np.arange(V + 1))
    for response in ([5, 6], [0, 0], [layer.unknown_id, 0]):
        assert not to_numpy(layer(np.array([[[3, layer.unknown_id]]]), np.array([[response]]))).any()


def test_a_fresh_lexical_match_has_each_word_as_its_stem_and_counts_all_alike():
    plain, stemmed = (LexicalMatch(V, 2, stems=stems) for stems in (False, True))
    context, responses = np.array([[[9, 3], [4, 0]]]), np.array([[[4, 5, 0], [0, 0, 0], [3, 8, 9]]])
    repeated = np.array([[[9, 3, 3], [4, 9, 0]]]), np.array([[[4, 5, 4], [0, 0, 0], [3, 8, 9]]])
    expected = to_numpy(plain(context, responses))
    np.testing.assert_allclose(expected, [[16 / np.sqrt(3 * 2), 0, 16 * 2 / np.sqrt(3 * 3)]], rtol=1e-5)
    np.testing.assert_array_equal(to_numpy(stemmed(context, responses)), expected)
    np.testing.assert_array_equal(to_numpy(stemmed(*repeated)), expected)
    assert stemmed.stem.dtype == "int32"
