"""Dialog bAbI: correct responses and dialogs, upper bounds, and two baselines.

    predicted, gold candidate of each response  ->  per response, per dialog
    train, contexts, candidates                 ->  TF-IDF match, nearest neighbour  ->  predicted

Definitions: Bordes, Boureau and Weston, ICLR 2017 (section 4 for the baselines). Candidates are numbers into the
corpus's candidate file, int64 `(responses,)`; texts are lists (or padded rows) of word ids, 0 is padding.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from scipy import sparse

from metrics.baselines import PADDING, count_words, inverse_frequencies, unit_rows

METRICS = ("per_response", "per_dialog")
TIE = 1e-9  # cosines this near are equal: the same sum in another order differs by some 1e-16
BLOCK = 1 << 22  # scores held at a time: bounds the memory, does not change the result


def dialog_metrics(predicted, gold, dialog) -> dict[str, float]:
    """The fraction of correct responses, in which long dialogs weigh more, and of dialogs that are correct throughout.

    Args:
        predicted, gold: The chosen and the correct candidates.
        dialog: Number of the dialog of each response, integers `(responses,)`, in any order.

    >>> dialog_metrics([4, 2, 7, 1], [4, 2, 7, 3], [0, 0, 5, 5])
    {'per_response': 0.75, 'per_dialog': 0.5}
    >>> # The upper bound of a model that reaches only some responses, see `reachable_by_seen`.
    >>> gold, reachable = np.array([4, 2, 7]), np.array([True, True, False])
    >>> dialog_metrics(np.where(reachable, gold, -1), gold, [0, 0, 5])["per_dialog"]
    0.5
    """
    arrays = [np.asarray(values) for values in (predicted, gold, dialog)]
    predicted, gold, dialog = arrays
    if not (predicted.shape == gold.shape == dialog.shape == (predicted.size,) and predicted.size):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"expected predicted, gold and dialog of each response, at least one. Received: {shapes}")
    if not all(np.issubdtype(array.dtype, np.integer) for array in arrays):
        kinds = ", ".join(str(array.dtype) for array in arrays)
        raise ValueError(f"predicted, gold and dialog: expected integers. Received: {kinds}")
    correct = predicted == gold
    _, dialog = np.unique(dialog, return_inverse=True)
    errors = np.bincount(dialog, weights=~correct)
    return {"per_response": float(np.mean(correct)), "per_dialog": float(np.mean(errors == 0))}


# === Upper bounds ===


def reachable_by_seen(train_gold, gold) -> np.ndarray:
    """The responses that a model can give which only repeats training responses, bool `(responses,)`.

    Their fraction on the dev sets of tasks 1 to 6: 83.37, 99.29, 74.75, 56.67, 95.60, 88.70 %. A model that reads the
    words of candidates can exceed it, where known words make a new response.

    >>> reachable_by_seen([3, 5, 3], [5, 4, 3])
    array([ True, False,  True])
    """
    return np.isin(gold, train_gold)


def reachable_by_types(
    train_gold,
    gold,
    candidates: Sequence[Sequence[int]],
    type_of: Mapping[int, int],
    contexts: Sequence[Collection[int]],
) -> np.ndarray:
    """The responses that a model with match types can give, bool `(responses,)`.

    Beside the responses seen in training, those whose form was seen (their words in order, with the type in place of
    each word that has one) and whose typed words all occur in the context: the choice between the entities of the
    context is left to the model. Their fraction on the dev sets of tasks 1 to 6: 100, 100, 74.75, 100, 99.97, 90.74 %.

    To ask besides that no other candidate of the form have all its typed words in the context would be no upper bound:
    99.74 % on task 2, where a user who changes his mind names both values and memory networks are always correct, and
    99.28 % on task 5, where the facts hold a phone and an address of several restaurants.

    Args:
        train_gold: Correct candidates of the training responses, integers `(any,)`.
        gold: Correct candidates of the responses.
        candidates: Each candidate's word ids.
        type_of: `{word id: type}` of the values in the knowledge base: cuisine, location, price, rating, phone,
            address, number. Restaurants have no type in the paper.
        contexts: Words in memory (turns and facts) or user turn of each response, best as sets.

    >>> candidates = [[7], [8, 1], [8, 2], [8, 3]]  # "hello", "api_call rome", ".. paris", ".. london"
    >>> contexts = [set(), {9, 2}, {9}]
    >>> reachable_by_types([0, 1], [0, 2, 3], candidates, {1: 0, 2: 0, 3: 0}, contexts)
    array([ True,  True, False])
    """
    train_gold, gold = np.asarray(train_gold), np.asarray(gold)
    if len(gold) != len(contexts):
        raise ValueError(f"expected a context per response. Received: {len(contexts)} for {len(gold)}")

    def words_of(candidate):
        return [word for word in candidates[candidate] if word != PADDING]

    def form(candidate):
        return tuple(("type", type_of[word]) if word in type_of else word for word in words_of(candidate))

    forms = {form(candidate) for candidate in np.unique(train_gold).tolist()}
    reachable = reachable_by_seen(train_gold, gold)
    for i in np.flatnonzero(~reachable):
        entities = [word for word in words_of(gold[i]) if word in type_of]
        reachable[i] = form(gold[i]) in forms and all(word in contexts[i] for word in entities)
    return reachable


# === Baselines ===


def tfidf_match(
    train_documents: Sequence[Sequence[int]],
    contexts: Sequence[Sequence[int]],
    candidates: Sequence[Sequence[int]],
) -> np.ndarray:
    """The candidate with the largest TF-IDF cosine (`metrics.baselines`) with each context; the lowest of equal ones.

    With the training utterances as documents and the facts as part of the history, the dev sets of tasks 1 to 6 have
    5.95, 6.13, 4.81, 0.00, 1.90, 1.85 % correct; with the user turn alone as context, 6.02, 3.49, 10.75, 8.81, 6.59,
    2.52 %.

    Args:
        train_documents: Texts from which the document frequencies are counted.
        contexts: History and user turn of each response, in one list.
        candidates: The candidates' words.

    >>> tfidf_match([[1, 2], [1, 3]], [[1, 3, 3], [2, 0], [9]], [[1, 4], [2], [1, 3], [3, 1]])
    array([2, 1, 0])
    """
    if not len(candidates):
        raise ValueError("expected a candidate. Received: none")
    train, contexts, candidates = count_words(train_documents, contexts, candidates)
    idf = inverse_frequencies(train)
    predicted = np.zeros(contexts.shape[0], np.int64)
    for lines, tied in _nearest(unit_rows(contexts, idf), unit_rows(candidates, idf)):
        predicted[lines] = tied.argmax(axis=1)
    return predicted


def nearest_neighbour(train_inputs: Sequence[Sequence[int]], train_gold, inputs: Sequence[Sequence[int]]) -> np.ndarray:
    """The response to the training input with the largest TF-IDF cosine with each input.

    Of several nearest inputs the most frequent response counts, as in the paper, and of equally frequent ones the
    lowest candidate; an input that shares no word with any gets the most frequent response of all. On the last user
    turn, as in the paper, the dev sets of tasks 1 to 6 have 66.73, 78.98, 64.78, 56.67, 60.32, 29.02 % correct.

    Differs from the paper: TF-IDF cosine instead of plain word overlap.

    Args:
        train_inputs, train_gold: Input of each training example, and its correct candidate, integers `(examples,)`.
        inputs: Input of each response.

    >>> train_inputs = [[1, 2], [3], [2, 1], [1, 2]]
    >>> nearest_neighbour(train_inputs, [5, 4, 8, 8], [[2, 1], [3, 9], [7]])
    array([8, 4, 8])
    """
    train_gold = np.asarray(train_gold)
    if train_gold.shape != (len(train_inputs),):
        raise ValueError(f"expected gold for {len(train_inputs)} training inputs. Received: {train_gold.shape}")
    train, inputs = count_words(train_inputs, inputs)
    idf = inverse_frequencies(train)
    (train, of_example), (inputs, of_response) = _distinct(train), _distinct(inputs)

    responses, response = np.unique(train_gold, return_inverse=True)
    shape = train.shape[0], len(responses)
    times = sparse.csr_array((np.ones(len(response), np.int64), (of_example, response)), shape)
    predicted = np.zeros(inputs.shape[0], np.int64)
    for lines, tied in _nearest(unit_rows(inputs, idf), unit_rows(train, idf)):
        votes = sparse.csr_array(tied, dtype=np.int64) @ times
        predicted[lines] = responses[votes.toarray().argmax(axis=1)]
    return predicted[of_response]


def _nearest(queries, keys):
    """Yields blocks of queries, as slices, and which keys have the largest cosine with each, bool `(block, keys)`."""
    size = max(1, BLOCK // keys.shape[0])
    keys = keys.T.tocsr()
    for i in range(0, queries.shape[0], size):
        lines = slice(i, min(i + size, queries.shape[0]))
        scores = (queries[lines] @ keys).toarray()
        yield lines, scores >= scores.max(axis=1, keepdims=True) - TIE


def _distinct(counts):
    """The distinct rows in order of first sight, and the number of the distinct row that each row equals."""
    number, first = {}, []
    inverse = np.zeros(counts.shape[0], np.int64)
    for i, (start, end) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        key = counts.indices[start:end].tobytes(), counts.data[start:end].tobytes()
        if key not in number:
            number[key] = len(first)
            first.append(i)
        inverse[i] = number[key]
    return counts[first], inverse
