"""TF-IDF vectors of texts, for the baselines: word counts -> weights -> rows of length 1, as sparse matrices.

    weight(w, text) = (times w occurs in text) * idf(w),   idf(w) = ln((1 + n) / (1 + df(w)))

with `n` training documents, `df(w)` of them with the word `w`: raw counts, and a smoothed idf that is largest,
`ln(1 + n)`, for a word that no training document has.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, islice

import numpy as np
from scipy import sparse

PADDING = 0
BLOCK = 1 << 11  # texts counted at a time: bounds the memory, does not change the result


def count_words(
    *sides: Iterable[Sequence[int]], ignore: Iterable[int] = (), end_of_turn: int | None = None
) -> list[sparse.csr_array]:
    """How often each text holds each word.

    Args:
        *sides: Iterables of texts, which are lists (or padded rows) of word ids.
        ignore: Ids that are not words; 0 (padding) and `end_of_turn` never are.
        end_of_turn: An id that ends an utterance; each utterance of a text is then a row of its own.

    Returns:
        Per side a matrix `(texts, words)`, whose rows have ascending ids; `words` is the same for all sides.

    Raises:
        ValueError: for negative ids.

    >>> count_words([[1, 2, 1, 0], []], [[3]])[0].toarray()
    array([[0., 2., 1., 0.],
           [0., 0., 0., 0.]])
    """
    no_words = np.array([PADDING, *ignore, *(() if end_of_turn is None else (end_of_turn,))])
    counts = []
    for texts in sides:
        texts = iter(texts)
        blocks = [_count_block(list(islice(texts, BLOCK)), no_words, end_of_turn)]
        while block := list(islice(texts, BLOCK)):
            blocks.append(_count_block(block, no_words, end_of_turn))
        counts.append(_stacked(blocks))
    width = max(matrix.shape[1] for matrix in counts)
    for matrix in counts:
        matrix.resize(matrix.shape[0], width)
    return counts


def inverse_frequencies(train: sparse.csr_array) -> np.ndarray:
    """The idf of each word, float64 `(words,)`; training documents without a word do not count.

    Raises:
        ValueError: where no document has a word.
    """
    documents = np.count_nonzero(np.diff(train.indptr))
    if not documents:
        raise ValueError(f"A training document with a word is needed. Received: n={documents}")
    return np.log((1 + documents) / (1 + np.bincount(train.indices, minlength=train.shape[1])))


def unit_rows(counts: sparse.csr_array, idf: np.ndarray) -> sparse.csr_array:
    """TF-IDF vectors of Euclidean length 1; those of length 0 stay zero."""
    weight = counts.data * idf[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    norm = np.sqrt(np.bincount(row, weight**2, minlength=counts.shape[0]))[row]
    unit = np.divide(weight, norm, out=np.zeros_like(weight), where=norm > 0)
    return sparse.csr_array((unit, counts.indices, counts.indptr), counts.shape)


def _count_block(texts, no_words, end_of_turn) -> sparse.csr_array:
    lengths = np.fromiter(map(len, texts), np.int64, count=len(texts))
    word = np.fromiter(chain.from_iterable(texts), np.int64, count=lengths.sum())
    if word.min(initial=0) < 0:
        raise ValueError(f"Token ids must not be negative. Received: id={word.min()}")
    row = np.repeat(np.arange(len(texts)), lengths)
    rows = len(texts)
    if end_of_turn is not None:
        ends = word == end_of_turn
        row, rows = row + np.cumsum(ends), rows + np.count_nonzero(ends)
    kept = ~np.isin(word, no_words)
    row, word = row[kept], word[kept]
    # Adding up what occurs twice also sorts the ids of each row.
    return sparse.csr_array((np.ones(len(row)), (row, word)), (rows, word.max(initial=0) + 1))


def _stacked(blocks: list[sparse.csr_array]) -> sparse.csr_array:
    width = max(block.shape[1] for block in blocks)
    for block in blocks:
        block.resize(block.shape[0], width)
    return sparse.vstack(blocks, format="csr")
