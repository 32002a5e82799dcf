"""`layers.sentence_gru` against loops from the equations of a GRU (Cho et al. 2014)."""

import numpy as np
from helpers import to_numpy
from layer_cases import built
from reference_recurrent import sentence_in_loops


def test_sentence_gru_matches_equations():
    layer, [ids] = built("SentenceGRU")
    ids = np.concatenate([ids, 0 * ids[:1]])  # and an empty sentence
    found = to_numpy(layer(ids))
    for words, state in zip(ids, found, strict=True):
        np.testing.assert_allclose(state, sentence_in_loops(words, layer), atol=1e-5)
    np.testing.assert_array_equal(found[-1], 0.0)
    assert np.abs(to_numpy(layer(ids[:1, ::-1].copy())) - found[0]).max() > 0.1  # words count in order


def test_sentence_gru_ignores_the_vector_of_padding():
    layer, [ids] = built("SentenceGRU")
    alone, table = to_numpy(layer(ids)), layer.embedding.embeddings
    table.assign(np.concatenate([np.full((1, table.shape[1]), 1e3), table.numpy()[1:]]))
    np.testing.assert_allclose(to_numpy(layer(ids)), alone, atol=1e-6)


def test_sentence_gru_leaves_frozen_vectors_as_they_are():
    frozen, _ = built("SentenceGRU, frozen")
    assert len(built("SentenceGRU")[0].trainable_weights) == 4
    assert [w.path for w in frozen.trainable_weights] == [w.path for w in frozen.gru.weights]
    assert [w.path for w in frozen.non_trainable_weights] == [frozen.embedding.embeddings.path]
