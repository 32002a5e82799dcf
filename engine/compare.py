"""Comparison of two models on the same examples: paired differences with intervals."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from rich.table import Column, Table

from colloquy.base.files import UserError
from colloquy.data.prepared import Dataset
from colloquy.engine.evaluate import Evaluation, open_all
from colloquy.engine.provenance import provenance
from colloquy.engine.score_tables import print_table
from colloquy.engine.task import Task
from colloquy.metrics.bootstrap import Additive, differences


class Scored(NamedTuple):
    """A model, or the seeds of one that answer together, scored on the examples of a split."""

    evaluation: Evaluation
    metrics: dict[str, Additive]  # a term of each for each example
    counts: dict[str, int]


def compare(
    tasks: Mapping[str, Task],
    patterns: list,
    against: list,
    split: str = "dev",
    data: str | os.PathLike | None = None,
    precision: str = "auto",
    settings: Mapping[str, object] | None = None,
) -> dict:
    """Compares two models on the same examples of a split, and prints a table.

    Args:
        tasks: `tasks.TASKS`.
        patterns: As `evaluate_all` takes them: a model. Several runs are its seeds.
        against: The same of the other model.
        split: The split.
        data, precision, settings: See `Evaluation`.

    Returns:
        A dict ready for JSON: the paths, the number of examples, `metrics` of
        `metrics.bootstrap.differences`, and provenance.
    """
    loaded_datasets: dict[str, Dataset] = {}
    sides = []
    for side in (patterns, against):
        models = []
        for runs in open_all(side):
            task = tasks[runs[0].task]
            evaluation = Evaluation(task, runs, data, settings, precision, loaded_datasets)
            metrics, counts = evaluation.metrics_by_example(split)
            models.append(Scored(evaluation, metrics, counts))
        sides.append(models)

    first = sides[0][0]
    for scored in [*sides[0], *sides[1]]:
        task = scored.evaluation.task
        if task is not first.evaluation.task or scored.counts != first.counts:
            raise UserError(
                f"expected runs with the same examples of {split}. Received: "
                f"{first.evaluation.runs[0].path}, {scored.evaluation.runs[0].path}; "
                "data=DIR scores both on one dataset"
            )

    metrics_of_sides = []
    paths = []
    for models in sides:
        metrics_of_sides.append([scored.metrics for scored in models])
        runs_of_side = [run for scored in models for run in scored.evaluation.runs]
        paths.append([str(run.path) for run in runs_of_side])
    metrics = differences(*metrics_of_sides)
    # Every metric has a term for each example.
    any_metric = next(iter(first.metrics.values()))
    examples = len(any_metric.terms)
    _print_differences(first.evaluation, split, paths, metrics, examples)
    return {
        "run": paths[0],
        "against": paths[1],
        "corpus": first.evaluation.dataset.name,
        "split": split,
        "examples": examples,
        "counts": first.counts,
        "metrics": metrics,
        **provenance(),
    }


def _print_differences(evaluation, split, paths, metrics, examples):
    names = [", ".join(side) for side in paths]
    columns = ["run", "against", "difference", "95 % interval"]
    table = Table(
        "",
        *[Column(name, justify="right") for name in columns],
        title=f"{evaluation.dataset.name}, {split}: {names[0]} against {names[1]}",
        caption=f"paired bootstrap over {examples:,} {evaluation.task.example_unit}s",
    )
    for name, row in metrics.items():
        interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
        values = [f"{row['one']:.4f}", f"{row['other']:.4f}", f"{row['difference']:+.4f}"]
        table.add_row(name, *values, interval)
    print_table(table, width=120)
