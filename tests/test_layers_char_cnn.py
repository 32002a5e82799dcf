"""`layers.char_cnn`: BiDAF's characters and highways against loops."""

import keras
import numpy as np
from helpers import to_numpy
from layer_cases import CASES, V, built
from reference import cnn_in_loops, highway_in_loops

from layers.char_cnn import CharacterCNN


def test_character_cnn_matches_its_equation_for_words_of_any_length():
    layer = CASES["CharacterCNN"].build()
    words = [[1, 2, 3, 4, 5, 6, 7, 8], [9], [10, 11]]
    ids = np.array([word + [0] * (8 - len(word)) for word in words])
    vectors = to_numpy(layer(ids))
    for word, vector in zip(words, vectors, strict=True):
        np.testing.assert_allclose(vector, cnn_in_loops(word, layer), atol=1e-5)
    np.testing.assert_allclose(to_numpy(layer(ids[1:, :2])), vectors[1:], atol=1e-6)
    assert not to_numpy(layer(np.zeros((1, 8), int))).any()


def test_character_cnn_drops_in_training_only():
    layer, ids = CharacterCNN(V, 3, 7, dropout=0.5), np.array([[1, 2, 3, 4, 5]])
    plain = to_numpy(layer(ids))
    np.testing.assert_array_equal(to_numpy(layer(ids)), plain)
    keras.utils.set_random_seed(1)
    assert any(np.abs(to_numpy(layer(ids, training=True)) - plain).max() > 1e-3 for _ in range(5))


def test_highway_matches_its_equation():
    layer, [x] = built("Highway")
    for found, row in zip(to_numpy(layer(x)).reshape(-1, x.shape[-1]), x.reshape(-1, x.shape[-1]), strict=True):
        np.testing.assert_allclose(found, highway_in_loops(row, layer), atol=1e-5)
