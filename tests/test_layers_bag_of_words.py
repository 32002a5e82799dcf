"""`layers.bag_of_words` and `layers.ordered_words` beside their equations: sentences end to end, gradients, lengths."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import D, V, built, numbers
from reference import sum_in_loops

from layers.bag_of_words import BagOfWords


def sentences():
    """A full sentence, an empty one, padding at the end and in between, a word that occurs twice."""
    ids = np.random.default_rng(0).integers(1, V + 1, (2, 3, 5)).astype("int32")
    ids[0, 1], ids[0, 2, 3:], ids[1, 0, [1, 4]], ids[1, 1, :3] = 0, 0, 0, 5
    return ids


@pytest.mark.parametrize(
    "name",
    [
        "BagOfWords, none",
        "BagOfWords, interleaved",
        "BagOfWords, halves",
        "OrderedWords, position",
        "OrderedWords, attention",
    ],
)
def test_sentences_end_to_end_are_sums(name):
    """The second sentence has no word, nor has the last, which `rows` lacks; sums know no order."""
    layer, _ = built(name)
    every = [*sentences().reshape(-1, 5), []]
    words = np.array([id for sentence in every for id in sentence if id], "int32")
    rows = np.array([row for row, sentence in enumerate(every) for id in sentence if id], "int32")
    found = to_numpy(layer(words, rows=rows, count=7))
    assert len(found) == len(every) == 7
    plain = BagOfWords(V, layer.dimension)
    plain.build(words.shape)
    plain.set_weights([layer.embeddings.numpy()])
    for sentence, x in zip(every, found, strict=True):
        np.testing.assert_allclose(x, sum_in_loops(sentence, layer if "Bag" in name else plain), atol=1e-5)


def test_a_longer_sentence_than_any_counts_as_the_longest():
    layer, plain, ids = BagOfWords(V, D, 2, "halves"), BagOfWords(V, D), numbers(V, 1, 5) + 1
    for each in (layer, plain):
        each.build(ids.shape)
        each.set_weights([np.ones((V + 1, D))])
    signals = [to_numpy(layer(ids[:, :n])) - to_numpy(plain(ids[:, :n])) for n in (2, 3, 5)]
    np.testing.assert_allclose(signals[1:], [signals[0]] * 2, atol=1e-6)
    assert np.abs(signals[0]).max() > 0.01
