"""`tasks.selection.lexical`: what words are worth."""

import numpy as np

from tasks.selection.batches import SelectionSplit
from tasks.selection.lexical import document_weights

EOS = 1


def test_document_weights_are_inverse_document_frequencies():
    contexts = [[3, 3, 4, EOS, 3, 5, EOS], [3, EOS]]  # three utterances
    split = SelectionSplit.of(contexts, [[4], [3, 9]], [1, 1], EOS)  # and two more
    found = document_weights(split, 11)
    frequency = {3: 4, 4: 2, 5: 1, 9: 1}
    expected = [np.log(6 / (1 + frequency.get(id, 0))) / np.log(6) for id in range(11)]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)
