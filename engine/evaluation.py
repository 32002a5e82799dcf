"""What evaluate.py does: score splits with runs, measure, print, write."""

import glob
import json
import pathlib
import platform
import shlex
import subprocess
import sys
import time

import keras
from rich.console import Console
from rich.progress import track
from rich.table import Table

from base.files import UserError, atomic_file, check_output
from base.runtime import available_cpus, choose_precision
from engine.runs import Run, has_gpu, set_precision
from metrics.names import model_name
from metrics.published import published
from metrics.tables import REFERENCES, by_corpus


def evaluate(task, run_path, split="dev", data=None, precision="auto", measured_out=None, baselines=True, **options):
    """Evaluates a run on a split; writes `metrics.json` into the run and prints a table.

    Args:
        task: The `engine.task.Task` of the run's model.
        run_path: Run directory.
        split: One of the dataset's, as `train`, `dev` or `test`.
        data: Prepared dataset; default: the run's own.
        precision: Of computation; `"auto"`: that of the run's training where this machine computes it, else float32.
        measured_out: File for a `results/measured` record, or an existing directory: `RUN-SPLIT.json` in it.
        baselines: Compute the baselines too.
        **options: Of the task's `measure`, as `scores_out`.

    Returns:
        The record, as `measured_out` has it.

    Raises:
        UserError: where an input is at fault.
    """
    run = Run.open(run_path)
    if measured_out and pathlib.Path(measured_out).is_dir():
        measured_out = pathlib.Path(measured_out) / f"{run.path.resolve().name}-{split}.json"
    for out in filter(None, (measured_out, options.get("scores_out"))):
        check_output(out)
    for name in options:
        if name not in task.options:
            raise UserError(f"--{name} is not for {task.name}, which has {', '.join(task.options)}")
    dataset = task.dataset_of(run, data)
    if split not in dataset.splits:
        raise UserError(f"--split expects one of {', '.join(dataset.splits)}. Received: {split}")
    if not len(dataset.splits[split]):
        raise UserError(f"{dataset.path} has no examples in the split {split}")
    trained_in = run.config["fit"].get("precision")
    precision = choose_precision(precision, gains=trained_in == "bfloat16", gpu=has_gpu())
    set_precision(precision)
    model = run.load_model()
    task.check_fits(model.config, dataset)

    def progress(batches):
        return track(batches, "scoring", console=Console(stderr=True))

    started = time.perf_counter()
    record = task.measure(model, dataset, split, run, baselines, progress, **options)
    record |= {"precision": precision, "evaluation_seconds": round(time.perf_counter() - started, 1)}
    print_record(f"{_name_of(run)} ({run.path})", task, dataset, split, record)
    run.save_metrics(split, record)
    measured = _measured(run, task, dataset, split, record)
    if measured_out:
        with atomic_file(measured_out) as file:
            json.dump(measured, file, indent=1, ensure_ascii=False)
            file.write("\n")
    return measured


def evaluate_all(tasks, pattern, splits, measured_out=None, **options):
    """Evaluates one run or several, and prints several side by side: mean and deviation over their seeds.

    Args:
        tasks: `{name: engine.task.Task}`.
        pattern: A run directory, or a pattern of some, as `runs/babi/*`.
        splits: Names of splits; a dataset among several may lack some.
        measured_out: With one run and split a file, else a directory: `RUN-SPLIT.json` each.
        **options: Of `evaluate`.

    Raises:
        UserError: where an input is at fault.
    """
    runs = [path for path in sorted(glob.glob(pattern)) if (pathlib.Path(path) / "config.json").is_file()] or [pattern]
    if len(runs) * len(splits) == 1:
        run = Run.open(runs[0])
        evaluate(tasks[run.entry.task], run.path, splits[0], measured_out=measured_out, **options)
        return
    if options.get("scores_out"):
        raise UserError(f"--scores_out is for one run and one split. Received: {len(runs)} runs, {', '.join(splits)}")
    if measured_out:
        check_output(pathlib.Path(measured_out) / "RUN-SPLIT.json")  # makes the directory
    records = []
    for path in runs:
        run = Run.open(path)
        task = tasks[run.entry.task]
        examples = task.dataset_of(run, options.get("data")).splits
        for split in splits:
            if len(runs) > 1 and split in examples and not len(examples[split]):
                continue
            records.append(evaluate(task, path, split, measured_out=measured_out, **options))
    if not records:
        raise UserError(f"no dataset of {pattern} has examples in the splits {', '.join(splits)}")
    for kind in sorted({record["task"] for record in records}):
        header, rows = by_corpus([record for record in records if record["task"] == kind], tasks[kind].headline)
        table = Table(*header, title=f"{kind}: {', '.join(tasks[kind].headline)}; mean ± deviation over seeds")
        for row in rows:
            table.add_row(*row)
        Console(width=None if sys.stdout.isatty() else 200).print(table)


def print_record(label, task, dataset, split, record):
    """Prints a record as a table, beside its baselines and the published results for its corpus.

    Args:
        label: What the row of the record is called.
        task: The `engine.task.Task`.
        dataset: What was scored.
        split: Name of the split.
        record: As `measure` returned it.
    """
    title, caption = task.describe(record)
    table = Table(title=f"{dataset.name}, {split}: {title}", caption=caption)
    table.add_column("")
    names = list(record["metrics"])
    for name in names:
        table.add_column(name, justify="right")

    def row(title, metrics, style=None):
        cells = [f"{metrics[name]:.4f}" if name in metrics else "" for name in names]
        table.add_row(title, *cells, style=style)

    row(label, record["metrics"], "bold")
    for name, metrics in record.get("parts", {}).items():
        row(name, metrics)
    table.add_section()
    for kind, label in REFERENCES.items():
        for name, metrics in record.get(kind, {}).items():
            row(f"{label}: {name}", metrics)
    rows = [entry for entry in published(dataset.name) if entry["metrics"]]
    if rows:
        table.add_section()
        for entry in rows:
            where = f" ({entry['split']})" if entry.get("split", split) != split else ""
            row(f"published{where}: {entry['model']}", entry["metrics"], "dim")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _name_of(run):
    return model_name(run.config["model"], run.config["settings"], run.config["training"])


def _measured(run, task, dataset, split, record):
    """One record of results/measured: metrics, and what it takes to get them again."""
    history = run.history()
    return {
        "name": _name_of(run),
        "task": run.entry.task,
        "model": run.config["model"],
        "corpus": dataset.name,
        "split": split,
        "settings": {
            "model": run.config["settings"],
            "training": run.config["training"],
            "fit": run.config["fit"],
        },
        "command": run.config["command"],
        "evaluated_by": shlex.join(["python", *sys.argv]),
        "seed": run.config["fit"]["seed"],
        "hardware": hardware(),
        "seconds": history[-1]["seconds"] if history else None,
        "epochs": history[-1]["epoch"] if history else None,
        "commit": commit(),
        "versions": {**run.config["versions"], "keras_evaluated": keras.__version__},
        **record,
        "history": history,
    }


def hardware():
    """What this machine computes with: `2 cores, AMD EPYC ...`."""
    return f"{available_cpus()} cores, {_processor()}"


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def commit():
    """The commit of the working tree, or `None` outside of one."""
    try:
        git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    except OSError:  # no git
        return None
    return git.stdout.strip() or None
