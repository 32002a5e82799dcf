"""Response selection: `R_n@k`, MAP, MRR and P@1 over the candidates of each context.

Definitions: Wu et al., ACL 2017 (the Douban corpus), as in Zhou et al., ACL 2018. `ties="release"` reproduces both
scripts of the DAM release, for Ubuntu and for Douban.
"""

from dataclasses import dataclass

import numpy as np

METRICS = ("R2@1", "R10@1", "R10@2", "R10@5", "MAP", "MRR", "P@1")
TIES = ("loss", "release")


@dataclass(frozen=True)
class RankingResult:
    """Metrics by their names in `METRICS`, and the counts of contexts: all, and the two kinds that are left out."""

    metrics: dict[str, float]
    counts: dict[str, int]


def ranking_metrics(scores, labels, groups, *, ties: str = "loss") -> RankingResult:
    """Ranks the candidates of each context by descending score, and averages over the contexts.

    With `P` positives in a context, and `rank` counted from 1 over all its candidates:

        R_n@k = (positives with rank <= k) / P
        MAP:    mean over the positives of (positives up to this rank) / rank
        MRR:    1 / (rank of the first positive)
        P@1:    1 if the candidate of rank 1 is positive, else 0

    All candidates of a context are ranked, ten or not. `R2@1` sets its first positive against its first negative in
    file order. Contexts without a positive or without a negative are counted and left out, as Douban's authors did.

    Args:
        scores, labels: Float `(N,)`, and 1 for a positive response, 0 for a negative one.
        groups: Integers `(N,)`, the context of each line; the lines of a context are consecutive.
        ties: `"loss"`: negatives rank before equal positives, so a constant score has `R10@1 = 0`. `"release"`: file
            order, so it has `R10@1 = 1` if the positive is first.

    >>> scores = [0.9, 0.1, 0.4, 0.2, 0.8, 0.5]
    >>> result = ranking_metrics(scores, [1, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 1])
    >>> {name: round(value, 3) for name, value in result.metrics.items()}
    {'R2@1': 0.5, 'R10@1': 0.5, 'R10@2': 0.5, 'R10@5': 1.0, 'MAP': 0.667, 'MRR': 0.667, 'P@1': 0.5}
    >>> result.counts
    {'contexts': 2, 'without_positive': 0, 'without_negative': 0}
    """
    if ties not in TIES:
        raise ValueError(f"ties: expected one of {', '.join(TIES)}. Received: {ties!r}")
    scores, positive, context = _checked(scores, labels, groups)

    candidates = np.bincount(context)
    positives = np.bincount(context, weights=positive).astype(np.int64)
    usable = (positives > 0) & (positives < candidates)
    if not usable.any():
        raise ValueError(
            "expected a context with both a positive and a negative. "
            f"Received: {len(usable)} contexts, {np.sum(positives == 0)} of them without a positive"
        )
    kept = usable[context]
    scores, positive, context = scores[kept], positive[kept], context[kept]
    start = np.flatnonzero(_differs_from_last(context))  # first line of each usable context
    context = np.repeat(np.arange(len(start)), candidates[usable])

    # lexsort is stable and sorts by its last key first: lines with equal keys stay in file order.
    order = np.lexsort((positive if ties == "loss" else np.zeros_like(positive), -scores, context))
    found = _metrics_of_contexts(positive[order], context, start)
    found["R2@1"] = _first_against_first(scores, positive, start, ties)
    return RankingResult(
        metrics={name: float(np.mean(found[name])) for name in METRICS},
        counts={
            "contexts": len(usable),
            "without_positive": int(np.sum(positives == 0)),
            "without_negative": int(np.sum(positives == candidates)),
        },
    )


def _metrics_of_contexts(positive, context, start):
    """Each metric of each context, of ranked lines; `start` is the first line of each."""
    rank = np.arange(len(positive)) - start[context] + 1
    found = np.cumsum(positive)
    found -= (found - positive)[start][context]  # positives up to each line, in its context

    def per_positive(values):  # summed over a context, divided by its positives
        return np.add.reduceat(values, start) / np.add.reduceat(positive, start)

    return {
        **{f"R10@{k}": per_positive(positive * (rank <= k)) for k in (1, 2, 5)},
        "MAP": per_positive(positive * found / rank),
        "MRR": np.add.reduceat(positive * (found == 1) / rank, start),
        "P@1": positive[start],
    }


def _differs_from_last(values):
    return np.concatenate([[True], values[1:] != values[:-1]])


def _first_against_first(scores, positive, start, ties):
    line = np.arange(len(scores))
    first_positive = np.minimum.reduceat(np.where(positive == 1, line, len(line)), start)
    first_negative = np.minimum.reduceat(np.where(positive == 0, line, len(line)), start)
    tied = scores[first_positive] == scores[first_negative]
    won_by_order = tied & (first_positive < first_negative) & (ties == "release")
    return (scores[first_positive] > scores[first_negative]) | won_by_order


def _checked(scores, labels, groups):
    """Scores as float64, labels as int64, and each line's context as its number from 0."""
    scores, labels, groups = np.asarray(scores, np.float64), np.asarray(labels), np.asarray(groups)
    if not (scores.ndim == 1 and scores.size and scores.shape == labels.shape == groups.shape):
        raise ValueError(
            "expected a score, a label and a group per line, at least one line. "
            f"Received: scores {scores.shape}, labels {labels.shape}, groups {groups.shape}"
        )
    if not np.issubdtype(groups.dtype, np.integer):
        raise ValueError(f"groups: expected integers. Received: {groups.dtype}")
    _reject_first(~np.isfinite(scores), scores, "scores", "finite numbers")
    _reject_first((labels != 0) & (labels != 1), labels, "labels", "0 or 1")
    begins = _differs_from_last(groups)
    _, run_at_first_sight = np.unique(groups[begins], return_index=True)
    returns = np.zeros(len(groups), bool)
    returns[np.delete(np.flatnonzero(begins), run_at_first_sight)] = True
    _reject_first(returns, groups, "groups", "the lines of a context to be consecutive")
    return scores, labels.astype(np.int64), np.cumsum(begins) - 1


def _reject_first(faulty, values, name, expected):
    if faulty.any():
        line = int(np.argmax(faulty))
        raise ValueError(f"{name}: expected {expected}. Received: {values[line]} in line {line}, counted from 0")
