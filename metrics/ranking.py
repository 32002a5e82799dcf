"""Response selection: `R_n@k`, MAP, MRR and P@1 over the candidates of each context.

Definitions: Wu et al., ACL 2017 (the Douban corpus), as in Zhou et al., ACL 2018. `ties="release"`
reproduces both scripts of the DAM release, for Ubuntu and for Douban.

Letters:  N lines, a candidate each   C contexts
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

METRICS = ("R2@1", "R10@1", "R10@2", "R10@5", "MAP", "MRR", "P@1")
ADDED = {}
"""`{name: function}`: your own metrics. Each takes the three arrays of `RankedLines`."""
TIES = ("loss", "release")


class RankedLines(NamedTuple):
    """The lines of the contexts that are not left out, in file order."""

    scores: np.ndarray
    labels: np.ndarray
    contexts: np.ndarray
    """Numbers of their contexts, from 0 without a gap."""


@dataclass(frozen=True)
class RankingResult:
    """Metrics of the candidates of a split."""

    metrics: dict[str, float]
    """Means over contexts, by the names in `METRICS`, and the metrics that `ADDED` add."""
    counts: dict[str, int]
    """Numbers of contexts: all, and those left out for each reason."""
    by_context: dict[str, np.ndarray]
    """The metrics in `METRICS` of each context that is not left out."""
    lines: RankedLines


def ranking_metrics(scores: Any, labels: Any, groups: Any, *, ties: str = "loss") -> RankingResult:
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
    scores_N = np.asarray(scores, np.float64)
    labels_N = np.asarray(labels, np.int64)
    is_finite_N = np.isfinite(scores_N)
    if not is_finite_N.all():
        line = int(np.argmin(is_finite_N))
        raise ValueError(
            f"scores: expected finite numbers. Received: {scores_N[line]} in line {line}, "
            "counted from 0"
        )

    context_N = _number_contexts(np.asarray(groups))
    candidates_C = np.bincount(context_N)
    positives_C = np.bincount(context_N, weights=labels_N).astype(np.int64)
    has_both_C = (positives_C > 0) & (positives_C < candidates_C)
    without_positive = int(np.sum(positives_C == 0))
    if not has_both_C.any():
        raise ValueError(
            "expected a context with both a positive and a negative. "
            f"Received: {len(has_both_C)} contexts, {without_positive} of them without a positive"
        )

    is_kept_N = has_both_C[context_N]
    lines = RankedLines(
        scores=scores_N[is_kept_N],
        labels=labels_N[is_kept_N],
        contexts=_number_contexts(context_N[is_kept_N]),
    )
    by_context = _metrics_by_context(lines, ties)
    metrics = {name: float(np.mean(values_C)) for name, values_C in by_context.items()}
    for name, metric in ADDED.items():
        metrics[name] = float(metric(*lines))
    return RankingResult(
        metrics=metrics,
        counts={
            "contexts": len(has_both_C),
            "without_positive": without_positive,
            "without_negative": int(np.sum(positives_C == candidates_C)),
        },
        by_context=by_context,
        lines=lines,
    )


def _number_contexts(groups_N):
    """Numbers the contexts in their order: `[7, 7, 3, 3, 3, 9]` -> `[0, 0, 1, 1, 1, 2]`."""
    is_other_than_before_N = np.diff(groups_N, prepend=groups_N[:1]) != 0
    return np.cumsum(is_other_than_before_N)


def _metrics_by_context(lines, ties):
    """`METRICS` of each context, `{name: (C,)}`."""
    scores_N, labels_N, context_N = lines
    # The line in which each context begins: [0, 0, 1, 1, 1] -> [0, 2].
    _, first_line_C = np.unique(context_N, return_index=True)

    # Ranked lines: contexts stay in their order, and lines with equal keys, too. `lexsort` sorts by
    # its last key first.
    keys = (-scores_N, context_N)
    if ties == "loss":
        keys = (labels_N, *keys)
    order_N = np.lexsort(keys)
    return {
        "R2@1": _first_against_first(scores_N, labels_N, first_line_C, ties),
        **_metrics_of_ranking(labels_N[order_N], context_N, first_line_C),
    }


def _metrics_of_ranking(labels_N, context_N, first_line_C):
    """Each metric but `R2@1` of each context, from labels in ranked order.

    labels             0 1 1   1 0
    context            0 0 0   1 1
    rank               1 2 3   1 2
    positives so far   0 1 2   1 1
    """

    def sum_by_context(values_N):
        return np.add.reduceat(values_N, first_line_C)

    rank_N = np.arange(len(labels_N)) - first_line_C[context_N] + 1
    # Counted over all lines, less those of earlier contexts.
    positives_to_here_N = np.cumsum(labels_N)
    earlier_positives_C = (positives_to_here_N - labels_N)[first_line_C]
    positives_so_far_N = positives_to_here_N - earlier_positives_C[context_N]

    positives_C = sum_by_context(labels_N)

    def recall_at(k):
        return sum_by_context(labels_N * (rank_N <= k)) / positives_C

    precision_at_positive_N = labels_N * positives_so_far_N / rank_N
    is_first_positive_N = labels_N * (positives_so_far_N == 1)
    return {
        "R10@1": recall_at(1),
        "R10@2": recall_at(2),
        "R10@5": recall_at(5),
        "MAP": sum_by_context(precision_at_positive_N) / positives_C,
        "MRR": sum_by_context(is_first_positive_N / rank_N),
        "P@1": labels_N[first_line_C],
    }


def _first_against_first(scores_N, labels_N, first_line_C, ties):
    """Whether the first positive of each context beats its first negative, bool `(C,)`."""
    N = len(scores_N)
    line_N = np.arange(N)
    # The smallest line number in each context; the lines of the other label count as the end, N.
    first_positive_C = np.minimum.reduceat(np.where(labels_N == 1, line_N, N), first_line_C)
    first_negative_C = np.minimum.reduceat(np.where(labels_N == 0, line_N, N), first_line_C)
    is_higher_C = scores_N[first_positive_C] > scores_N[first_negative_C]
    if ties == "loss":
        return is_higher_C
    is_tied_C = scores_N[first_positive_C] == scores_N[first_negative_C]
    return is_higher_C | (is_tied_C & (first_positive_C < first_negative_C))
