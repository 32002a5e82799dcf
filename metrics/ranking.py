"""Response selection: `R_n@k`, MAP, MRR and P@1 over the candidates of each context.

Definitions: Wu et al., ACL 2017 (the Douban corpus), as in Zhou et al., ACL 2018. `ties="release"`
reproduces both scripts of the DAM release, for Ubuntu and for Douban.
"""

from dataclasses import dataclass

import numpy as np

METRICS = ("R2@1", "R10@1", "R10@2", "R10@5", "MAP", "MRR", "P@1")
TIES = ("loss", "release")


@dataclass(frozen=True)
class RankingResult:
    """Metrics by their names in `METRICS`, and the counts of contexts: all, and the two kinds that
    are left out.
    """

    metrics: dict[str, float]
    counts: dict[str, int]


def ranking_metrics(scores, labels, groups, *, ties: str = "loss") -> RankingResult:
    """Ranks the candidates of each context by descending score, and averages over the contexts.

    With `P` positives in a context, and `rank` counted from 1 over all its candidates:

        R_n@k = (positives with rank <= k) / P
        MAP:    mean over the positives of (positives up to this rank) / rank
        MRR:    1 / (rank of the first positive)
        P@1:    1 if the candidate of rank 1 is positive, else 0

    All candidates of a context are ranked, ten or not. `R2@1` sets its first positive against its
    first negative in file order. Contexts without a positive or without a negative are counted and
    left out, as Douban's authors did.

    Args:
        scores, labels: Float `(N,)`, and 1 for a positive response, 0 for a negative one.
        groups: Integers `(N,)`, the context of each line; the lines of a context are consecutive.
        ties: `"loss"`: negatives rank before equal positives, so a constant score has `R10@1 = 0`.
            `"release"`: file order, so it has `R10@1 = 1` if the positive is first.

    >>> scores = [0.9, 0.1, 0.4, 0.2, 0.8, 0.5]
    >>> result = ranking_metrics(scores, [1, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 1])
    >>> {name: round(value, 3) for name, value in result.metrics.items()}
    {'R2@1': 0.5, 'R10@1': 0.5, 'R10@2': 0.5, 'R10@5': 1.0, 'MAP': 0.667, 'MRR': 0.667, 'P@1': 0.5}
    >>> result.counts
    {'contexts': 2, 'without_positive': 0, 'without_negative': 0}
    """
    if ties not in TIES:
        raise ValueError(f"ties: expected one of {', '.join(TIES)}. Received: {ties!r}")
    scores, positive, groups = (
        np.asarray(scores, np.float64),
        np.asarray(labels, np.int64),
        np.asarray(groups),
    )
    if not np.isfinite(scores).all():
        line = int(np.argmin(np.isfinite(scores)))
        raise ValueError(
            f"scores: expected finite numbers. Received: {scores[line]} in line {line}, counted from 0"
        )
    context = np.cumsum(np.diff(groups, prepend=groups[:1]) != 0)
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
    context = np.repeat(np.arange(usable.sum()), candidates[usable])
    start = np.searchsorted(context, np.arange(usable.sum()))  # first line of each usable context

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


def _first_against_first(scores, positive, start, ties):
    line = np.arange(len(scores))
    first_positive = np.minimum.reduceat(np.where(positive == 1, line, len(line)), start)
    first_negative = np.minimum.reduceat(np.where(positive == 0, line, len(line)), start)
    tied = scores[first_positive] == scores[first_negative]
    won_by_order = tied & (first_positive < first_negative) & (ties == "release")
    return (scores[first_positive] > scores[first_negative]) | won_by_order
