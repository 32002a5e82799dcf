"""Dialog bAbI: right responses and right dialogs, how many can be reached, and two baselines.

    predicted, gold candidate of each response  ->  per response, per dialog
    train, contexts, candidates                 ->  TF-IDF match, nearest neighbour  ->  predicted

Definitions: Bordes, Boureau and Weston, ICLR 2017 (section 4 for the baselines). Candidates are
numbers into the corpus's candidate file, texts are lists (or padded rows) of word ids; 0 is padding.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from scipy import sparse

METRICS = ("per_response", "per_dialog")
PADDING = 0
TIE = 1e-9  # cosines this near are equal: the same sum in another order differs by some 1e-16
BLOCK_TEXTS = 1 << 11  # texts counted at a time, and
BLOCK_SCORES = 1 << 22  # scores held at a time: bound the memory, do not change the result


# === Figures ===


def dialog_metrics(predicted, gold, dialog) -> dict[str, float]:
    """Shares of right responses, and of dialogs in which every response is right.

    Args:
        predicted: Candidate that was chosen, integers `(responses,)`.
        gold: Candidate that is right, likewise.
        dialog: Number of the dialog that the response belongs to, likewise, in any order.

    Returns:
        `{"per_response", "per_dialog"}`, in `[0, 1]`. Every response counts once: dialogs of
        different lengths weigh differently in the first, the same in the second.

    Raises:
        ValueError: for shapes other than one `(responses,)` with at least one, or no integers.

    >>> dialog_metrics([4, 2, 7, 1], [4, 2, 7, 3], [0, 0, 5, 5])
    {'per_response': 0.75, 'per_dialog': 0.5}

    The upper bound of a model that reaches only some responses (see `reachable_by_seen`):

    >>> gold, reachable = np.array([4, 2, 7]), np.array([True, True, False])
    >>> dialog_metrics(np.where(reachable, gold, -1), gold, [0, 0, 5])["per_dialog"]
    0.5
    """
    predicted, gold, dialog = (np.asarray(values) for values in (predicted, gold, dialog))
    if not (predicted.shape == gold.shape == dialog.shape == (predicted.size,) and predicted.size):
        raise ValueError(
            "Predicted, gold and dialog must be one a response, shape (responses,), at least one. Received: "
            f"predicted.shape={predicted.shape}, gold.shape={gold.shape}, dialog.shape={dialog.shape}"
        )
    for name, values in (("predicted", predicted), ("gold", gold), ("dialog", dialog)):
        if not np.issubdtype(values.dtype, np.integer):
            raise ValueError(f"Candidates and dialogs must be integers. Received: {name}.dtype={values.dtype}")
    right = predicted == gold
    _, dialog = np.unique(dialog, return_inverse=True)
    wrong_of_dialog = np.bincount(dialog, weights=~right)
    return {"per_response": float(np.mean(right)), "per_dialog": float(np.mean(wrong_of_dialog == 0))}


# === Upper bounds ===


def reachable_by_seen(train_gold, gold) -> np.ndarray:
    """Which responses a model can give that only repeats responses it was trained on.

    Their share on the dev sets of tasks 1 to 6: 83.37, 99.29, 74.75, 56.67, 95.60, 88.70 %. A model
    that reads the words of candidates can pass it, where known words make a new response.

    Args:
        train_gold: Right candidates of the training responses, integers `(any,)`.
        gold: Right candidates of the responses, integers `(responses,)`.

    Returns:
        Booleans `(responses,)`.

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
    """Which responses a model with match types can give: it may put a new entity in a known form.

    A response is reachable if it was seen in training, or if both
    - its form was: its words, in order, with the type in place of each word that has one;
    - each of its words with a type occurs in the context.

    That leaves the choice between the entities of the context to the model. Their share on the dev
    sets of tasks 1 to 6: 100, 100, 74.75, 100, 99.97, 90.74 % (with the types that each knowledge
    base has). To ask besides that no other candidate of the form have all its typed words in the
    context would be no upper bound: 99.74 % on task 2, where a user who changes his mind names both
    values and memory networks are all right, and 99.28 % on task 5, where the facts hold a phone
    and an address of several restaurants.

    Args:
        train_gold: Right candidates of the training responses, integers `(any,)`.
        gold: Right candidates of the responses, integers `(responses,)`.
        candidates: Each candidate's word ids.
        type_of: `{word id: type}` for the values in the knowledge base: cuisine, location, price,
            rating, phone, address, number. Restaurants have no type in the paper.
        contexts: Words in memory (turns and facts) or user turn of each response, best as sets.

    Returns:
        Booleans `(responses,)`.

    Raises:
        ValueError: for gold and contexts that differ in number.

    >>> candidates = [[7], [8, 1], [8, 2], [8, 3]]  # "hello", "api_call rome", ".. paris", ".. london"
    >>> contexts = [set(), {9, 2}, {9}]
    >>> reachable_by_types([0, 1], [0, 2, 3], candidates, {1: 0, 2: 0, 3: 0}, contexts)
    array([ True,  True, False])
    """
    train_gold, gold = np.asarray(train_gold), np.asarray(gold)
    if len(gold) != len(contexts):
        raise ValueError(
            f"Contexts must be one a response. Received: len(gold)={len(gold)}, len(contexts)={len(contexts)}"
        )

    def form(candidate):
        words = (word for word in candidates[candidate] if word != PADDING)
        return tuple(("type", type_of[word]) if word in type_of else word for word in words)

    forms = {form(candidate) for candidate in np.unique(train_gold).tolist()}
    reachable = reachable_by_seen(train_gold, gold)
    for i in np.flatnonzero(~reachable):
        named = (word in contexts[i] for word in candidates[gold[i]] if word in type_of and word != PADDING)
        reachable[i] = form(gold[i]) in forms and all(named)
    return reachable


