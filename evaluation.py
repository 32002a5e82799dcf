"""What evaluate.py does: score a split, measure, print, write."""

import json
import os
import platform
import shlex
import subprocess
import sys
import time

import keras
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from cli import UserError, atomic_file
from metrics.published import published
from metrics.ranking import ranking_metrics
from runs import Run, set_precision
from tasks import TASKS


def evaluate(
    run_path,
    split="dev",
    data=None,
    ties="loss",
    precision="float32",
    scores_out=None,
    measured_out=None,
    floors=True,
    partial_batches="keep",
):
    """Evaluates a run on a split; writes `metrics.json` into the run and prints a table.

    Args:
        run_path: Run directory.
        split: `train`, `dev` or `test`.
        data: Prepared dataset; default: the run's own.
        ties: See `metrics.ranking.ranking_metrics`.
        precision: Of computation.
        scores_out: File for the scores, one a line, `score TAB label`, as DAM's release has them.
        measured_out: File for a `results/measured` record.
        floors: Compute the floors too.
        partial_batches: `"keep"` measures every line. `"drop"` leaves out what DAM's release leaves out: the lines
            behind the last whole batch of the run's batch size, and then the context that this cuts short (49,996 of
            Ubuntu's 50,000 contexts and 665 of Douban's 667 remain at 256).

    Returns:
        What was written into `metrics.json` for the split.

    Raises:
        UserError: where an input is at fault.
    """
    run = Run.open(run_path)
    task = TASKS[run.entry.task]
    dataset = task.dataset_of(run, data)
    examples = dataset.splits[split]
    if not len(examples.label):
        raise UserError(f"{dataset.path} has no lines in the split {split}")
    set_precision(precision)
    model = run.load_model()
    task.check_fits(model.config, dataset)

    started = time.perf_counter()
    scores = task.score(
        model,
        examples,
        model.config,
        progress=lambda batches: track(batches, "scoring", console=Console(stderr=True)),
    )
    seconds = time.perf_counter() - started

    kept = len(scores)
    if partial_batches == "drop":
        kept = whole_batches(examples.context, run.config["fit"]["batch_size"])

    def figures(values):
        try:
            return ranking_metrics(values[:kept], examples.label[:kept], examples.context[:kept], ties=ties)
        except ValueError as error:
            raise UserError(f"{dataset.path}, {split}: {error}") from error

    result = figures(scores)
    floor_figures = {}
    if floors:
        for name, values in task.floor_scores(dataset, split).items():
            floor_figures[name] = figures(values).metrics
    record = {
        "metrics": result.metrics,
        "counts": {**result.counts, "lines": kept},
        "ties": ties,
        "partial_batches": partial_batches,
        "precision": precision,
        "floors": floor_figures,
        "seconds": round(seconds, 1),
        "lines_per_second": round(len(scores) / seconds, 1),
    }
    _print(run, dataset, split, record)
    run.save_metrics(split, record)
    if scores_out:
        with atomic_file(scores_out) as file:
            pairs = zip(scores[:kept], examples.label[:kept], strict=True)
            file.writelines(f"{score}\t{label}\n" for score, label in pairs)
    if measured_out:
        with atomic_file(measured_out) as file:
            json.dump(_measured(run, dataset, split, record), file, indent=1)
            file.write("\n")
    return record


def whole_batches(context, batch_size):
    """How many lines DAM's release would measure: whole batches, and of these whole contexts.

    Args:
        context: The context of each line, int `(lines,)`.
        batch_size: Lines a batch.

    >>> [whole_batches(np.arange(contexts * 10) // 10, 256) for contexts in (50000, 667)]
    [499960, 6650]
    """
    kept = len(context) // batch_size * batch_size
    cut_short = 0 < kept < len(context) and context[kept - 1] == context[kept]
    return int(np.searchsorted(context, context[kept])) if cut_short else kept


def _print(run, dataset, split, record):
    counts = record["counts"]
    left_out = counts["without_positive"] + counts["without_negative"]
    table = Table(
        title=f"{dataset.name}, {split}: {counts['contexts']:,} contexts, {counts['lines']:,} lines",
        caption=f"ties: {record['ties']}; contexts left out: {counts['without_positive']} without "
        f"a positive, {counts['without_negative']} without a negative"
        if left_out
        else f"ties: {record['ties']}",
    )
    table.add_column("")
    names = list(record["metrics"])
    for name in names:
        table.add_column(name, justify="right")

    def row(title, metrics, style=None):
        cells = [f"{metrics[name]:.4f}" if name in metrics else "" for name in names]
        table.add_row(title, *cells, style=style)

    row(f"{run.config['model']} ({run.path})", record["metrics"], "bold")
    table.add_section()
    for name, metrics in record["floors"].items():
        row(f"floor: {name}", metrics)
    rows = published(dataset.name)
    if rows:
        table.add_section()
        for entry in rows:
            row(f"published: {entry['model']}", entry["metrics"], "dim")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _measured(run, dataset, split, record):
    """One record of results/measured: figures, and what it takes to get them again."""
    history = run.history()
    return {
        "name": _name(run),
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
        "hardware": f"{os.cpu_count()} cores, {_processor()}",
        "seconds": history[-1]["seconds"] if history else None,
        "epochs": history[-1]["epoch"] if history else None,
        "commit": _commit(),
        "versions": {**run.config["versions"], "keras_evaluated": keras.__version__},
        "metrics": record["metrics"],
        "counts": record["counts"],
        "ties": record["ties"],
        "floors": record["floors"],
        "history": history,
    }


def _name(run):
    """What a table calls the model: `DAM full`, `DAM full, release mode`."""
    settings = run.config["settings"]
    mode = ", release mode" if settings.get("masking") == "release" else ""
    return f"{run.config['model'].upper()} {settings.get('variant', '')}".strip() + mode


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def _commit():
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return git.stdout.strip() or None
