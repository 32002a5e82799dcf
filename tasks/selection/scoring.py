"""Response selection: every line of a split scored and ranked.

Letters: B batch   N candidates of a context   T turns   K utterance words   J response words
"""

import math

import numpy as np

from base.files import UserError
from engine.parallel import results_of
from metrics.baselines import constant_scores, random_scores, tfidf_scores
from metrics.ranking import ranking_metrics
from tasks.selection.split import inputs_of

CANDIDATES = 10  # scored at once against one encoded context
CALL = 8000
"""What a batch costs by itself, in cells of the match image: 2 to 4 ms of CPU time, measured with both recipes."""


def ranking_batches(split, config, pairs=80, candidates=CANDIDATES):
    """Every line of a split once, in batches of contexts with some of their candidates.

    What is computed for a batch goes by its longest response and utterance, unless padding counts, and every batch
    costs something by itself. So examples in order of their turns and response words are cut into batches where the
    cells of the match image, with `CALL` for each batch, are fewest.

    Args:
        split: A `tasks.selection.split.SelectionSplit`.
        config: The model's config; its `max_turns` and `max_words` say what is read.
        pairs: The most candidates per batch, over all its contexts.
        candidates: The most of one context at once.

    Returns:
        List of `(contexts (B,), lines (B, N))`, those of few turns first; line -1: none.
    """
    exact = config.masking == "exact"
    batches = []
    for rows in _candidates_by_length(split, config, candidates, pairs if exact else 0):
        if not len(rows):
            continue
        contexts = split.context[rows[:, 0]]
        sizes = split.sizes(contexts, rows, config.max_turns, config.max_words)
        sizes = sizes if exact else np.broadcast_to([config.max_turns, *[config.max_words] * 2], sizes.shape)
        T, K, J = sizes[:, 0], *(np.minimum(-(-sizes[:, 1:] // 6) * 6, config.max_words).T)  # as they are padded
        order = np.lexsort([K, J, -(-T // 3)])  # poolings take turns by threes
        ends = _cheapest_ends(T[order], K[order], J[order], rows.shape[1], max(1, pairs // rows.shape[1]))
        batches += [(contexts[chosen], rows[chosen]) for chosen in np.split(order, ends)]
    return batches


def _cheapest_ends(T, K, J, N, most):
    """Where to cut a list of examples into batches of at most so many that together cost least, without its end."""
    sizes, cost, begin = list(zip(T.tolist(), K.tolist(), J.tolist(), strict=True)), [0.0], [0]
    for end in range(1, len(sizes) + 1):
        t, k, j, best, at = 0, 0, 0, math.inf, 0
        for start in range(end - 1, max(end - most, 0) - 1, -1):
            t, k, j = (max(pair) for pair in zip((t, k, j), sizes[start], strict=True))
            total = cost[start] + CALL + (end - start) * N * t * k * j
            if total < best:
                best, at = total, start
        cost.append(best)
        begin.append(at)
    ends = [begin[-1]]
    while ends[-1]:
        ends.append(begin[ends[-1]])
    return ends[-2::-1]


def _candidates_by_length(split, config, candidates, pairs):
    """The lines of each context, so many at most in a row of an array, in order of length.

    Args:
        candidates: The most in a row.
        pairs: In a batch. Rows are cut in two, the shorter half by itself, where that half is at most two thirds as
            long, and saves more than another batch of so many pairs costs; 0: never.

    Returns:
        Two arrays, int `(rows, N)`: the whole rows, then the halves; -1: none.
    """
    lengths = np.minimum(split.responses.kept(np.arange(len(split.context))), config.max_words)
    order = np.lexsort((lengths, split.context))
    new = np.diff(split.context[order], prepend=-1) != 0
    start = np.flatnonzero(new)
    column = (np.arange(len(new)) - start[np.cumsum(new) - 1]) % candidates
    row = np.cumsum(column == 0) - 1
    lines = np.full((row[-1] + 1, candidates), -1)
    lines[row, column] = order
    lines = lines[:, : column.max() + 1]

    half = -(-lines.shape[1] // 2)
    longest = np.where(lines < 0, 0, lengths[lines])
    short, long = longest[:, half - 1], longest.max(axis=1)
    saved = min(len(lines) * half, pairs) * (long - short) * config.max_turns * config.max_words
    apart = (short <= long * 2 / 3) & (lines[:, half:] >= 0).any(axis=1) & (saved > CALL)
    halves = [lines[apart, :half], np.pad(lines[apart, half:], ((0, 0), (0, lines.shape[1] % 2)), constant_values=-1)]
    return lines[~apart], np.concatenate(halves)


def score(model, split, config, progress=iter, length_multiple=4, candidates=CANDIDATES):
    """The model's logit for every line of a split; a context is encoded once for so many candidates.

    Args:
        model: Takes `{"turns", "responses"}`, returns logits `(B, N)`.
        split, config: As in `ranking_batches`.
        progress: Wraps the list of batches, to show how far it is.
        length_multiple: As of `tasks.selection.split.inputs_of`.
        candidates: As of `ranking_batches`.

    Returns:
        float32 `(lines,)`, in file order.
    """
    scores = np.zeros(len(split.context), np.float32)

    def arrays_of(batch):
        return inputs_of(split, config, *batch, length_multiple)

    batches = ranking_batches(split, config, candidates=candidates)
    for (_, lines), logits in results_of(model.predict_on_batch, arrays_of, batches, model, progress):
        logits = np.asarray(logits)
        scores[lines[lines >= 0]] = logits[lines >= 0]
    return scores


def rank(where, scores, split, **options):
    """`metrics.ranking.ranking_metrics` of the first lines of a split, as many as there are scores.

    Args:
        where: Begins the message where they cannot be ranked.

    Raises:
        UserError: where no context has both labels.
    """
    lines = slice(len(scores))
    try:
        return ranking_metrics(scores, split.label[lines], split.context[lines], **options)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def whole_batches(context, batch_size):
    """How many lines DAM's release would measure: whole batches, and of these whole contexts.

    Args:
        context: The context of each line, int `(lines,)`.
        batch_size: Lines per batch.

    >>> [whole_batches(np.arange(contexts * 10) // 10, 256) for contexts in (50000, 667)]
    [499960, 6650]
    """
    kept = len(context) // batch_size * batch_size
    cut_short = 0 < kept < len(context) and context[kept - 1] == context[kept]
    return int(np.searchsorted(context, context[kept])) if cut_short else kept


def baseline_scores(dataset, split, seed=0):
    """Scores of the three baselines on a split: `{name: (lines,)}`."""
    train, test = dataset.splits["train"], dataset.splits[split]
    positives = np.flatnonzero(train.label == 1)

    def documents():
        for start in range(0, len(positives), 4096):  # as lists all of them would take much memory
            for texts in train.texts(positives[start : start + 4096], dataset.eos_id):
                yield from texts

    test_contexts, test_responses = test.texts(np.arange(len(test.label)), dataset.eos_id)
    ignore = [] if dataset.unk_id is None else [dataset.unk_id]
    return {
        "random": random_scores(len(test.label), seed),
        "constant": constant_scores(len(test.label)),
        "TF-IDF cosine": tfidf_scores(
            documents(),
            test_contexts,
            test_responses,
            ignore=ignore,
            end_of_turn=dataset.eos_id,
        ),
    }
