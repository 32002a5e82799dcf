"""`tasks.selection.lexical`: what words are worth."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import train_small

from engine.export import export
from tasks import TASKS
from tasks.selection import lexical
from tasks.selection.batches import SelectionSplit
from tasks.selection.dataset import load_dataset
from tasks.selection.lexical import document_weights
from tasks.selection.prepare import Settings, prepare

EOS = 1


@pytest.mark.parametrize("block", [1, 2, 100])
def test_document_weights_are_inverse_document_frequencies(monkeypatch, block):
    monkeypatch.setattr(lexical, "BLOCK", block)
    contexts = [[3, 3, 4, EOS, 3, 5, EOS], [3, EOS]]  # three utterances
    split = SelectionSplit.of(contexts, [[4], [3, 9]], [1, 1], EOS)  # and two more
    found = document_weights(split, 11)
    frequency = {3: 4, 4: 2, 5: 1, 9: 1}
    expected = [np.log(6 / (1 + frequency.get(id, 0))) / np.log(6) for id in range(11)]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.slow
def test_an_exported_model_matches_unknown_words_as_the_run_does(prepared, tmp_path):
    source, data = prepared.parent / "raw", tmp_path / "data"
    prepare("smn", source, data, Settings(dimension=7, word2vec_epochs=1, hashed_words=101, tokenizer="terms"))
    settings = {"max_turns": "2", "lexical_gain": "3", "lexical_turns": "4"}
    run = train_small("selection", data, tmp_path / "run", settings, epochs=1e-6)
    turns = ["try /etc/Xyz.conf", "a", "b", "where is qqqq?", "c", "d"]  # four are read, two by the network
    candidates = ["/etc/xyz.conf", "qqqq", "wwww qqqq", "wwww", ""]
    [answer] = TASKS["selection"].predictor(run).predict([{"turns": turns, "candidates": candidates[:4]}])
    served = tf.saved_model.load(export(TASKS["selection"], run, tmp_path / "export"))
    found = served.rank(turns=tf.constant([turns]), candidates=tf.constant([candidates]))["logits"].numpy()[0]
    np.testing.assert_allclose(found[:4], answer["logits"], atol=1e-5)
    one, other, half, none = answer["logits"]
    assert abs(one - none) < 0.5 < half - none < other - none


def test_a_model_is_trained_with_them(prepared, tmp_path):
    run = train_small("selection", prepared, tmp_path / "run", {"lexical_gain": "3"}, epochs=1e-6)
    layer = run.load_model().get_layer("lexical_match")
    expected = document_weights(load_dataset(prepared).splits["train"], layer.idf.shape[0])
    np.testing.assert_array_equal(layer.idf.numpy(), expected)
