"""Scores that need no model, to print beside one: chance, a constant, and TF-IDF cosine.

    train_documents  ->  document frequencies  ->  idf  ->  cosine(context, response)

All three return float64 `(N,)`, one score per line, for `metrics.ranking.ranking_metrics`. A constant
shows how much of a score ties alone bring (nothing by `ties="loss"`); TF-IDF shows how much word
overlap does.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from metrics.tfidf import count_words, inverse_frequencies, unit_rows


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
    """Cosine between the TF-IDF vectors (`metrics.tfidf`) of the whole context and of the response.

    Lines without a counted word on either side get 0.

    A document is one utterance: give each context and response of the training lines with label 1,
    and `end_of_turn` to split the contexts. Done so, the `ubuntu-irc` dev set has R10@1 0.521, R10@2
    0.646, R10@5 0.799 (ties as losses). Whole dialogues (context and response in one) as documents
    give 0.554, 0.660, 0.804.

    Args:
        train_documents: Lists of token ids, from which the document frequencies are counted; empty
            ones do not count.
        contexts: One context per line, lists (or padded rows) of token ids; turns may be separated by
            `end_of_turn`.
        responses: One response per line, likewise.
        ignore: Ids that are not words; 0 (padding) and `end_of_turn` never are.
        end_of_turn: An id that ends an utterance; each training document is split there.

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
            "One context and one response per line are needed. "
            f"Received: len(contexts)={len(contexts)}, len(responses)={len(responses)}"
        )
    ignore = [*ignore, *(() if end_of_turn is None else (end_of_turn,))]
    (train,) = count_words(train_documents, ignore=ignore, end_of_turn=end_of_turn)
    contexts, responses = count_words(contexts, responses, ignore=ignore)
    width = max(train.shape[1], contexts.shape[1])
    for counts in (train, contexts, responses):
        counts.resize(counts.shape[0], width)
    idf = inverse_frequencies(train)
    return unit_rows(contexts, idf).multiply(unit_rows(responses, idf)).sum(axis=1)
