"""Scores of a split for evaluate.py: of a model, of a baseline or file, of groups of contexts."""

import functools

import numpy as np

from colloquy.base.files import UserError
from colloquy.engine.scoring import Measured
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.ranking import ADDED
from colloquy.tasks.selection import groups
from colloquy.tasks.selection.baselines import baseline_scores, outside_scores
from colloquy.tasks.selection.doubt import measure_doubt
from colloquy.tasks.selection.echoes import echo_rows
from colloquy.tasks.selection.scoring import rank, score


def measure(scoring):
    """Scores a split by a model, see `engine.task.Task.measure`.

    The answers are lines `score TAB label`, as DAM's release writes them.
    """
    split = scoring.examples
    scores = _scores(scoring, split)
    if scoring.options.partial_batches == "drop":
        scores = _drop_partial_batches(scoring, scores)

    where = f"{scoring.dataset.path}, {scoring.split}"
    ties = scoring.options.ties
    result = rank(where, scores, split, ties=ties)
    metrics_by_baseline = {}
    if scoring.baselines:
        for name, others in baseline_scores(scoring.dataset, scoring.split).items():
            ranked = rank(where, others[: len(scores)], split, ties=ties)
            metrics_by_baseline[name] = ranked.metrics
    # The doubt of a ranking is measured on whole splits.
    doubt = measure_doubt(split, scores) if len(scores) == len(split) else None
    record = {
        "metrics": result.metrics,
        "counts": {**result.counts, "lines": len(scores)},
        "ties": ties,
        "partial_batches": scoring.options.partial_batches,
        "baselines": metrics_by_baseline,
        "doubt": doubt,
    }
    return Measured(
        record,
        by_example=functools.partial(metrics_by_context, result),
        answers=map("{}\t{}".format, scores, split.label),
    )


def measure_outside(scoring, source):
    """Scores a baseline or a file of scores, see `engine.task.Task.measure_outside`."""
    _refuse_dropped_batches(scoring, "a baseline or file has no batches")
    split = scoring.examples
    scores = outside_scores(scoring.dataset, scoring.split, source)
    result = rank(source, scores, split, ties=scoring.options.ties)
    return Measured(
        record={"counts": {**result.counts, "lines": len(scores)}},
        by_example=functools.partial(metrics_by_context, result),
    )


def metrics_by_group(scoring, breakdowns):
    """Scores groups of contexts, see `engine.task.Task.metrics_by_group`."""
    _refuse_dropped_batches(scoring, "groups of contexts have no batches")
    split = scoring.examples
    ties = scoring.options.ties
    scores = _scores(scoring, split)
    # Only to refuse scores that are not finite.
    rank(f"{scoring.dataset.path}, {scoring.split}", scores, split)
    groups_by_breakdown = {}
    for name in breakdowns:
        if name != "echo":
            groups_by_breakdown[name] = groups.metrics_by_group(split, scores, name, ties)
            continue
        if ties != "loss":
            raise UserError("ties is not for --by=echo, where equal scores are a loss")
        score_echoes = functools.partial(_scores, scoring)
        groups_by_breakdown[name] = echo_rows(split, scores, score_echoes)
    return groups_by_breakdown


def _scores(scoring, split):
    return score(
        scoring.model,
        split,
        scoring.model.config,
        scoring.progress,
        scoring.length_multiple,
    )


def metrics_by_context(result):
    """`{metric: Additive}` over the contexts of a `metrics.ranking.RankingResult`."""
    metrics = {}
    for name, values in result.by_context.items():
        metrics[name] = Additive.mean(values)

    # The metrics in `ADDED` are functions of lines: take the lines of each context.
    scores, labels, contexts = result.lines
    starts = np.flatnonzero(np.diff(contexts)) + 1
    lines_of_contexts = zip(
        np.split(scores, starts),
        np.split(labels, starts),
        np.split(contexts, starts),
        strict=True,
    )
    return {**metrics, **means_of(ADDED, result.lines, lines_of_contexts)}


# === Partial batches ===


def _refuse_dropped_batches(scoring, reason):
    if scoring.options.partial_batches == "drop":
        raise UserError(f"partial_batches=drop is for the scores of whole splits: {reason}")


def _drop_partial_batches(scoring, scores):
    """The scores that DAM's release has; a `UserError` if there are none."""
    batch_size = scoring.run.training.batch_size
    num_lines = count_release_lines(scoring.examples.context_of_line, batch_size)
    if not num_lines:
        raise UserError(
            f"{scoring.split}: partial_batches=drop leaves none of {len(scores):,} lines, "
            f"since a batch has {batch_size:,}"
        )
    return scores[:num_lines]


def count_release_lines(context_of_line, batch_size):
    """The number of lines that DAM's release scores.

    It scores whole batches, and leaves out a context whose lines are not all in them.

    >>> context_of_line = np.arange(50_000 * 10) // 10
    >>> count_release_lines(context_of_line, batch_size=256)
    499960
    """
    num_in_batches = len(context_of_line) // batch_size * batch_size
    if num_in_batches == len(context_of_line):
        return num_in_batches
    first_context_left_out = context_of_line[num_in_batches]
    return int(np.searchsorted(context_of_line, first_context_left_out))
