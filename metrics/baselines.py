"""A baseline for response selection: the TF-IDF cosine of context and response.

    weight(w, text) = (occurrences of w in text) * idf(w),   idf(w) = ln((1 + n) / (1 + df(w)))

`n` counts the training documents and `df(w)` those with the word `w`; a word that none of them has
gets the largest idf, `ln(1 + n)`. Texts are lists (or padded rows) of word ids. Scores are float64,
one per line, as `metrics.ranking.ranking_metrics` takes them. Vectors are sparse; `metrics.dialog`
uses them too.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, islice

import numpy as np
from scipy import sparse

PADDING = 0
BLOCK = 1 << 11  # texts counted at a time: bounds the memory, does not change the result


def tfidf_scores(
    train_documents: Iterable[Sequence[int]],
    contexts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    *,
    ignore: Iterable[int] = (),
    end_of_turn: int | None = None,
) -> np.ndarray:
    """Cosine between the TF-IDF vectors of each context and its response; 0 where either lacks a
    counted word.

    Document frequencies are those of `train_documents`, split at `end_of_turn`, the id that ends an
    utterance. Ids in `ignore` are no words either.

    >>> train = [[1, 2, 9, 1, 3], [1, 4]]  # three utterances, all with word 1: its idf is 0
    >>> tfidf_scores(train, [[1, 2, 9, 3], [1, 4, 0]], [[2, 1], [1, 2]], end_of_turn=9).round(3)
    array([0.707, 0.   ])
    """
    ignore = [*ignore, *(() if end_of_turn is None else (end_of_turn,))]
    contexts, responses = count_words(contexts, responses, ignore=ignore)
    idf = inverse_frequencies(_blocks(train_documents, ignore, end_of_turn), contexts.shape[1])
    return unit_rows(contexts, idf).multiply(unit_rows(responses, idf)).sum(axis=1)


# === TF-IDF vectors ===


def count_words(
    *sides: Iterable[Sequence[int]], ignore: Iterable[int] = ()
) -> list[sparse.csr_array]:
    """Occurrences of each word in each text: for each iterable of texts a matrix `(texts, words)`,
    all of one width.

    Ids in `ignore` do not count.

    >>> count_words([[1, 2, 1, 0], []], [[3]])[0].toarray()
    array([[0., 2., 1., 0.],
           [0., 0., 0., 0.]])
    """
    sides = [[*_blocks(texts, ignore)] or [sparse.csr_array((0, 1))] for texts in sides]
    width = max(block.shape[1] for block in chain(*sides))
    for block in chain(*sides):
        block.resize(block.shape[0], width)
    return [sparse.vstack(blocks, format="csr") for blocks in sides]


def inverse_frequencies(train: Iterable[sparse.csr_array], words: int) -> np.ndarray:
    """The idf of each word, float64 `(words,)`, by counts of training documents; those without a
    word do not count.
    """
    documents, frequency = 0, np.zeros(words)
    for counts in train:
        documents += np.count_nonzero(np.diff(counts.indptr))
        frequency += np.bincount(counts.indices, minlength=words)[:words]
    return np.log((1 + documents) / (1 + frequency))


def unit_rows(counts: sparse.csr_array, idf: np.ndarray) -> sparse.csr_array:
    """TF-IDF vectors of Euclidean length 1; those of length 0 stay zero."""
    weight = counts.data * idf[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    norm = np.sqrt(np.bincount(row, weight**2, minlength=counts.shape[0]))[row]
    unit = np.divide(weight, norm, out=np.zeros_like(weight), where=norm > 0)
    return sparse.csr_array((unit, counts.indices, counts.indptr), counts.shape)


def _blocks(texts, ignore, end_of_turn=None):
    """Yields the counts of `BLOCK` texts at a time; at `end_of_turn`, if given, a text is cut into
    rows.
    """
    no_words, texts = np.array([PADDING, *ignore]), iter(texts)
    while block := list(islice(texts, BLOCK)):
        lengths = np.fromiter(map(len, block), np.int64, count=len(block))
        word = np.fromiter(chain.from_iterable(block), np.int64, count=lengths.sum())
        row, rows = np.repeat(np.arange(len(block)), lengths), len(block)
        if end_of_turn is not None:
            ends = word == end_of_turn
            row, rows = row + np.cumsum(ends), rows + np.count_nonzero(ends)
        kept = ~np.isin(word, no_words)
        row, word = row[kept], word[kept]
        # The constructor adds up repeated words, which also sorts the ids of each row.
        yield sparse.csr_array((np.ones(len(row)), (row, word)), (rows, word.max(initial=0) + 1))
