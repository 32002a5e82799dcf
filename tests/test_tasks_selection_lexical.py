"""`tasks.selection.lexical`: what words are worth."""

import numpy as np
import pytest
from helpers import train_small

from tasks.selection import lexical
from tasks.selection.batches import SelectionSplit
from tasks.selection.dataset import load_dataset
from tasks.selection.lexical import document_weights

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


def test_a_model_is_trained_with_them(prepared, tmp_path):
    run = train_small("selection", prepared, tmp_path / "run", {"lexical": "true"}, epochs=1e-6)
    layer = run.load_model().get_layer("lexical_match")
    expected = document_weights(load_dataset(prepared).splits["train"], layer.w.shape[0])
    np.testing.assert_array_equal(layer.w.numpy(), expected)
    assert layer.g.numpy() != 20.0 and abs(layer.g.numpy() - 20.0) < 0.1
