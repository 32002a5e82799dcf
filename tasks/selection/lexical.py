"""What the words of a training split are worth when a context and a response share them."""

import numpy as np

BLOCK = 2**16
"""Utterances whose words are counted at once."""


def document_weights(split, ids, stems=None):
    """Inverse document frequencies, scaled to at most 1; a document is one utterance of the split.

        w(i) = log((1 + n) / (1 + df(i))) / log(1 + n)

    Args:
        split: A `tasks.selection.split.SelectionSplit`.
        ids: How many there are, padding included.
        stems: Int `(ids,)`, as of `equal_stems`: the id that counts in the place of each; `None`: itself.

    Returns:
        Float32 `(ids,)`; 1 for an id that occurs nowhere.
    """
    frequency = np.zeros(ids, np.int64)
    for texts in (split.turns, split.responses):
        for first in range(0, len(texts), BLOCK):
            starts, lengths = texts.starts[first : first + BLOCK], texts.lengths[first : first + BLOCK]
            utterance = np.repeat(np.arange(len(lengths)), lengths)
            places = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(utterance))
            found = texts.ids[places] if stems is None else stems[texts.ids[places]]
            distinct = np.unique(utterance * ids + found)
            frequency += np.bincount(distinct % ids, minlength=ids)
    n = len(split.turns.lengths) + len(split.responses.lengths)
    return (np.log((1 + n) / (1 + frequency)) / np.log(1 + n)).astype(np.float32)


def equal_stems(vocabulary, ids):
    """Which words of a vocabulary have the same stem, by the algorithm of Porter (1980), which is for English.

    Args:
        vocabulary: A `data.vocabulary.Vocabulary`.
        ids: How many there are, padding and hashed ones included; words that are not in the vocabulary keep their own.

    Returns:
        Int32 `(ids,)`: for each id the first whose word has its stem.
    """
    from gensim.parsing.porter import PorterStemmer  # gensim takes a second to load

    stemmer, first = PorterStemmer(), {}
    found = np.arange(ids, dtype=np.int32)
    for id, word in enumerate(vocabulary.words, 1):
        found[id] = first.setdefault(stemmer.stem(word), id)
    return found
