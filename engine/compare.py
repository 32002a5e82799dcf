"""Comparison of two models on the same examples: paired differences with intervals."""

import pathlib
from collections.abc import Mapping
from typing import NamedTuple

from rich.table import Column, Table

from colloquy.base.config import make_config
from colloquy.base.files import PathLike, UserError
from colloquy.data.prepared import Dataset
from colloquy.engine.evaluate import open_all
from colloquy.engine.evaluation import Evaluation
from colloquy.engine.provenance import provenance
from colloquy.engine.score_tables import print_table
from colloquy.engine.scoring import Scoring
from colloquy.engine.task import Task
from colloquy.metrics.bootstrap import Additive, differences


class Scored(NamedTuple):
    """A model, the seeds of one that answer together, or another system on a split."""

    task: Task
    dataset: Dataset
    names: list[str]
    """The paths of its runs, or the name of a baseline or file."""
    metrics: dict[str, Additive]
    """A term of each for each example."""
    counts: dict[str, int]


def compare(
    tasks: Mapping[str, Task],
    patterns: list,
    against: list,
    split: str = "dev",
    data: PathLike | None = None,
    precision: str = "auto",
    settings: Mapping[str, object] | None = None,
) -> dict:
    """Compares two models on the same examples of a split, and prints a table.

    Args:
        tasks: `tasks.TASKS`.
        patterns: As `evaluate_all` takes them: a model. Several runs are its seeds.
        against: The same of the other model; or a baseline or file of answers, see
            `engine.task.Task.measure_outside`.
        split: The split.
        data, precision, settings: See `Evaluation`.

    Returns:
        A dict ready for JSON: the paths, the number of examples, `metrics` of
        `metrics.bootstrap.differences`, and provenance.
    """
    datasets: dict[str, Dataset] = {}

    def score_runs(side: list) -> list[Scored]:
        scored = []
        for runs in open_all(side):
            task = tasks[runs[0].task]
            evaluation = Evaluation(task, runs, data, settings, precision, datasets)
            metrics, counts = evaluation.metrics_by_example(split)
            names = [str(run.path) for run in runs]
            scored.append(Scored(task, evaluation.dataset, names, metrics, counts))
        return scored

    ones = score_runs(patterns)
    first = ones[0]
    others = []
    for source in against:
        is_file = isinstance(source, PathLike) and pathlib.Path(source).is_file()
        if is_file or source in first.task.named_systems:
            others.append(_score_outside(first, split, str(source), settings))
        else:
            others += score_runs([source])
    for scored in [*ones, *others]:
        if scored.task is not first.task or scored.counts != first.counts:
            raise UserError(
                f"expected runs with the same examples of {split}. Received: "
                f"{first.names[0]}, {scored.names[0]}; data=DIR scores both on one dataset"
            )

    metrics = differences([one.metrics for one in ones], [other.metrics for other in others])
    paths = []
    for side in (ones, others):
        paths.append([name for scored in side for name in scored.names])
    # Every metric has a term for each example.
    any_metric = next(iter(first.metrics.values()))
    examples = len(any_metric.terms)
    _print_differences(first, split, paths, metrics, examples)
    return {
        "run": paths[0],
        "against": paths[1],
        "corpus": first.dataset.name,
        "split": split,
        "examples": examples,
        "counts": first.counts,
        "metrics": metrics,
        **provenance(),
    }


def _score_outside(
    first: Scored, split: str, source: str, settings: Mapping[str, object] | None
) -> Scored:
    scoring = Scoring(
        model=None,
        dataset=first.dataset,
        split=split,
        run=None,
        options=make_config(first.task.Options, settings or {}),
    )
    measured = first.task.measure_outside(scoring, source)
    return Scored(
        task=first.task,
        dataset=first.dataset,
        names=[source],
        metrics=measured.by_example(),
        counts=measured.record["counts"],
    )


def _print_differences(
    first: Scored, split: str, paths: list[list[str]], metrics: dict, examples: int
) -> None:
    names = [", ".join(side) for side in paths]
    columns = ["run", "against", "difference", "95 % interval"]
    table = Table(
        "",
        *[Column(name, justify="right") for name in columns],
        title=f"{first.dataset.name}, {split}: {names[0]} against {names[1]}",
        caption=f"paired bootstrap over {examples:,} {first.task.example_unit}s",
    )
    for name, row in metrics.items():
        interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
        values = [f"{row['one']:.4f}", f"{row['other']:.4f}", f"{row['difference']:+.4f}"]
        table.add_row(name, *values, interval)
    print_table(table, width=120)
