"""`tasks.selection.task`: what training gives the word vectors and the lexical match."""

import shutil

import keras
import numpy as np
import pytest
from helpers import train_small

from base.files import UserError
from models.dam import DAM, DAMConfig
from tasks import TASKS
from tasks.selection.data import load_dataset
from tasks.selection.prepare import document_weights, equal_stems
from tasks.selection.scoring import pointwise_loss
from tasks.selection.task import Training


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_lazy_word_vectors_move_with_their_words_alone(precision):
    keras.config.set_dtype_policy(precision)
    config = DAMConfig(vocabulary_size=97, embedding_dim=5, max_turns=3, max_words=4, levels=1, lazy_embedding=True)
    model = DAM(config)
    model.compile(TASKS["selection"].optimizer(Training()), loss=pointwise_loss, run_eagerly=True)
    embedding = model.get_layer("word_embedding")
    before = embedding.get_weights()[0]
    moved = set()
    for first in (3, 30):
        turns = np.arange(first, first + 12).reshape(1, 3, 4)
        inputs = {"turns": turns, "responses": np.array([[[first, 80, 80, 0]]])}
        model.train_on_batch(inputs, np.array([[1.0]]))
        moved |= {*turns.flat, 80}
        changed = set(np.flatnonzero((embedding.get_weights()[0] != before).any(axis=1)))
        assert {first, 80} <= changed <= moved | {0}


def test_a_lexical_match_gets_document_weights_and_stems(prepared, tmp_path, capsys):
    """A model with stems starts from one without: it takes over what that has learned, but for the lexical match."""
    first = train_small("selection", prepared, tmp_path / "first", {"lexical.gain": "3"}, epochs=1e-6)
    settings = {"lexical.gain": "3", "lexical.stems": "true"}
    options = {"init_from": first.path, "epochs": 1e-6, "learning_rate": 0.0}
    second = train_small("selection", prepared, tmp_path / "second", settings, **options)
    assert f"{first.path} has no lexical_match: trained from fresh weights" in capsys.readouterr().out
    dataset, plain, stemmed = load_dataset(prepared), first.load_model(), second.load_model()
    layer = stemmed.get_layer("lexical_match")
    stems = equal_stems(dataset.vocabulary, layer.idf.shape[0])
    assert (stems != np.arange(len(stems))).any()
    np.testing.assert_array_equal(layer.stem.numpy(), stems)
    np.testing.assert_array_equal(layer.idf.numpy(), document_weights(dataset.splits["train"], len(stems), stems))
    weights = plain.get_layer("lexical_match").idf.numpy()
    np.testing.assert_array_equal(weights, document_weights(dataset.splits["train"], len(stems)))
    for name in ("word_embedding", "aggregation"):
        for weight, learned in zip(stemmed.get_layer(name).weights, plain.get_layer(name).weights, strict=True):
            np.testing.assert_allclose(weight.numpy(), learned.numpy(), atol=1e-6)


def test_stems_expect_words(prepared, tmp_path):
    ids = shutil.copytree(prepared, tmp_path / "ids")
    (ids / "vocabulary.txt").unlink()
    settings = {"lexical.gain": "3", "lexical.stems": "true"}
    with pytest.raises(UserError, match=r"lexical\.stems expects words, not ids alone\. .*ids has no vocabulary"):
        train_small("selection", ids, tmp_path / "run", settings, epochs=1e-6)
    assert not (tmp_path / "run").exists()
