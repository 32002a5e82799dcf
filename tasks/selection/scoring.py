"""Losses and scores of response selection.

Letters: B batch   N candidates of a context   T turns   K utterance words   J response words
"""

from typing import Literal

import numpy as np
from keras import ops

from colloquy.base.files import UserError
from colloquy.data.sequences import round_up
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.engine.scoring import Group
from colloquy.engine.task import ScoringOptions
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.ranking import ADDED, TIES, ranking_metrics
from colloquy.tasks.selection.split import inputs_of

# Candidates of a context that are scored together.
CANDIDATES_AT_ONCE = 10
# Upper limits of the groups of contexts in section 5 of the paper: by number of turns, words of the
# last turn, mean words of a turn. A last group has all above.
BREAKDOWNS = {
    "turns": tuple(range(10)),
    "last_turn": (5, 10, 15, 20, 30, 50),
    "words": (5, 10, 15, 20, 30, 50),
}


class Options(ScoringOptions):
    """Settings of scoring."""

    ties: Literal[tuple(TIES)] = "loss"
    """Treatment of equal scores, see `metrics.ranking.ranking_metrics`."""
    partial_batches: Literal["keep", "drop"] = "keep"
    """drop: the last lines are left out if they fill no batch, as DAM's release does. 49,996 of
    Ubuntu's 50,000 contexts and 665 of Douban's 667 remain at a batch size of 256."""


def pointwise_loss(labels, logits, clip=0.0):
    """The paper's loss: `-log p(y | c, r)`, averaged over the candidates of a context.

    Args:
        labels: Float `(B, N)`, 1 for a positive, 0 for a negative.
        logits: Float `(B, N)`.
        clip: The loss of a candidate is cut at this, and has no gradient beyond; 0: not at all.

    Returns:
        Float32 `(B,)`.

    >>> float(pointwise_loss(np.array([[1.0, 0.0]]), np.array([[0.0, 20.0]]), clip=10.0)[0])
    5.346573590279973
    """
    loss_BN = ops.binary_crossentropy(labels, logits, from_logits=True)
    if clip:
        loss_BN = ops.minimum(loss_BN, clip)
    return ops.mean(loss_BN, axis=-1)


def softmax_loss(labels, logits):
    """Cross-entropy over the candidates of a context, float32 `(B,)`; see `pointwise_loss`."""
    return ops.categorical_crossentropy(labels, logits, from_logits=True)


def score(model, split, config, progress=iter, length_multiple=4):
    """The model's logit for every line of a `SelectionSplit`, float32 `(lines,)`, in file order."""

    def make_inputs(batch):
        contexts, lines = batch
        return inputs_of(split, config, contexts, lines, length_multiple)

    scores = np.zeros(len(split), np.float32)
    batches = ranking_batches(split, config)
    compile_for_all_sizes(model)
    results = results_of(model.predict_on_batch, make_inputs, batches, progress)
    for (_, lines_BN), logits_BN in results:
        is_candidate_BN = lines_BN >= 0
        scores[lines_BN[is_candidate_BN]] = np.asarray(logits_BN)[is_candidate_BN]
    return scores


