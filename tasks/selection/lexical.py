"""What the words of a training split are worth when a context and a response share them."""

import numpy as np

BLOCK = 2**16
"""Utterances whose words are counted at once."""


def document_weights(split, ids):
    """Inverse document frequencies, scaled to at most 1; a document is one utterance of the split.

        w(i) = log((1 + n) / (1 + df(i))) / log(1 + n)

    Args:
        split: A `tasks.selection.batches.SelectionSplit`.
        ids: How many there are, padding included.

    Returns:
        Float32 `(ids,)`; 1 for an id that occurs nowhere.
    """
    frequency = np.zeros(ids, np.int64)
    for texts in (split.turns, split.responses):
        for first in range(0, len(texts), BLOCK):
            starts, lengths = texts.starts[first : first + BLOCK], texts.lengths[first : first + BLOCK]
            utterance = np.repeat(np.arange(len(lengths)), lengths)
            places = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(utterance))
            distinct = np.unique(utterance * ids + texts.ids[places])
            frequency += np.bincount(distinct % ids, minlength=ids)
    n = len(split.turns.lengths) + len(split.responses.lengths)
    return (np.log((1 + n) / (1 + frequency)) / np.log(1 + n)).astype(np.float32)
