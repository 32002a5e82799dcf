"""Baselines for response selection: the TF-IDF cosine of context and response, and BM25.

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
BLOCK = 1 << 11
"""Texts counted at a time. It bounds the memory and does not change the result."""


def tfidf_scores(
    train_documents: Iterable[Sequence[int]],
    contexts: Iterable[Sequence[int]],
    responses: Iterable[Sequence[int]],
    *,
    ignore: Iterable[int] = (),
) -> np.ndarray:
    """Cosine between the TF-IDF vectors of each context and its response.

    It is 0 where either lacks a counted word.

    Document frequencies are those of `train_documents`. Ids in `ignore` are no words.

    >>> train = [[1, 2], [1, 3], [1, 4]]  # all with word 1: its idf is 0
    >>> tfidf_scores(train, [[1, 2, 3], [1, 4, 0]], [[2, 1], [1, 2]]).round(3)
    array([0.707, 0.   ])
    """
    contexts, responses = count_words(contexts, responses, ignore=ignore)
    idf = inverse_frequencies(_count_blocks(train_documents, ignore), num_words=contexts.shape[1])
    return unit_rows(contexts, idf).multiply(unit_rows(responses, idf)).sum(axis=1)


def bm25_scores(
    train_documents: Iterable[Sequence[int]],
    contexts: Iterable[Sequence[int]],
    responses: Iterable[Sequence[int]],
    *,
    ignore: Iterable[int] = (),
    k1: float = 1.5,
    b: float = 0.75,
) -> np.ndarray:
    """BM25 of each response for its context, whose words are the query, each once.

    Document frequencies and the mean length are those of `train_documents`; other arguments are as
    in `tfidf_scores`.

    >>> train = [[1, 2], [1, 3], [1, 4]]
    >>> bm25_scores(train, [[1, 2, 3], [1, 4, 0]], [[2, 1], [1, 2]]).round(3)
    array([1.114, 0.134])
    """
    queries, documents = count_words(contexts, responses, ignore=ignore)
    train = _count_documents(_count_blocks(train_documents, ignore), queries.shape[1])
    num_documents, total_length, frequency = train
    idf = np.log(1 + (num_documents - frequency + 0.5) / (frequency + 0.5))

    mean_length = max(total_length / max(num_documents, 1), 1.0)
    length = documents.sum(axis=1)
    row = np.repeat(np.arange(documents.shape[0]), np.diff(documents.indptr))
    saturation = k1 * (1 - b + b * length[row] / mean_length)
    weight = documents.data * (k1 + 1) / (documents.data + saturation) * idf[documents.indices]
    weights = sparse.csr_array((weight, documents.indices, documents.indptr), documents.shape)
    return (queries > 0).multiply(weights).sum(axis=1)


# === TF-IDF vectors ===


def count_words(
    *sides: Iterable[Sequence[int]], ignore: Iterable[int] = ()
) -> list[sparse.csr_array]:
    """Occurrences of each word in each text.

    Returns a matrix `(texts, words)` for each iterable of texts, all of one width.
    Ids in `ignore` do not count.

    >>> count_words([[1, 2, 1, 0], []], [[3]])[0].toarray()
    array([[0., 2., 1., 0.],
           [0., 0., 0., 0.]])
    """
    blocks_of_sides = []
    width = 1
    for texts in sides:
        blocks = list(_count_blocks(texts, ignore)) or [sparse.csr_array((0, 1))]
        width = max(width, *(block.shape[1] for block in blocks))
        blocks_of_sides.append(blocks)

    matrices = []
    for blocks in blocks_of_sides:
        for block in blocks:
            block.resize(block.shape[0], width)
        matrices.append(sparse.vstack(blocks, format="csr"))
    return matrices


def inverse_frequencies(train: Iterable[sparse.csr_array], num_words: int) -> np.ndarray:
    """The idf of each word, float64 `(num_words,)`, from counts of training documents.

    Documents without a word are not counted.
    """
    num_documents, _, frequency = _count_documents(train, num_words)
    return np.log((1 + num_documents) / (1 + frequency))


def _count_documents(train, num_words):
    """Counts documents with a word, all their words, and the documents with each word."""
    num_documents = 0
    total_length = 0.0
    frequency = np.zeros(num_words)
    for counts in train:
        num_documents += np.count_nonzero(np.diff(counts.indptr))
        total_length += counts.data.sum()
        frequency += np.bincount(counts.indices, minlength=num_words)[:num_words]
    return num_documents, total_length, frequency


def unit_rows(counts: sparse.csr_array, idf: np.ndarray) -> sparse.csr_array:
    """TF-IDF vectors of Euclidean length 1; those of length 0 stay zero."""
    weight = counts.data * idf[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    norm = np.sqrt(np.bincount(row, weight**2, minlength=counts.shape[0]))[row]
    unit = np.divide(weight, norm, out=np.zeros_like(weight), where=norm > 0)
    return sparse.csr_array((unit, counts.indices, counts.indptr), counts.shape)


def _count_blocks(texts, ignore):
    """Yields word counts of `BLOCK` texts at a time."""
    no_words = np.array([PADDING, *ignore])
    texts = iter(texts)
    while block := list(islice(texts, BLOCK)):
        lengths = np.fromiter(map(len, block), np.int64, count=len(block))
        word = np.fromiter(chain.from_iterable(block), np.int64, count=lengths.sum())
        row = np.repeat(np.arange(len(block)), lengths)
        is_word = ~np.isin(word, no_words)
        row = row[is_word]
        word = word[is_word]
        shape = len(block), word.max(initial=0) + 1
        # The constructor adds up repeated words, which also sorts the ids of each row.
        yield sparse.csr_array((np.ones(len(row)), (row, word)), shape)
