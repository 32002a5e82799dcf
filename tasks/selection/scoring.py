"""Losses and scores of response selection.

Letters: B batch   N candidates of a context   T turns   K utterance words   J response words
"""

import contextlib

import numpy as np
from keras import ops

from colloquy.base.files import UserError
from colloquy.data.sequences import round_up, stack
from colloquy.engine.parallel import results_of
from colloquy.metrics.baselines import tfidf_scores
from colloquy.metrics.ranking import ranking_metrics
from colloquy.tasks.selection.split import inputs_of

# candidates of a context that are scored together; where padding does not count, half of them
CANDIDATES = 10
DOCUMENTS = 4096  # training lines in memory as lists at once
BREAKDOWNS = {
    "turns": tuple(range(10)),
    **dict.fromkeys(["last_turn", "words"], (5, 10, 15, 20, 30, 50)),
}
"""Upper limits of the groups of contexts in section 5 of the paper: by turns, words of the last
turn, mean words of a turn. A last group has all above."""


def pointwise_loss(labels, logits, clip=0.0):
    """The paper's loss: `-log p(y | c, r)`, averaged over the candidates of a context, float32
    `(B,)`.

    Args:
        labels, logits: Float `(B, N)`; labels are 1 for a positive, 0 for a negative.
        clip: The loss of a candidate is cut at this, and has no gradient beyond; 0: not at all.

    >>> float(pointwise_loss(np.array([[1.0, 0.0]]), np.array([[0.0, 20.0]]), clip=10.0)[0])
    5.346573590279973
    """
    loss = ops.binary_crossentropy(labels, logits, from_logits=True)
    return ops.mean(ops.minimum(loss, clip) if clip else loss, axis=-1)


def softmax_loss(labels, logits):
    """Cross-entropy over the candidates of a context, float32 `(B,)`; arguments as in
    `pointwise_loss`.
    """
    return ops.categorical_crossentropy(labels, logits, from_logits=True)


def score(model, split, config, progress=iter, length_multiple=4):
    """The model's logit for every line of a `SelectionSplit`, float32 `(lines,)`, in file order."""
    scores = np.zeros(len(split), np.float32)

    def make_inputs(batch):
        return inputs_of(split, config, *batch, length_multiple)

    batches = ranking_batches(split, config)
    for (_, lines), logits in results_of(
        model.predict_on_batch, make_inputs, batches, model, progress
    ):
        scores[lines[lines >= 0]] = np.asarray(logits)[lines >= 0]
    return scores


def ranking_batches(split, config, pairs=40):
    """Cuts a split into batches of contexts with at most `pairs` candidates in all, each line once.

    Unless padding counts, a batch costs as much as its longest utterance and response. So the
    shorter half of ten candidates is scored apart from the longer one, and contexts of similar size
    share a batch: three quarters of the cells of batches in file order. Returns `(contexts (B,),
    lines (B, N))`, few turns first; line -1: no candidate.
    """
    if not len(split):
        return []
    most = CANDIDATES // 2 if config.masking == "exact" else CANDIDATES
    order = np.lexsort((split.responses.lengths, split.context))
    of_contexts = np.split(order, np.flatnonzero(np.diff(split.context[order])) + 1)
    lines = (
        stack([row[i : i + most] + 1 for row in of_contexts for i in range(0, len(row), most)]) - 1
    )
    contexts = split.context[lines[:, 0]]
    T, K, J = split.sizes(contexts, lines, config.max_turns, config.max_words).T
    order = np.lexsort([round_up(K, 6), round_up(J, 6), round_up(T, 3)])  # as they are padded
    size = max(1, pairs // lines.shape[1])
    return [
        (contexts[batch], lines[batch]) for batch in np.split(order, range(size, len(order), size))
    ]


def rank(where, scores, split, **options):
    """`metrics.ranking.ranking_metrics` of the first `len(scores)` lines of a split, or a
    `UserError` about `where`.
    """
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


def baseline_scores(dataset, split):
    """Scores of the three baselines on a split: `{name: (lines,)}`; a constant wins nothing by
    `ties="loss"`.
    """
    train, test, eos_id = dataset.splits["train"], dataset.splits[split], dataset.eos_id
    positives = np.flatnonzero(train.label == 1)
    parts = (positives[start : start + DOCUMENTS] for start in range(0, len(positives), DOCUMENTS))
    documents = (text for part in parts for texts in train.texts(part, eos_id) for text in texts)
    contexts, responses = test.texts(np.arange(len(test)), eos_id)
    ignore = [] if dataset.unk_id is None else [dataset.unk_id]
    tfidf = tfidf_scores(documents, contexts, responses, ignore=ignore, end_of_turn=eos_id)
    random = np.random.default_rng(0).random(len(test))
    return {"random": random, "constant": np.zeros(len(test)), "TF-IDF cosine": tfidf}


def metrics_by_group(split, scores, grouping):
    """The metrics of groups of contexts, see `engine.task.Task.metrics_by_group`; `grouping` is a key of
    `BREAKDOWNS`.
    """
    turns, ends, found = split.context_turns, BREAKDOWNS[grouping], []
    if grouping == "turns":
        sizes = turns
    elif grouping == "last_turn":
        sizes = split.turns.kept(np.where(turns > 0, split.context_start + turns - 1, -1))
    else:
        words = np.bincount(
            np.repeat(np.arange(len(turns)), turns), split.turns.lengths, len(turns)
        )
        sizes = words / np.maximum(turns, 1)
    group = np.searchsorted(ends, sizes)[split.context]
    names = [
        f"{low}-{high}" if low < high else f"{low}"
        for low, high in zip((0, *np.add(ends, 1)), ends, strict=False)
    ]
    for number, name in enumerate([*names, f"{ends[-1] + 1}+"]):
        lines = group == number
        with contextlib.suppress(ValueError):  # none of its contexts has both labels
            result = ranking_metrics(scores[lines], split.label[lines], split.context[lines])
            contexts, *left_out = result.counts.values()
            found.append(
                {"group": name, "examples": contexts - sum(left_out), "metrics": result.metrics}
            )
    return found