def ranking_batches(split, config, pairs=40):
    """Cuts a split into batches of contexts with at most `pairs` candidates in all, each line once.

    A batch costs as much as its longest utterance and response, unless padding counts. So the
    shorter half of ten candidates is scored apart from the longer one, and contexts of similar size
    share a batch: three quarters of the cells of batches in file order.

    Returns:
        A list of `(contexts (B,), lines (B, N))`, few turns first; line -1: no candidate.
    """
    if not len(split):
        return []
    padding_counts = config.masking != "exact"
    candidates = CANDIDATES_AT_ONCE if padding_counts else CANDIDATES_AT_ONCE // 2

    # Each row has candidates of one context, of similar lengths.
    lines = np.lexsort((split.responses.lengths, split.context_of_line))
    contexts = split.context_of_line[lines]
    place_in_context = np.arange(len(lines)) - np.searchsorted(contexts, contexts)
    column = place_in_context % candidates
    row = np.cumsum(column == 0) - 1
    lines_RN = np.full((row[-1] + 1, column.max() + 1), -1)
    lines_RN[row, column] = lines

    # Rows that are padded to the same size are neighbours.
    contexts_R = split.context_of_line[lines_RN[:, 0]]
    T, K, J = split.sizes(contexts_R, lines_RN, config.max_turns, config.max_words).T
    order = np.lexsort([round_up(K, 6), round_up(J, 6), round_up(T, 3)])
    batch_size = max(1, pairs // lines_RN.shape[1])
    batches = []
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        batches.append((contexts_R[batch], lines_RN[batch]))
    return batches


def rank(where, scores, split, **options):
    """`metrics.ranking.ranking_metrics` of the first `len(scores)` lines of a split.

    Raises:
        UserError: The scores cannot be ranked; the message begins with `where`.
    """
    lines = slice(len(scores))
    try:
        return ranking_metrics(scores, split.label[lines], split.context_of_line[lines], **options)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def best_scores(split, scores, is_chosen):
    """The highest score among the chosen lines of each context, float `(contexts,)`; or `-inf`."""
    best = np.full(split.num_contexts, -np.inf)
    np.maximum.at(best, split.context_of_line[is_chosen], scores[is_chosen])
    return best


def metrics_by_context(result):
    """`{metric: Additive}` over the contexts of a `RankingResult`."""
    *_, context = result.lines
    starts = np.flatnonzero(np.diff(context)) + 1
    lines_of_contexts = zip(*[np.split(values, starts) for values in result.lines], strict=True)
    return {
        **{name: Additive.mean(values) for name, values in result.by_context.items()},
        **means_of(ADDED, result.lines, lines_of_contexts),
    }


def whole_batches(context, batch_size):
    """The number of lines that DAM's release scores: whole batches, and of these whole contexts.

    >>> [whole_batches(np.arange(contexts * 10) // 10, 256) for contexts in (50000, 667)]
    [499960, 6650]
    """
    kept = len(context) // batch_size * batch_size
    if kept == len(context):
        return kept
    return int(np.searchsorted(context, context[kept]))


def metrics_by_group(split, scores, grouping, ties="loss"):
    """The metrics of groups of contexts, see `engine.task.Task.metrics_by_group`.

    Args:
        split: `SelectionSplit`.
        scores: Float `(lines,)`.
        grouping: A key of `BREAKDOWNS`.
        ties: See `metrics.ranking.ranking_metrics`.
    """
    upper_limits = BREAKDOWNS[grouping]
    sizes = _context_sizes(split, grouping)
    group_of_line = np.searchsorted(upper_limits, sizes)[split.context_of_line]
    rows = []
    for group, name in enumerate(_group_names(upper_limits)):
        lines = group_of_line == group
        try:
            result = ranking_metrics(
                scores[lines], split.label[lines], split.context_of_line[lines], ties=ties
            )
        except ValueError:  # no context of the group has both labels
            continue
        rows.append(Group(name, len(result.by_context["R10@1"]), result.metrics))
    return rows


def _context_sizes(split, grouping):
    """What contexts are grouped by, `(contexts,)`; see `BREAKDOWNS`."""
    turns = split.num_turns_of_context
    if grouping == "turns":
        return turns
    if grouping == "last_turn":
        last_turn = np.where(turns > 0, split.first_turn_of_context + turns - 1, -1)
        return split.turns.lengths_at(last_turn)
    context_of_turn = np.repeat(np.arange(len(turns)), turns)
    words = np.bincount(context_of_turn, weights=split.turns.lengths, minlength=len(turns))
    return words / np.maximum(turns, 1)


def _group_names(upper_limits):
    """Names of the groups up to each limit, and above the last.

    >>> _group_names((0, 1, 5))
    ['0', '1', '2-5', '6+']
    """
    names = []
    low = 0
    for high in upper_limits:
        names.append(f"{low}-{high}" if low < high else f"{low}")
        low = high + 1
    return [*names, f"{low}+"]