# === Baselines ===


def tfidf_match(
    train_documents: Sequence[Sequence[int]],
    contexts: Sequence[Sequence[int]],
    candidates: Sequence[Sequence[int]],
) -> np.ndarray:
    """The candidate of most TF-IDF cosine with the whole conversation so far.

        weight(w, text) = (times w occurs in text) * idf(w),   idf(w) = ln((1 + n) / (1 + df(w)))

    with `n` training documents, `df(w)` of them holding the word `w`, as in `metrics.baselines`. Ties
    go to the lowest candidate, so that a context without a word in common with any gets 0.

    With the training utterances as documents and the facts as part of the history, the dev sets of
    tasks 1 to 6 have 5.95, 6.13, 4.81, 0.00, 1.90, 1.85 % right; with the user turn alone as context,
    6.02, 3.49, 10.75, 8.81, 6.59, 2.52 %.

    Args:
        train_documents: Texts from which the document frequencies are counted, such as the training
            utterances; those without a word do not count.
        contexts: History and user turn of each response (or what else the caller matches), in one
            list.
        candidates: The candidates' words.

    Returns:
        Chosen candidates, int64 `(responses,)`.

    Raises:
        ValueError: for negative ids, no candidates, or no training document with a word.

    >>> tfidf_match([[1, 2], [1, 3]], [[1, 3, 3], [2, 0], [9]], [[1, 4], [2], [1, 3], [3, 1]])
    array([2, 1, 0])
    """
    if not len(candidates):
        raise ValueError(f"A candidate is needed. Received: len(candidates)={len(candidates)}")
    train, contexts, candidates = _counts(train_documents, contexts, candidates)
    idf = _idf(train)
    predicted = np.zeros(contexts.shape[0], np.int64)
    for lines, tied in _nearest(_unit_rows(contexts, idf), _unit_rows(candidates, idf)):
        predicted[lines] = tied.argmax(axis=1)
    return predicted


