"""Plots the scores of groups of examples, or of runs that differ in a setting.

    python -m colloquy.tools.analyses --run=runs/dam --by=turns,last_turn --out=build/analyses
    python -m colloquy.tools.analyses --run=runs/bidaf --by=question --out=build/analyses
    python -m colloquy.tools.analyses --run='runs/sweep/*' --by=levels --out=build/analyses

`--by` names breakdowns of a split's examples (selection: turns, last_turn, words; reading
comprehension: question, confidence, added), or settings of the runs' models or trainings, or
`recipe`: the metrics that evaluate.py or tools.sweep measured are then averaged over the runs of a
group. OUT gets BY.png and BY.json for each. Plots of the articles: docs/articles.md.
"""

import glob
import pathlib
import statistics
import textwrap

import numpy as np
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError, atomic_file
from colloquy.data.text_files import write_json
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory, or a quoted pattern of several.", required=True)
flags.DEFINE_list(
    "by", None, "Breakdowns of examples, or settings in which the runs differ.", required=True
)
flags.DEFINE_string("split", "dev", "Split that is scored.")
flags.DEFINE_string("data", None, "Prepared dataset; default: the one that a run was trained on.")
flags.DEFINE_string("out", "build/analyses", "Directory of plots and numbers.")


def main():
    paths = []
    for path in sorted(glob.glob(FLAGS.run)):
        if (pathlib.Path(path) / "config.json").is_file():
            paths.append(path)
    if not paths:
        raise UserError(
            f"--run expects a run directory or a pattern of several. Received: {FLAGS.run}"
        )
    runtime.import_keras()

    from colloquy.engine.provenance import provenance
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    runs = [Run.open(path) for path in paths]
    task = TASKS[runs[0].task]
    if any(run.task != task.name for run in runs):
        raise UserError(f"--run expects runs of one task, {task.name} as {paths[0]}")
    for name, groups in analyse(task, runs).items():
        metrics = list(groups[0]["metrics"])
        label = "group" if name in metrics else name
        rows = []
        for group in groups:
            rows.append({label: group["group"], "n": group["examples"], **group["metrics"]})

        path = pathlib.Path(FLAGS.out) / f"{name}.json"
        origin = {"by": name, "split": FLAGS.split, "runs": paths, **provenance()}
        write_json(path, {**origin, "rows": rows})
        plot = path.with_suffix(".png")
        known = [metric for metric in task.summary_metrics if metric in metrics]
        draw(rows, (known or metrics)[0], plot)
        print(f"{make_table(rows, metrics)}\n{plot}")


def analyse(task, runs):
    """Returns `{name: groups}` for the names of `--by`, breakdowns of examples first.

    Groups are those of `engine.task.Task.metrics_by_group`.
    """
    from colloquy.engine.evaluate import Evaluation

    breakdowns = [name for name in FLAGS.by if name in task.breakdowns]
    settings = [name for name in FLAGS.by if name not in task.breakdowns]
    if breakdowns and len(runs) > 1:
        raise UserError(
            f"--by={breakdowns[0]} groups the examples of one run. Received: {len(runs)} runs"
        )
    analyses = {}
    if breakdowns:
        evaluation = Evaluation(task, runs, FLAGS.data)
        analyses.update(evaluation.analyse(FLAGS.split, breakdowns))
    for name in settings:
        analyses[name] = group_by_setting(runs, name, FLAGS.split)
    return analyses


def group_by_setting(runs, field, split):
    """Groups runs by the value of a setting, or by their recipe.

    Returns:
        Groups as of `engine.task.Task.metrics_by_group`; metrics are `[mean, standard deviation]`,
        and `examples` counts runs.
    """
    metrics_by_value = {}
    for run in runs:
        record = run.record
        settings = {**record["config"], **record["training"], "recipe": record["recipe"]}
        if field not in settings:
            raise UserError(
                f"{run.path} has no setting {field}, nor are its examples grouped by it"
            )
        metrics_by_split = run.metrics()
        if split not in metrics_by_split:
            raise UserError(
                f"{run.path} has no metrics of {split}: "
                f"evaluate.py --run={run.path} --split={split} first"
            )
        metrics = metrics_by_split[split]["metrics"]
        metrics_by_value.setdefault(settings[field], []).append(metrics)

    # Numbers come before texts.
    values = sorted(metrics_by_value, key=lambda value: (isinstance(value, str), value))
    groups = []
    for value in values:
        metrics_of_runs = metrics_by_value[value]
        spread = {}
        for name in metrics_of_runs[0]:
            scores = [metrics[name] for metrics in metrics_of_runs]
            deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
            spread[name] = [statistics.mean(scores), deviation]
        groups.append({"group": str(value), "examples": len(metrics_of_runs), "metrics": spread})
    return groups


def make_table(rows, metrics):
    """Returns a table of the rows; metrics with a deviation show their mean."""
    label = next(iter(rows[0]))
    lines = []
    for row in rows:
        scores = [f"{np.ravel(row[metric])[0]:.4f}" for metric in metrics]
        lines.append([row[label], f"{row['n']:,}", *scores])
    return markdown([label, "n", *metrics], lines)


def draw(rows, metric, path):
    """Writes a bar chart of one metric: a bar per group, labelled with its size."""
    from matplotlib.figure import Figure  # takes a second

    figure = Figure(figsize=(1.5 + 0.6 * len(rows), 3), layout="constrained")
    axes = figure.add_subplot()
    label = next(iter(rows[0]))
    positions = range(len(rows))
    # A score, or its mean and deviation.
    scores = np.array([row[metric] for row in rows]).reshape(len(rows), -1)
    errors = scores[:, 1] if scores.shape[1] > 1 else None
    axes.bar(positions, scores[:, 0], yerr=errors, color="tab:blue", capsize=3)
    if "confidence" in rows[0]:
        # A reliability diagram: the bars should reach the points.
        axes.plot(positions, [row["confidence"] for row in rows], "ko", label="confidence")
        axes.legend()
    names = [f"{textwrap.fill(row[label], 12)}\nn = {row['n']:,}" for row in rows]
    axes.set_xticks(positions, names, fontsize=7)
    axes.set_xlabel(label.replace("_", " "))
    axes.set_ylabel(metric)
    with atomic_file(path, "wb") as file:
        figure.savefig(file, format="png", dpi=120)


if __name__ == "__main__":
    cli.run(main)
