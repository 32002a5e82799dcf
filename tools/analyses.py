"""Plots how a model scores groups of examples, or how runs score that differ in a setting; see docs/articles.md.

python -m tools.analyses --run=runs/dam --by=turns,last_turn --out=build/analyses
python -m tools.analyses --run=runs/bidaf --by=question --out=build/analyses
python -m tools.analyses --run='runs/sweep/*' --by=levels --out=build/analyses

`--by` names groups of a split's examples (selection: turns, last_turn, words; reading comprehension: question) or a
setting of the runs' models or trainings, or is `model`, what tables call them: then what evaluate.py or tools.sweep
measured before is shown, the mean over the runs of a group. OUT gets BY.png and BY.json for each.
"""

import glob
import json
import pathlib
import statistics
import textwrap

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError, atomic_file
from metrics.names import model_name

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory, or a quoted pattern of several.", required=True)
flags.DEFINE_list("by", None, "Groups of examples, or a setting that the runs differ in.", required=True)
flags.DEFINE_string("split", "dev", "Split that is scored.")
flags.DEFINE_string("data", None, "Prepared dataset; default: the one that a run was trained on.")
flags.DEFINE_string("metric", None, "What is plotted; default: the first of the task's.")
flags.DEFINE_string("out", "build/analyses", "Directory of plots and numbers.")


def main():
    paths = [path for path in sorted(glob.glob(FLAGS.run)) if (pathlib.Path(path) / "config.json").is_file()]
    if not paths:
        raise UserError(f"{FLAGS.run} is no run directory, nor a pattern of some")
    from engine.evaluate import Evaluation  # TensorFlow takes seconds to load
    from engine.provenance import provenance
    from engine.run import Run
    from tasks import TASKS

    runs = [Run.open(path) for path in paths]
    task = TASKS[runs[0].task]
    if any(run.task != task.name for run in runs):
        raise UserError(f"{FLAGS.run}: expected runs of one task, {task.name} as {paths[0]}")
    groupings = [name for name in FLAGS.by if name in task.groupings]
    if groupings and len(runs) > 1:
        raise UserError(f"--by={groupings[0]} groups the examples of one run. Received: {len(runs)} runs")
    analyses = Evaluation(task, runs[:1], FLAGS.data).analyse(FLAGS.split, groupings) if groupings else {}
    analyses |= {name: by_setting(runs, name, FLAGS.split) for name in FLAGS.by if name not in groupings}
    for name, groups in analyses.items():
        known = list(groups[0]["metrics"])
        metric = FLAGS.metric or next(each for each in (*task.headline, *known) if each in known)
        if metric not in known:
            raise UserError(f"--metric expects one of {', '.join(known)}. Received: {metric}")
        out = pathlib.Path(FLAGS.out)
        with atomic_file(out / f"{name}.json") as file:
            found = {"by": name, "split": FLAGS.split, "runs": paths, **provenance(), "groups": groups}
            json.dump(found, file, indent=1, ensure_ascii=False)
        draw(name, groups, metric, out / f"{name}.png")
        show(name, groups)
        print(f"{out / name}.png")


def by_setting(runs, field, split):
    """The metrics of runs by the value of a setting, the mean over those that share it, as over seeds.

    Args:
        runs: List of `engine.run.Run`.
        field: Of the models' configs or of the tasks' trainings; `model`: the whole model by its name in tables.
        split: What evaluate.py has measured.

    Returns:
        As of `engine.task.Task.metrics_by`, groups with their `deviations`; `examples` counts runs.

    Raises:
        UserError: where a run has no such setting, or was not measured.
    """
    values = {}
    for run in runs:
        parts = run.record["config"], run.record["training"]
        settings = {**parts[0], **parts[1], "model": model_name(run.model, *parts)}
        if field not in settings:
            raise UserError(f"{run.path} has no setting {field}, nor are its examples grouped by it")
        file = run.path / "metrics.json"
        measured = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if split not in measured:
            raise UserError(f"{run.path} has no metrics of {split}: evaluate.py --run={run.path} --split={split} first")
        values.setdefault(settings[field], []).append(measured[split]["metrics"])
    ordered = sorted(
        values, key=lambda value: (isinstance(value, str), str(value) if isinstance(value, str) else value)
    )
    return [
        {
            "group": str(value),
            "examples": len(values[value]),
            "metrics": {name: statistics.mean(each[name] for each in values[value]) for name in values[value][0]},
            "deviations": {name: _deviation([each[name] for each in values[value]]) for name in values[value][0]},
        }
        for value in ordered
    ]


def _deviation(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def draw(name, groups, metric, path):
    """Writes a bar chart of one metric, a bar per group, with how many examples or runs it stands for."""
    from matplotlib.figure import Figure  # takes a second

    figure = Figure(figsize=(1.5 + 0.6 * len(groups), 3), layout="constrained")
    axes = figure.add_subplot()
    heights = [each["metrics"][metric] for each in groups]
    errors = [each["deviations"][metric] for each in groups] if "deviations" in groups[0] else None
    axes.bar(range(len(groups)), heights, yerr=errors, color="tab:blue", capsize=3)
    labels = [f"{textwrap.fill(each['group'], 12)}\nn = {each['examples']:,}" for each in groups]
    axes.set_xticks(range(len(groups)), labels, fontsize=7)
    axes.set_xlabel(name.replace("_", " "))
    axes.set_ylabel(metric)
    with atomic_file(path, "wb") as file:
        figure.savefig(file, format="png", dpi=120)


def show(name, groups):
    """Prints all metrics of all groups."""
    table = Table(name, "n", *groups[0]["metrics"])
    for each in groups:
        table.add_row(each["group"], f"{each['examples']:,}", *(f"{value:.4f}" for value in each["metrics"].values()))
    Console(markup=False, highlight=False).print(table)


if __name__ == "__main__":
    cli.run(main)
