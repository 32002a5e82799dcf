"""Scores that need no model, to print beside one: chance, a constant, and TF-IDF cosine.

    train_documents  ->  document frequencies  ->  idf  ->  cosine(context, response)

All three return float64 `(N,)`, one score a line, for `metrics.ranking.ranking_metrics`. A constant
shows how much of a figure ties alone bring (nothing by `ties="loss"`); TF-IDF shows how much word
overlap does.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

PADDING = 0
BLOCK = 1 << 16  # documents handled at a time: bounds the memory, does not change the result


def random_scores(n: int, seed: int) -> np.ndarray:
    """`n` scores drawn uniformly from `[0, 1)`; one `seed`, one result.

    >>> random_scores(3, seed=0).round(3)
    array([0.637, 0.27 , 0.041])
    """
    return np.random.default_rng(seed).random(n)


def constant_scores(n: int) -> np.ndarray:
    """`n` scores that say nothing: all 0.

    >>> constant_scores(3)
    array([0., 0., 0.])
    """
    return np.zeros(n)


def tfidf_scores(
    train_documents: Iterable[Sequence[int]],
    contexts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    *,
    ignore: Iterable[int] = (),
    end_of_turn: int | None = None,
) -> np.ndarray:
    """Cosine between the TF-IDF vectors of the whole context and of the response.

        weight(w, text) = (times w occurs in text) * idf(w),   idf(w) = ln((1 + n) / (1 + df(w)))

    with `n` training documents, `df(w)` of them holding the word `w`: raw counts and the smoothed
    idf of which an unseen word has the largest, `ln(1 + n)`. Lines without a counted word on either
    side get 0.

    A document is one utterance: give each context and response of the training lines with label 1,
    and `end_of_turn` to part the contexts. So done, the `ubuntu-irc` dev set has R10@1 0.521, R10@2
    0.646, R10@5 0.799 (ties as losses). Whole dialogues (context and response in one) as documents
    give 0.554, 0.660, 0.804.

    Args:
        train_documents: Lists of token ids, from which the document frequencies are counted; empty
            ones do not count.
        contexts: One context a line, lists (or padded rows) of token ids; turns may be parted by
            `end_of_turn`.
        responses: One response a line, likewise.
        ignore: Ids that are no words; 0 (padding) and `end_of_turn` never are.
        end_of_turn: An id that ends an utterance; each training document is parted there into
            several.

    Returns:
        Cosines, from 0 to 1 (but for rounding), float64 `(N,)`.

    Raises:
        ValueError: for contexts and responses that differ in number, negative ids, or no training
            document with a word.

    >>> train = [[1, 2, 9, 1, 3], [1, 4]]  # three utterances, all with word 1: its idf is 0
    >>> tfidf_scores(train, [[1, 2, 9, 3], [1, 4, 0]], [[2, 1], [1, 2]], end_of_turn=9).round(3)
    array([0.707, 0.   ])
    """
    if len(contexts) != len(responses):
        raise ValueError(
            "Contexts and responses must be one a line. "
            f"Received: len(contexts)={len(contexts)}, len(responses)={len(responses)}"
        )
    no_words = np.array([PADDING, *ignore, *(() if end_of_turn is None else (end_of_turn,))])
    document_frequency, documents = _document_frequency(train_documents, no_words, end_of_turn)
    if not documents:
        raise ValueError(f"A training document with a word is needed. Received: n={documents}")
    idf = np.log((1 + documents) / (1 + document_frequency))
    unseen_idf = np.log(1 + documents)
    scores = np.zeros(len(contexts))
    for i in range(0, len(contexts), BLOCK):
        lines = slice(i, i + BLOCK)
        scores[lines] = _cosine(contexts[lines], responses[lines], idf, unseen_idf, no_words)
    return scores


def _document_frequency(documents, no_words, end_of_turn) -> tuple[np.ndarray, int]:
    """How many documents hold each id, int64 `(ids,)`, and how many hold any word."""
    frequency, total = np.zeros(1, np.int64), 0
    for block in _blocks(documents):
        row, token = _flat(block, no_words, end_of_turn)
        width = token.max(initial=0) + 1
        # each (document, id) once; counts asked for, as np.unique without them hashes: 10x slower
        held, _ = np.unique(row * width + token, return_counts=True)
        counted = np.bincount(held % width, minlength=len(frequency))
        counted[: len(frequency)] += frequency
        frequency = counted
        total += np.count_nonzero(np.diff(held // width, prepend=-1))
    return frequency, total


def _cosine(contexts, responses, idf, unseen_idf, no_words) -> np.ndarray:
    sides = [_flat(contexts, no_words), _flat(responses, no_words)]
    width = max(len(idf), *(token.max(initial=0) + 1 for _, token in sides))
    idf = np.concatenate([idf, np.full(width - len(idf), unseen_idf)])

    def bag(row, token):  # one entry for each (line, id) that occurs: its key, its line, its weight
        key, count = np.unique(row * width + token, return_counts=True)
        return key, key // width, count * idf[key % width]

    (c_key, c_line, c_weight), (r_key, r_line, r_weight) = (bag(*side) for side in sides)
    _, c, r = np.intersect1d(c_key, r_key, assume_unique=True, return_indices=True)

    def per_line(line, values):
        return np.bincount(line, values, minlength=len(contexts))

    norms = np.sqrt(per_line(c_line, c_weight**2) * per_line(r_line, r_weight**2))
    dot = per_line(c_line[c], c_weight[c] * r_weight[r])
    return np.divide(dot, norms, out=np.zeros(len(contexts)), where=norms > 0)


def _flat(documents: Sequence, no_words, end_of_turn=None) -> tuple[np.ndarray, np.ndarray]:
    """Each word's document (an ascending number, with gaps) and its id, both int64 `(words,)`."""
    lengths = np.fromiter(map(len, documents), np.int64, count=len(documents))
    token = np.fromiter(chain.from_iterable(documents), np.int64, count=lengths.sum())
    if token.min(initial=0) < 0:
        raise ValueError(f"Token ids must not be negative. Received: id={token.min()}")
    row = np.repeat(np.arange(len(documents)), lengths)
    if end_of_turn is not None:
        row += np.cumsum(token == end_of_turn)
    words = ~np.isin(token, no_words)
    return row[words], token[words]


def _blocks(documents: Iterable) -> Iterator[list]:
    iterator = iter(documents)
    while block := list(islice(iterator, BLOCK)):
        yield block
