"""Losses and scores of response selection.

Letters: B batch   N candidates of a context   T turns   K utterance words   J response words
"""

import contextlib

import numpy as np
from keras import ops

from base.files import UserError
from data.sequences import round_up, stack
from engine.parallel import results_of
from metrics.baselines import constant_scores, random_scores, tfidf_scores
from metrics.ranking import ranking_metrics
from tasks.selection.split import inputs_of

CANDIDATES = 10
"""Most candidates scored at once against one encoded context."""
CALL = 8000
"""Fixed cost of a batch, in cells of the match image: 2 to 4 ms of CPU time."""
DOCUMENTS = 4096
"""Training lines in memory as lists at once."""
GROUPINGS = {"turns": tuple(range(10)), **dict.fromkeys(["last_turn", "words"], (5, 10, 15, 20, 30, 50))}
"""Upper limits of the groups of contexts in section 5 of the paper: by turns, words of the last turn, mean words of a
turn. A last group has all above."""

# === Losses ===


def pointwise_loss(labels, logits, clip=0.0):
    """The paper's loss: `-log p(y | c, r)`, averaged over the candidates of a context, float32 `(B,)`.

    Args:
        labels, logits: Float `(B, N)`; labels are 1 for a positive, 0 for a negative.
        clip: The loss of a candidate is cut at this, and has no gradient beyond; 0: not at all.

    >>> float(pointwise_loss(np.array([[1.0, 0.0]]), np.array([[0.0, 20.0]]), clip=10.0)[0])
    5.346573590279973
    """
    loss = ops.binary_crossentropy(labels, logits, from_logits=True)
    return ops.mean(ops.minimum(loss, clip) if clip else loss, axis=-1)


def softmax_loss(labels, logits):
    """Cross-entropy over the candidates of a context, float32 `(B,)`; arguments as in `pointwise_loss`."""
    return ops.categorical_crossentropy(labels, logits, from_logits=True)


# === Scores ===


def score(model, split, config, progress=iter, length_multiple=4):
    """The model's logit for every line of a `SelectionSplit`, float32 `(lines,)`, in file order."""
    scores = np.zeros(len(split), np.float32)

    def make_inputs(batch):
        return inputs_of(split, config, *batch, length_multiple)

    batches = ranking_batches(split, config)
    for (_, lines), logits in results_of(model.predict_on_batch, make_inputs, batches, model, progress):
        scores[lines[lines >= 0]] = np.asarray(logits)[lines >= 0]
    return scores


