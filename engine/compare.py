"""Comparison of two models on the same examples: paired differences with intervals."""

from rich.table import Column, Table

from colloquy.base.files import UserError
from colloquy.engine.evaluate import Evaluation, open_all, print_table
from colloquy.engine.provenance import provenance
from colloquy.metrics.bootstrap import differences


def compare(
    tasks, patterns, against, split="dev", data=None, precision="auto", jit="auto", **options
):
    """Compares two models on the same examples of a split, and prints a table.

    Args:
        tasks: `tasks.TASKS`.
        patterns: As `evaluate_all` takes them: a model. Several runs are its seeds.
        against: The same of the other model.
        split: The split.
        data, precision, jit: See `Evaluation`.
        options: Options of the task's `measure`.

    Returns:
        A dict ready for JSON: the paths, the number of examples, `metrics` of
        `metrics.bootstrap.differences`, and provenance.
    """
    datasets = {}
    sides = []
    for side in (patterns, against):
        runs_of_side = open_all(side)
        models = []
        for runs in runs_of_side:
            evaluation = Evaluation(tasks[runs[0].task], runs, data, precision, jit, datasets)
            models.append((evaluation, *evaluation.metrics_by_example(split, **options)))
        sides.append(models)

    first, _, first_counts = sides[0][0]
    for evaluation, _, counts in [*sides[0], *sides[1]]:
        if evaluation.task is not first.task or counts != first_counts:
            raise UserError(
                f"expected runs with the same examples of {split}. Received: {first.runs[0].path}, "
                f"{evaluation.runs[0].path}; --data=DIR scores both on one dataset"
            )
    ones, others = [[metrics for _, metrics, _ in models] for models in sides]
    metrics = differences(ones, others)
    paths = []
    for models in sides:
        paths.append([str(run.path) for evaluation, _, _ in models for run in evaluation.runs])
    examples = len(next(iter(ones[0].values())).terms)
    _print_differences(first, split, paths, metrics, examples)
    return {
        "run": paths[0],
        "against": paths[1],
        "corpus": first.dataset.name,
        "split": split,
        "examples": examples,
        "counts": first_counts,
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
