"""Comparison of two models on the same examples: paired differences with intervals."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from colloquy.base.files import PathLike, UserError
from colloquy.engine.evaluation import Evaluation, open_evaluations
from colloquy.engine.provenance import provenance
from colloquy.engine.scoring import Measured, Scoring
from colloquy.engine.task import Task
from colloquy.metrics.bootstrap import differences
from colloquy.metrics.tables import markdown


class Scored(NamedTuple):
    """The scores of a model, of an ensemble, or of another system."""

    names: list[str]
    """The paths of its runs, or the name of a baseline or file."""
    measured: Measured


def compare(
    tasks: Mapping[str, Task],
    patterns: Any,
    against: Any,
    split: str = "dev",
    data: PathLike | None = None,
    precision: str = "auto",
    settings: Mapping[str, object] | None = None,
) -> dict:
    """Compares two models on the same examples of a split, and prints a table.

    Examples are taken to be the same if their counts are; `data` scores both sides on one dataset.

    Args:
        tasks: `tasks.TASKS`.
        patterns: As `open_evaluations` takes them: a model. Several runs are its seeds.
        against: The same of the other model; or a baseline or file of answers, see
            `engine.task.Task.measure_outside`.
        split: The split.
        data, precision, settings: See `open_evaluations`.

    Returns:
        A dict ready for JSON: the paths, the number of examples, `metrics` of
        `metrics.bootstrap.differences`, and provenance.
    """
    datasets: dict = {}
    evaluations = open_evaluations(tasks, patterns, data, settings, precision, datasets)
    sources = against if isinstance(against, list) else [against]
    if not evaluations or not sources:
        raise UserError("expected a run on each side. Received: none")
    first = evaluations[0]
    # Both sides are opened before one is scored: a wrong name is refused before the work.
    rivals: list[Evaluation | str] = []
    for source in sources:
        # Unlike `Path.is_file`, `isfile` raises for no name.
        is_file = isinstance(source, PathLike) and os.path.isfile(source)
        if is_file or source in first.task.named_systems:
            rivals.append(str(source))
        else:
            rivals += open_evaluations(tasks, source, data, settings, precision, datasets)

    ones = [_score(evaluation, split) for evaluation in evaluations]
    others = []
    for rival in rivals:
        if isinstance(rival, str):
            others.append(_score_outside(first, rival, split))
        else:
            others.append(_score(rival, split))

    counts = ones[0].measured.record["counts"]
    for scored in [*ones, *others]:
        # Each task counts other things.
        if scored.measured.record["counts"] != counts:
            raise UserError(
                f"expected runs with the same examples of {split}. Received: "
                f"{ones[0].names[0]}, {scored.names[0]}; data=DIR scores both on one dataset"
            )
    sides = []
    paths = []
    for side in (ones, others):
        sides.append([scored.measured.by_example() for scored in side])
        paths.append([name for scored in side for name in scored.names])
    metrics = differences(sides[0], sides[1])
    # Every metric has a term for each example.
    any_metric = next(iter(sides[0][0].values()))
    compared = {
        "run": paths[0],
        "against": paths[1],
        "corpus": first.dataset.name,
        "split": split,
        "examples": len(any_metric.terms),
        "counts": counts,
        "metrics": metrics,
        **provenance(),
    }
    _print_differences(compared, first.task.example_unit)
    return compared


def _score(evaluation, split):
    names = [str(run.path) for run in evaluation.runs]
    return Scored(names, evaluation.task.measure(evaluation.scoring(split)))


def _score_outside(evaluation, source, split):
    """Scores a baseline, or a file of answers, on the dataset of an evaluation."""
    scoring = Scoring(
        model=None,
        dataset=evaluation.dataset,
        split=split,
        run=None,
        options=evaluation.options,
    )
    return Scored([source], evaluation.task.measure_outside(scoring, source))


def _print_differences(compared, unit):
    one = ", ".join(compared["run"])
    other = ", ".join(compared["against"])
    lines = []
    for name, row in compared["metrics"].items():
        interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
        scores = [f"{row['one']:.4f}", f"{row['other']:.4f}", f"{row['difference']:+.4f}"]
        lines.append([name, *scores, interval])
    print(f"\n{compared['corpus']}, {compared['split']}: {one} against {other}\n")
    print(markdown(["", "run", "against", "difference", "95 % interval"], lines))
    print(f"\npaired bootstrap over {compared['examples']:,} {unit}s")
