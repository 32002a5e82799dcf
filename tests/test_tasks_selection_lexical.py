"""`tasks.selection.prepare`: what words are worth."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from helpers import train_small

from base.files import UserError
from data.vocabulary import Vocabulary
from engine.export import export
from tasks import TASKS
from tasks.selection.data import load_dataset
from tasks.selection.prepare import Settings, document_weights, equal_stems, prepare
from tasks.selection.split import SelectionSplit

EOS = 1


@pytest.mark.parametrize("block", [1, 2, 100])
def test_document_weights_are_inverse_document_frequencies(monkeypatch, block):
    monkeypatch.setattr("tasks.selection.prepare.BLOCK", block)
    contexts = [[3, 3, 4, EOS, 3, 5, EOS], [3, EOS]]  # three utterances
    split = SelectionSplit.of(contexts, [[4], [3, 9]], [1, 1], EOS)  # and two more
    found = document_weights(split, 11)
    frequency = {3: 4, 4: 2, 5: 1, 9: 1}
    expected = [np.log(6 / (1 + frequency.get(id, 0))) / np.log(6) for id in range(11)]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_words_of_one_stem_have_one_frequency():
    split = SelectionSplit.of([[3, EOS, 4, EOS, 5, 3, EOS]], [[4, 5]], [1], EOS)  # four utterances
    found = document_weights(split, 6, stems=np.array([0, 1, 2, 3, 3, 5]))
    np.testing.assert_allclose(found[[3, 4, 5]], [0.0, 1.0, np.log(5 / 3) / np.log(5)], atol=1e-6)


def test_words_of_one_stem_are_the_first_of_them():
    words = ("_EOS_", "_UNK_", "installed", "/etc/fstab", "install", "installing", "drivers", "2.6.8.1", "driver")
    found = equal_stems(Vocabulary(words, hashed=3), 1 + len(words) + 3)
    assert found.dtype == np.int32 and found.tolist() == [0, 1, 2, 3, 4, 3, 3, 7, 8, 7, 10, 11, 12]


@pytest.mark.slow
def test_an_exported_model_matches_unknown_words_as_the_run_does(prepared, tmp_path):
    source, data = prepared.parent / "raw", tmp_path / "data"
    prepare("smn", source, data, Settings(dimension=7, word2vec_epochs=1, hashed_words=101, tokenizer="terms"))
    settings = {"max_turns": "2", "lexical.gain": "3", "lexical.turns": "4", "lexical.stems": "true"}
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
    run = train_small("selection", prepared, tmp_path / "run", {"lexical.gain": "3"}, epochs=1e-6)
    layer = run.load_model().get_layer("lexical_match")
    expected = document_weights(load_dataset(prepared).splits["train"], layer.idf.shape[0])
    np.testing.assert_array_equal(layer.idf.numpy(), expected)


def test_a_model_is_trained_with_stems_and_takes_them_beside_what_another_learned(prepared, tmp_path, capsys):
    first = train_small("selection", prepared, tmp_path / "first", {"lexical.gain": "3"}, epochs=1e-6)
    settings = {"lexical.gain": "3", "lexical.stems": "true"}
    second = train_small(
        *("selection", prepared, tmp_path / "second", settings), init_from=first.path, epochs=1e-6, learning_rate=0.0
    )
    assert f"{first.path} has no lexical_match: trained from fresh weights" in capsys.readouterr().out
    dataset, found, other = load_dataset(prepared), second.load_model(), first.load_model()
    layer = found.get_layer("lexical_match")
    stems = equal_stems(dataset.vocabulary, layer.idf.shape[0])
    assert (stems != np.arange(len(stems))).any()
    np.testing.assert_array_equal(layer.stem.numpy(), stems)
    np.testing.assert_array_equal(layer.idf.numpy(), document_weights(dataset.splits["train"], len(stems), stems))
    for name in ("word_embedding", "aggregation"):
        for weight, learned in zip(found.get_layer(name).weights, other.get_layer(name).weights, strict=True):
            np.testing.assert_allclose(weight.numpy(), learned.numpy(), atol=1e-6)


def test_stems_expect_words(prepared, tmp_path):
    ids = shutil.copytree(prepared, tmp_path / "ids")
    (ids / "vocabulary.txt").unlink()
    settings = {"lexical.gain": "3", "lexical.stems": "true"}
    with pytest.raises(UserError, match=r"lexical\.stems expects words, not ids alone\. .*ids has no vocabulary"):
        train_small("selection", ids, tmp_path / "run", settings, epochs=1e-6)
    assert not (tmp_path / "run").exists()
