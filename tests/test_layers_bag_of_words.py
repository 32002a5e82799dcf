"""`layers.bag_of_words` and `layers.ordered_words` beside their equations: sentences end to end, gradients, lengths."""

import numpy as np
from helpers import to_numpy
from layer_cases import D, V, numbers

from layers.bag_of_words import BagOfWords


def test_a_longer_sentence_than_any_counts_as_the_longest():
    layer, plain, ids = BagOfWords(V, D, 2, "halves"), BagOfWords(V, D), numbers(V, 1, 5) + 1
    for each in (layer, plain):
        each.build(ids.shape)
        each.set_weights([np.ones((V + 1, D))])
    signals = [to_numpy(layer(ids[:, :n])) - to_numpy(plain(ids[:, :n])) for n in (2, 3, 5)]
    np.testing.assert_allclose(signals[1:], [signals[0]] * 2, atol=1e-6)
    assert np.abs(signals[0]).max() > 0.01