def nearest_neighbour(
    train_inputs: Sequence[Sequence[int]],
    train_gold,
    inputs: Sequence[Sequence[int]],
) -> np.ndarray:
    """The response of the training example whose input has most TF-IDF cosine with this input.

    The caller decides what an input is; the paper takes the last user turn alone. Where several
    examples are nearest (as all with the same words are) the response that most of them have is
    taken, as in the paper, and of equally frequent ones the lowest candidate. An input without a
    word in common with any example so gets the most frequent response of all.

    On the last user turn, the dev sets of tasks 1 to 6 have 66.73, 78.98, 64.78, 56.67, 60.32,
    29.02 % right.

    Differs from the paper: TF-IDF cosine instead of plain word overlap.

    Args:
        train_inputs: Input of each training example; the document frequencies of `tfidf_match` are
            counted from these.
        train_gold: Its right candidate, integers `(examples,)`.
        inputs: Input of each response.

    Returns:
        Chosen candidates, int64 `(responses,)`.

    Raises:
        ValueError: for training inputs and gold that differ in number, negative ids, or no training
            input with a word.

    >>> train_inputs = [[1, 2], [3], [2, 1], [1, 2]]
    >>> nearest_neighbour(train_inputs, [5, 4, 8, 8], [[2, 1], [3, 9], [7]])
    array([8, 4, 8])
    """
    train_gold = np.asarray(train_gold)
    if train_gold.shape != (len(train_inputs),):
        raise ValueError(
            "Training inputs and gold must be one an example. "
            f"Received: len(train_inputs)={len(train_inputs)}, train_gold.shape={train_gold.shape}"
        )
    train, inputs = _counts(train_inputs, inputs)
    idf = _idf(train)
    (train, of_example), (inputs, of_response) = _distinct(train), _distinct(inputs)

    responses, response = np.unique(train_gold, return_inverse=True)
    shape = train.shape[0], len(responses)
    times = sparse.csr_array((np.ones(len(response), np.int64), (of_example, response)), shape)
    predicted = np.zeros(inputs.shape[0], np.int64)
    for lines, tied in _nearest(_unit_rows(inputs, idf), _unit_rows(train, idf)):
        votes = sparse.csr_array(tied, dtype=np.int64) @ times
        predicted[lines] = responses[votes.toarray().argmax(axis=1)]
    return predicted[of_response]


def _nearest(queries, keys) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of queries, and which keys have the largest cosine with each, bool `(block, keys)`."""
    size = max(1, BLOCK_SCORES // keys.shape[0])
    keys = keys.T.tocsr()
    for i in range(0, queries.shape[0], size):
        lines = slice(i, min(i + size, queries.shape[0]))
        scores = (queries[lines] @ keys).toarray()
        yield lines, scores >= scores.max(axis=1, keepdims=True) - TIE


def _counts(*sides: Sequence[Sequence[int]]) -> list[sparse.csr_array]:
    """How often each text of each side holds each id, `(texts, ids)`, `ids` the same for all sides."""
    counts = []
    for texts in sides:
        blocks = [_block_counts(texts[i : i + BLOCK_TEXTS]) for i in range(0, max(len(texts), 1), BLOCK_TEXTS)]
        counts.append(_stacked(blocks))
    width = max(matrix.shape[1] for matrix in counts)
    for matrix in counts:
        matrix.resize(matrix.shape[0], width)
    return counts


def _block_counts(texts) -> sparse.csr_array:
    lengths = np.fromiter(map(len, texts), np.int64, count=len(texts))
    token = np.fromiter(chain.from_iterable(texts), np.int64, count=lengths.sum())
    if token.min(initial=0) < 0:
        raise ValueError(f"Token ids must not be negative. Received: id={token.min()}")
    row = np.repeat(np.arange(len(texts)), lengths)
    words = token != PADDING
    row, token = row[words], token[words]
    # summing what occurs twice also sorts each row's ids, which `_distinct` builds on
    return sparse.csr_array((np.ones(len(row)), (row, token)), (len(texts), token.max(initial=0) + 1))


def _stacked(blocks: list[sparse.csr_array]) -> sparse.csr_array:
    width = max(block.shape[1] for block in blocks)
    for block in blocks:
        block.resize(block.shape[0], width)
    return sparse.vstack(blocks, format="csr")


def _idf(train: sparse.csr_array) -> np.ndarray:
    documents = np.count_nonzero(np.diff(train.indptr))
    if not documents:
        raise ValueError(f"A training document with a word is needed. Received: n={documents}")
    return np.log((1 + documents) / (1 + np.bincount(train.indices, minlength=train.shape[1])))


def _unit_rows(counts: sparse.csr_array, idf) -> sparse.csr_array:
    """TF-IDF vectors of length 1; those of length 0 stay."""
    weight = counts.data * idf[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    norm = np.sqrt(np.bincount(row, weight**2, minlength=counts.shape[0]))[row]
    unit = np.divide(weight, norm, out=np.zeros_like(weight), where=norm > 0)
    return sparse.csr_array((unit, counts.indices, counts.indptr), counts.shape)


def _distinct(counts: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """The rows without repetition, in order of first sight, and which of them each row is."""
    number, first = {}, []
    inverse = np.zeros(counts.shape[0], np.int64)
    for i, (start, end) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        key = counts.indices[start:end].tobytes(), counts.data[start:end].tobytes()
        if key not in number:
            number[key] = len(first)
            first.append(i)
        inverse[i] = number[key]
    return counts[first], inverse
