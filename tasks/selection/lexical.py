"""Words: their weights and stems for `layers.lexical_match`."""

import numpy as np

from colloquy.base.files import UserError


def set_document_weights(model, dataset):
    """Sets the tables of the layer `LexicalMatch` of a model, from the words of train."""
    layer = model.get_layer("lexical_match")
    num_ids = len(dataset.vectors) + dataset.hashed_words
    stems = None
    if layer.stems:
        if dataset.vocabulary is None:
            raise UserError(
                f"lexical.stems expects words, not ids alone. {dataset.path} has no vocabulary"
            )
        stems = equal_stems(dataset.vocabulary, num_ids)
        layer.stem.assign(stems)
    layer.idf.assign(document_weights(dataset.splits["train"], num_ids, stems))


def document_weights(split, ids, stems=None):
    """Inverse document frequencies, scaled to at most 1, float32 `(ids,)`; a document is one
    utterance of the split.

        w(i) = log((1 + n) / (1 + df(i))) / log(1 + n)

    `stems` are those of `equal_stems`: an id is counted as the first id of the same stem.
    """
    frequency = split.turns.document_frequency(ids, stems)
    frequency += split.responses.document_frequency(ids, stems)
    n = len(split.turns) + len(split.responses)
    return (np.log((1 + n) / (1 + frequency)) / np.log(1 + n)).astype(np.float32)


def equal_stems(vocabulary, ids):
    """The first id whose word has the same stem as that of each id, int32 `(ids,)`.

    Stems are English, by Porter (1980). Ids without a word, padding and hashed ones, stay as they
    are.
    """
    from gensim.parsing.porter import PorterStemmer  # gensim takes a second to load

    stemmer = PorterStemmer()
    first_by_stem = {}
    stems = np.arange(ids, dtype=np.int32)
    for id, word in enumerate(vocabulary.words, 1):
        stems[id] = first_by_stem.setdefault(stemmer.stem(word), id)
    return stems
