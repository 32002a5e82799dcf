"""Response selection: `R_n@k`, MAP, MRR and P@1 over the candidates of each context.

Definitions: Wu et al., ACL 2017 (the Douban corpus), as in Zhou et al., ACL 2018. `ties="release"`
reproduces both scripts of the DAM release, for Ubuntu and for Douban.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

METRICS = ("R2@1", "R10@1", "R10@2", "R10@5", "MAP", "MRR", "P@1")
ADDED = {}
"""`{name: function}`: your own metrics, functions of scores, labels and groups as `ranking_metrics`
takes them, of the contexts that it does not leave out."""
TIES = ("loss", "release")


@dataclass(frozen=True)
class RankingResult:
    """Metrics by their names in `METRICS`, and the numbers of contexts: all, and those left out."""

    metrics: dict[str, float]
    counts: dict[str, int]
    by_context: dict[str, np.ndarray]
    """Each metric of each context that is not left out."""
    lines: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Scores, labels and numbers of the contexts, of the lines of these contexts."""


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
    scores = np.asarray(scores, np.float64)
    positive = np.asarray(labels, np.int64)
    groups = np.asarray(groups)
    is_finite = np.isfinite(scores)
    if not is_finite.all():
        line = int(np.argmin(is_finite))
        raise ValueError(
            f"scores: expected finite numbers. Received: {scores[line]} in line {line}, "
            "counted from 0"
        )

    # Contexts by number, with their candidates and positives.
    context = np.cumsum(np.diff(groups, prepend=groups[:1]) != 0)
    candidates = np.bincount(context)
    positives = np.bincount(context, weights=positive).astype(np.int64)
    usable = (positives > 0) & (positives < candidates)
    if not usable.any():
        raise ValueError(
            "expected a context with both a positive and a negative. "
            f"Received: {len(usable)} contexts, {np.sum(positives == 0)} of them without a positive"
        )

    # Leave out the others, and number the usable ones again.
    is_kept = usable[context]
    scores = scores[is_kept]
    positive = positive[is_kept]
    num_usable = usable.sum()
    context = np.repeat(np.arange(num_usable), candidates[usable])
    first_line = np.searchsorted(context, np.arange(num_usable))

    # lexsort is stable and sorts by its last key first: lines with equal keys stay in file order.
    tie_break = positive if ties == "loss" else np.zeros_like(positive)
    order = np.lexsort((tie_break, -scores, context))
    metrics_of_contexts = _metrics_of_contexts(positive[order], context, first_line)
    metrics_of_contexts["R2@1"] = _first_against_first(scores, positive, first_line, ties)
    metrics = {name: float(np.mean(metrics_of_contexts[name])) for name in METRICS}
    for name, metric in ADDED.items():
        metrics[name] = float(metric(scores, positive, context))
    return RankingResult(
        metrics=metrics,
        counts={
            "contexts": len(usable),
            "without_positive": int(np.sum(positives == 0)),
            "without_negative": int(np.sum(positives == candidates)),
        },
        by_context={name: metrics_of_contexts[name] for name in METRICS},
        lines=(scores, positive, context),
    )


def _metrics_of_contexts(positive, context, first_line):
    """Each metric of each context, from ranked lines; `first_line` is the first of each context."""
    rank = np.arange(len(positive)) - first_line[context] + 1
    positives_so_far = np.cumsum(positive)
    positives_before = (positives_so_far - positive)[first_line]
    positives_so_far -= positives_before[context]
    positives = np.add.reduceat(positive, first_line)
    is_first_positive = positive * (positives_so_far == 1)

    def recall_at(k):
        return np.add.reduceat(positive * (rank <= k), first_line) / positives

    return {
        "R10@1": recall_at(1),
        "R10@2": recall_at(2),
        "R10@5": recall_at(5),
        "MAP": np.add.reduceat(positive * positives_so_far / rank, first_line) / positives,
        "MRR": np.add.reduceat(is_first_positive / rank, first_line),
        "P@1": positive[first_line],
    }


def _first_against_first(scores, positive, first_line, ties):
    """Whether the first positive of each context beats its first negative, bool `(contexts,)`."""
    line = np.arange(len(scores))
    first_positive = np.minimum.reduceat(np.where(positive == 1, line, len(line)), first_line)
    first_negative = np.minimum.reduceat(np.where(positive == 0, line, len(line)), first_line)
    is_higher = scores[first_positive] > scores[first_negative]
    if ties == "loss":
        return is_higher
    is_tied = scores[first_positive] == scores[first_negative]
    return is_higher | (is_tied & (first_positive < first_negative))