def ranking_batches(split, config, pairs=80):
    """Cuts a split into batches of contexts with at most `pairs` candidates in all, each line once.

    The cost of a batch depends on its longest response and utterance, unless padding counts, and has a fixed part. So
    examples are sorted by turns and response words, and cut into batches with the fewest cells of the match image,
    `CALL` per batch included. Returns `(contexts (B,), lines (B, N))`, few turns first; line -1: no candidate.
    """
    exact, batches = config.masking == "exact", []
    for lines in _candidates_by_length(split, config, pairs if exact else 0) if len(split) else ():
        contexts = split.context[lines[:, 0]]
        T, *sizes = split.sizes(contexts, lines, config.max_turns, config.max_words).T
        K, J = (np.minimum(round_up(size, 6), config.max_words) for size in sizes)  # as they are padded
        if not exact:
            T[:], K[:], J[:] = config.max_turns, config.max_words, config.max_words
        order = np.lexsort([K, J, -(-T // 3)])  # pooling takes turns by threes
        ends = _cheapest_ends(T[order], K[order], J[order], lines.shape[1], max(1, pairs // lines.shape[1]))
        batches += [(contexts[batch], lines[batch]) for batch in np.split(order, ends) if len(batch)]
    return batches


def _cheapest_ends(T, K, J, N, most):
    """Ends of all batches but the last in the cheapest cut of a list of examples into batches of at most `most`.

    Dynamic programming: the cheapest cut of the first `end` examples is one of the first `start`, and one batch more.
    """
    sizes, best = list(zip(T.tolist(), K.tolist(), J.tolist(), strict=True)), [(0, 0)]  # cost and start of the last
    for end in range(1, len(sizes) + 1):
        t = k = j = 0
        cuts = []
        for start in range(end - 1, max(end - most, 0) - 1, -1):
            t, k, j = max(t, sizes[start][0]), max(k, sizes[start][1]), max(j, sizes[start][2])
            cuts.append((best[start][0] + CALL + (end - start) * N * t * k * j, start))
        best.append(min(cuts))
    ends = [best[-1][1]]
    while ends[-1]:
        ends.append(best[ends[-1]][1])
    return ends[-2::-1]


def _candidates_by_length(split, config, pairs):
    """The lines of each context by length, at most `CANDIDATES` in a row: whole rows, then halves, int `(rows, N)`.

    A row is cut in two if its shorter half is at most two thirds as long as the whole, and saves more than another
    batch of `pairs` candidates costs; `pairs` 0: never.
    """
    lengths = np.minimum(split.responses.lengths, config.max_words)
    order = np.lexsort((lengths, split.context))
    contexts = np.split(order, np.flatnonzero(np.diff(split.context[order])) + 1)
    rows = [lines[i : i + CANDIDATES] for lines in contexts for i in range(0, len(lines), CANDIDATES)]
    half = -(-max(map(len, rows)) // 2)
    cells = min(len(rows) * half, pairs) * config.max_turns * config.max_words
    whole, halves = [], []
    for row in rows:
        short, long = lengths[row[:half][-1]], lengths[row[-1]]
        if len(row) > half and short <= long * 2 / 3 and cells * (long - short) > CALL:
            halves += [row[:half], row[half:]]
        else:
            whole.append(row)
    return [stack([row + 1 for row in cut]) - 1 for cut in (whole, halves) if cut]  # -1: no candidate


# === Metrics ===


def rank(where, scores, split, **options):
    """`metrics.ranking.ranking_metrics` of the first `len(scores)` lines of a split, or a `UserError` about `where`."""
    lines = slice(len(scores))
    try:
        return ranking_metrics(scores, split.label[lines], split.context[lines], **options)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def whole_batches(context, batch_size):
    """The number of lines that DAM's release scores: whole batches, and of these whole contexts.

    >>> [whole_batches(np.arange(contexts * 10) // 10, 256) for contexts in (50000, 667)]
    [499960, 6650]
    """
    kept = len(context) // batch_size * batch_size
    return kept if kept == len(context) else int(np.searchsorted(context, context[kept]))


def baseline_scores(dataset, split, seed=0):
    """Scores of the three baselines on a split: `{name: (lines,)}`."""
    train, test, eos_id = dataset.splits["train"], dataset.splits[split], dataset.eos_id
    positives = np.flatnonzero(train.label == 1)
    parts = (positives[start : start + DOCUMENTS] for start in range(0, len(positives), DOCUMENTS))
    documents = (text for part in parts for texts in train.texts(part, eos_id) for text in texts)
    contexts, responses = test.texts(np.arange(len(test)), eos_id)
    ignore = [] if dataset.unk_id is None else [dataset.unk_id]
    tfidf = tfidf_scores(documents, contexts, responses, ignore=ignore, end_of_turn=eos_id)
    return {"random": random_scores(len(test), seed), "constant": constant_scores(len(test)), "TF-IDF cosine": tfidf}


def metrics_by(split, scores, grouping):
    """The metrics of groups of contexts, see `engine.task.Task.metrics_by`; `grouping` is a key of `GROUPINGS`."""
    ends, found = GROUPINGS[grouping], []
    group = np.searchsorted(ends, _sizes(split, grouping))[split.context]
    for number, name in enumerate(_names(ends)):
        lines = group == number
        with contextlib.suppress(ValueError):  # none of its contexts has both labels
            result = ranking_metrics(scores[lines], split.label[lines], split.context[lines])
            counts = result.counts
            ranked = counts["contexts"] - counts["without_positive"] - counts["without_negative"]
            found.append({"group": name, "examples": ranked, "metrics": result.metrics})
    return found


def _sizes(split, grouping):
    turns = split.context_turns
    if grouping == "turns":
        return turns
    if grouping == "last_turn":
        return split.turns.kept(np.where(turns > 0, split.context_start + turns - 1, -1))
    words = np.bincount(np.repeat(np.arange(len(turns)), turns), split.turns.lengths, len(turns))
    return words / np.maximum(turns, 1)


def _names(ends):
    """
    >>> _names((0, 1, 5))
    ['0', '1', '2-5', '6+']
    """
    first = [0, *(end + 1 for end in ends)]
    names = [f"{low}-{high}" if low < high else f"{low}" for low, high in zip(first, ends, strict=False)]
    return [*names, f"{first[-1]}+"]
