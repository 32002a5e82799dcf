"""Dialog bAbI: correct responses and dialogs, upper bounds, and two baselines.

Definitions: Bordes, Boureau and Weston, ICLR 2017 (section 4 for the baselines). Candidates are
given by their number in the corpus's candidate file, from 0. Texts are lists (or padded rows) of
word ids; 0 is padding.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from colloquy.metrics.baselines import PADDING, count_words, inverse_frequencies, unit_rows

METRICS = ("per_response", "per_dialog")
ADDED = {}
"""`{name: function}`: your own metrics, functions of the arguments of `dialog_metrics`."""
TIE = 1e-9
"""Cosines closer than this are equal: the same sum in another order differs by some 1e-16."""
BLOCK = 1 << 22
"""Scores in memory at a time."""


def dialog_metrics(predicted: Any, gold: Any, dialog: Any) -> dict[str, float]:
    """Fractions of correct responses and of dialogs without a wrong one, and metrics `ADDED`.

    Args:
        predicted: The predicted candidate of each response, int; -1: the model chose none.
        gold: The correct candidate of each response, int.
        dialog: The number of each response's dialog, int.

    >>> dialog_metrics([4, 2, 7, 1], [4, 2, 7, 3], [0, 0, 5, 5])
    {'per_response': 0.75, 'per_dialog': 0.5}
    """
    correct = np.asarray(predicted) == np.asarray(gold)
    _, dialog = np.unique(dialog, return_inverse=True)
    errors = np.bincount(dialog, weights=~correct)
    metrics = {"per_response": float(np.mean(correct)), "per_dialog": float(np.mean(errors == 0))}
    for name, metric in ADDED.items():
        metrics[name] = float(metric(predicted, gold, dialog))
    return metrics


# === Upper bounds ===


def reachable_by_seen(train_gold: Any, gold: Any) -> np.ndarray:
    """Responses within reach of a model that repeats training responses, bool `(responses,)`.

    Their fraction on the dev sets of tasks 1 to 6: 83.37, 99.29, 74.75, 56.67, 95.60, 88.70 %.

    Models that read the words of candidates exceed this bound on tasks 1 and 5, where unseen
    responses recombine known words.

    >>> reachable_by_seen([3, 5, 3], [5, 4, 3])
    array([ True, False,  True])
    """
    return np.isin(gold, train_gold)


def reachable_by_types(
    train_gold: Any,
    gold: Any,
    candidates: Sequence[Sequence[int]],
    type_of: Mapping[int, int],
    contexts: Sequence[Collection[int]],
) -> np.ndarray:
    """Responses within reach of a model with match types, bool `(responses,)`.

    A response is within reach if it was seen in training, or if

    - a response of the same form was seen: the same words, with the type in place of each word that
      has one, and
    - all its words with a type occur in the context.

    On the dev sets of tasks 1 to 6: 100, 100, 74.75, 100, 99.97, 90.74 %. A model can still choose
    wrongly among these: if a user changes his mind, two values of a type are in the context.

    Args:
        train_gold: The correct candidates of the training responses.
        gold: The correct candidate of each response.
        candidates: The words of each candidate.
        type_of: `{word id: type}` of the values in the knowledge base: cuisine, location, price,
            rating, phone, address, number. Restaurants have no type in the paper.
        contexts: The words of the history, facts and user turn before each response.

    >>> # "hello", "api_call rome", "api_call paris", "api_call london"
    >>> candidates = [[7], [8, 1], [8, 2], [8, 3]]
    >>> contexts = [set(), {9, 2}, {9}]
    >>> reachable_by_types([0, 1], [0, 2, 3], candidates, {1: 0, 2: 0, 3: 0}, contexts)
    array([ True,  True, False])
    """

    def form(candidate):
        words = [word for word in candidates[candidate] if word != PADDING]
        return tuple(("type", type_of[word]) if word in type_of else word for word in words)

    seen_forms = {form(candidate) for candidate in np.unique(train_gold).tolist()}
    reachable = reachable_by_seen(train_gold, gold)
    for response in np.flatnonzero(~reachable):
        candidate = gold[response]
        typed_words = type_of.keys() & candidates[candidate]
        is_in_context = typed_words <= set(contexts[response])
        reachable[response] = is_in_context and form(candidate) in seen_forms
    return reachable


# === Baselines ===


def tfidf_match(
    train_documents: Sequence[Sequence[int]],
    contexts: Sequence[Sequence[int]],
    candidates: Sequence[Sequence[int]],
) -> np.ndarray:
    """The candidate with the largest TF-IDF cosine (`metrics.baselines`) with each context.

    Among equal cosines it is the candidate with the lowest number.

    With the distinct training sentences as documents and history, facts and user turn as context,
    the dev sets of tasks 1 to 6 have 5.95, 14.04, 4.89, 0.00, 5.82, 1.47 % correct.

    >>> tfidf_match([[1, 2], [1, 3]], [[1, 3, 3], [2, 0], [9]], [[1, 4], [2], [1, 3], [3, 1]])
    array([2, 1, 0])
    """
    train, context_counts, candidate_counts = count_words(train_documents, contexts, candidates)
    idf = inverse_frequencies([train], num_words=train.shape[1])
    predicted = np.zeros(len(contexts), np.int64)
    nearest = _nearest(unit_rows(context_counts, idf), unit_rows(candidate_counts, idf))
    for rows, is_nearest in nearest:
        predicted[rows] = is_nearest.argmax(axis=1)  # the first of the nearest
    return predicted


def nearest_neighbour(
    train_inputs: Sequence[Sequence[int]], train_gold: Any, inputs: Sequence[Sequence[int]]
) -> np.ndarray:
    """The response to the training input with the largest TF-IDF cosine with each input.

    Among several nearest inputs the most frequent response counts, as in the paper; among equally
    frequent ones, the lowest candidate. An input that shares no word with any gets the most
    frequent response. On the last user turn the dev sets of tasks 1 to 6 have 66.73, 78.98, 64.78,
    56.67, 60.32, 29.02 % correct.

    Differs from the paper: TF-IDF cosine instead of plain word overlap.

    >>> train_inputs = [[1, 2], [3], [2, 1], [1, 2]]
    >>> nearest_neighbour(train_inputs, [5, 4, 8, 8], [[2, 1], [3, 9], [7]])
    array([8, 4, 8])
    """
    train, queries = count_words(train_inputs, inputs)
    idf = inverse_frequencies([train], num_words=train.shape[1])
    # Many inputs are the same: compare each distinct one once.
    first_train_inputs, train_bags = _distinct_bags(train_inputs)
    first_queries, query_bags = _distinct_bags(inputs)
    train_vectors = unit_rows(train[first_train_inputs], idf)
    query_vectors = unit_rows(queries[first_queries], idf)

    # How often each response follows each training bag: the constructor adds up equal pairs.
    responses, response_numbers = np.unique(train_gold, return_inverse=True)
    pairs = (train_bags, response_numbers)
    shape = (len(first_train_inputs), len(responses))
    counts = sparse.csr_array((np.ones(len(response_numbers), np.int64), pairs), shape)

    predicted = np.zeros(len(first_queries), np.int64)
    for rows, is_nearest in _nearest(query_vectors, train_vectors):
        votes = sparse.csr_array(is_nearest, dtype=np.int64) @ counts
        predicted[rows] = responses[votes.toarray().argmax(axis=1)]
    return predicted[query_bags]


def _nearest(queries, keys):
    """Finds the keys with the largest cosine with each query.

    Yields a slice of the queries and which keys are the nearest to each of them, bool `(block,
    keys)`.
    """
    num_queries = queries.shape[0]
    block_size = max(1, BLOCK // keys.shape[0])
    keys = keys.T.tocsr()
    for start in range(0, num_queries, block_size):
        rows = slice(start, min(start + block_size, num_queries))
        cosines = (queries[rows] @ keys).toarray()
        yield rows, cosines >= cosines.max(axis=1, keepdims=True) - TIE


def _distinct_bags(texts):
    """Numbers the bags of words of texts, equal ones alike.

    Returns:
        The first text of each bag, int `(bags,)`, and the bag of each text, int `(texts,)`.

    >>> _distinct_bags([[1, 2], [3], [2, 1]])
    (array([0, 1]), array([0, 1, 0]))
    """
    number_of_bag = {}
    bags = []
    for words in texts:
        bags.append(number_of_bag.setdefault(tuple(sorted(words)), len(number_of_bag)))
    _, first_texts = np.unique(bags, return_index=True)
    return first_texts, np.array(bags, np.int64)
