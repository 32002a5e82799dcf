"""Plots the scores of groups of examples, or of runs that differ in a setting; see
docs/articles.md.

python -m colloquy.tools.analyses --run=runs/dam --by=turns,last_turn --out=build/analyses
python -m colloquy.tools.analyses --run=runs/bidaf --by=question --out=build/analyses
python -m colloquy.tools.analyses --run='runs/sweep/*' --by=levels --out=build/analyses

`--by` names breakdowns of a split's examples (selection: turns, last_turn, words; reading
comprehension: question, confidence), or settings of the runs' models or trainings, or `recipe`: the
metrics that evaluate.py or tools.sweep measured are then averaged over the runs of a group. OUT
gets BY.png and BY.json for each.
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
    "by", None, "Groupings of examples, or settings in which the runs differ.", required=True
)
flags.DEFINE_string("split", "dev", "Split that is scored.")
flags.DEFINE_string("data", None, "Prepared dataset; default: the one that a run was trained on.")
flags.DEFINE_string("out", "build/analyses", "Directory of plots and numbers.")


def main():
    paths = [
        path
        for path in sorted(glob.glob(FLAGS.run))
        if (pathlib.Path(path) / "config.json").is_file()
    ]
    if not paths:
        raise UserError(
            f"--run expects a run directory or a pattern of several. Received: {FLAGS.run}"
        )
    runtime.import_keras()

    from colloquy.engine.evaluate import Evaluation
    from colloquy.engine.provenance import provenance
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    runs = [Run.open(path) for path in paths]
    task = TASKS[runs[0].task]
    if any(run.task != task.name for run in runs):
        raise UserError(f"--run expects runs of one task, {task.name} as {paths[0]}")
    breakdowns = [name for name in FLAGS.by if name in task.breakdowns]
    if breakdowns and len(runs) > 1:
        raise UserError(
            f"--by={breakdowns[0]} groups the examples of one run. Received: {len(runs)} runs"
        )
    analyses = (
        Evaluation(task, runs[:1], FLAGS.data).analyse(FLAGS.split, breakdowns)
        if breakdowns
        else {}
    )
    analyses |= {
        name: by_setting(runs, name, FLAGS.split) for name in FLAGS.by if name not in breakdowns
    }
    for name, groups in analyses.items():
        known = list(groups[0]["metrics"])
        metric = next(each for each in (*task.summary_metrics, *known) if each in known)
        label = "group" if name in known else name
        rows = [{label: each["group"], "n": each["examples"], **each["metrics"]} for each in groups]
        path = pathlib.Path(FLAGS.out) / f"{name}.json"
        write_json(
            path, {"by": name, "split": FLAGS.split, "runs": paths, **provenance(), "rows": rows}
        )
        draw(rows, metric, path.with_suffix(".png"))
        lines = [
            [row[label], f"{row['n']:,}", *(f"{np.ravel(row[each])[0]:.4f}" for each in known)]
            for row in rows
        ]
        print(f"{markdown(list(rows[0]), lines)}\n{path.with_suffix('.png')}")


def by_setting(runs, field, split):
    """Groups of runs by the value of a setting or by their recipe, as `engine.task.Task.metrics_by_group`
    returns groups.

    Metrics are `[mean, standard deviation]`, and `examples` counts runs.
    """
    measured = {}
    for run in runs:
        settings = {
            **run.record["config"],
            **run.record["training"],
            "recipe": run.record["recipe"],
        }
        if field not in settings:
            raise UserError(
                f"{run.path} has no setting {field}, nor are its examples grouped by it"
            )
        found = run.metrics()
        if split not in found:
            raise UserError(
                f"{run.path} has no metrics of {split}: evaluate.py --run={run.path} --split={split} first"
            )
        measured.setdefault(settings[field], []).append(found[split]["metrics"])
    groups = []
    for value in sorted(measured, key=lambda value: (isinstance(value, str), value)):
        metrics = {}
        for name in measured[value][0]:
            scores = [found[name] for found in measured[value]]
            metrics[name] = [
                statistics.mean(scores),
                statistics.stdev(scores) if len(scores) > 1 else 0.0,
            ]
        groups.append({"group": str(value), "examples": len(measured[value]), "metrics": metrics})
    return groups


def draw(rows, metric, path):
    """Writes a bar chart of one metric, a bar per group, labelled with its number of examples or
    runs.
    """
    from matplotlib.figure import Figure  # takes a second

    figure = Figure(figsize=(1.5 + 0.6 * len(rows), 3), layout="constrained")
    axes = figure.add_subplot()
    label = next(iter(rows[0]))
    # a score, or its mean and deviation
    values = np.array([row[metric] for row in rows]).reshape(len(rows), -1)
    errors = values[:, 1] if values.shape[1] > 1 else None
    axes.bar(range(len(rows)), values[:, 0], yerr=errors, color="tab:blue", capsize=3)
    if "confidence" in rows[0]:  # a reliability diagram: the bars should reach the points
        axes.plot(range(len(rows)), [row["confidence"] for row in rows], "ko", label="confidence")
        axes.legend()
    names = [f"{textwrap.fill(row[label], 12)}\nn = {row['n']:,}" for row in rows]
    axes.set_xticks(range(len(rows)), names, fontsize=7)
    axes.set_xlabel(label.replace("_", " "))
    axes.set_ylabel(metric)
    with atomic_file(path, "wb") as file:
        figure.savefig(file, format="png", dpi=120)


if __name__ == "__main__":
    cli.run(main)
