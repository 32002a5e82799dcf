"""Scores of a split for evaluate.py: of a model, of a baseline or file, of groups of contexts."""

import functools

import numpy as np

from colloquy.base.files import UserError
from colloquy.engine.scoring import Measured
from colloquy.metrics.bootstrap import Additive, means_of
from colloquy.metrics.ranking import ADDED
from colloquy.tasks.selection.baselines import baseline_scores, outside_scores
from colloquy.tasks.selection.doubt import measure_doubt
from colloquy.tasks.selection.echoes import echo_rows
from colloquy.tasks.selection.groups import groups_of_contexts
from colloquy.tasks.selection.scoring import rank, score


def measure(scoring):
    """Scores a split by a model, see `engine.task.Task.measure`.

    The answers are lines `score TAB label`, as DAM's release writes them. With
    `partial_batches=drop` only the first lines are measured, see `count_release_lines`.
    """
    split = scoring.examples
    options = scoring.options
    num_lines = len(split)
    if options.partial_batches == "drop":
        batch_size = scoring.run.training.batch_size
        num_lines = count_release_lines(split.context_of_line, batch_size)
        if not num_lines:
            raise UserError(
                f"{scoring.split}: partial_batches=drop leaves none of {len(split):,} lines, "
                f"since a batch has {batch_size:,}"
            )

    where = f"{scoring.dataset.path}, {scoring.split}"
    scores = _scores(scoring, split)[:num_lines]
    result = rank(where, scores, split, ties=options.ties)
    metrics_by_baseline = {}
    if scoring.baselines:
        for name, others in baseline_scores(scoring.dataset, scoring.split).items():
            ranked = rank(where, others[:num_lines], split, ties=options.ties)
            metrics_by_baseline[name] = ranked.metrics
    record = {
        "metrics": result.metrics,
        "counts": {**result.counts, "lines": num_lines},
        "ties": options.ties,
        "partial_batches": options.partial_batches,
        "baselines": metrics_by_baseline,
        # It is measured on whole splits.
        "doubt": measure_doubt(split, scores) if num_lines == len(split) else None,
    }
    return Measured(
        record,
        by_example=functools.partial(metrics_by_context, result),
        answers=map("{}\t{}".format, scores, split.label),
    )


def count_release_lines(context_of_line, batch_size):
    """The number of lines that DAM's release scores, the first ones of a split.

    It scores whole batches, and leaves out a context whose lines are not all in them. Of nine lines
    of three contexts, two batches of four have eight, so the third context is left out:

    >>> count_release_lines(np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]), batch_size=4)
    6

    The published corpora have 50,000 and 667 contexts of ten lines, and batches of 256:

    >>> [count_release_lines(np.arange(10 * n) // 10, batch_size=256) for n in (50_000, 667)]
    [499960, 6650]
    """
    num_in_batches = len(context_of_line) // batch_size * batch_size
    contexts_left_out = context_of_line[num_in_batches:]
    return int(np.sum(~np.isin(context_of_line, contexts_left_out)))


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
    if "echo" in breakdowns and ties != "loss":
        raise UserError("ties is not for --by=echo, where equal scores are a loss")
    scores = _scores(scoring, split)
    # Only to refuse scores that are not finite.
    rank(f"{scoring.dataset.path}, {scoring.split}", scores, split)
    groups_by_breakdown = {}
    for name in breakdowns:
        if name == "echo":
            groups = echo_rows(split, scores, functools.partial(_scores, scoring))
        else:
            groups = groups_of_contexts(split, scores, name, ties)
        groups_by_breakdown[name] = groups
    return groups_by_breakdown


def _refuse_dropped_batches(scoring, reason):
    if scoring.options.partial_batches == "drop":
        raise UserError(f"partial_batches=drop is for the scores of whole splits: {reason}")


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
    metrics = {name: Additive.mean(values) for name, values in result.by_context.items()}
    # The metrics in `ADDED` are functions of scores, labels and contexts: cut each array into
    # those of one context.
    first_lines = np.flatnonzero(np.diff(result.lines.contexts)) + 1
    lines_of_contexts = zip(*[np.split(array, first_lines) for array in result.lines], strict=True)
    return {**metrics, **means_of(ADDED, result.lines, lines_of_contexts)}
