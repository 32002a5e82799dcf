"""What evaluate.py does: score splits with runs, measure, print, write."""

import functools
import glob
import json
import pathlib
import sys
import time

from rich.console import Console
from rich.progress import track
from rich.table import Table

from base.files import UserError, atomic_file, check_output
from base.runtime import choose_precision
from engine.ensemble import ensemble
from engine.provenance import provenance
from engine.run import Run, has_gpu, set_precision
from engine.xla import choose_xla
from metrics.names import model_name
from metrics.published import published
from metrics.tables import REFERENCES, by_corpus


class Evaluation:
    """A run with its dataset and its model, each loaded once however many splits are scored.

    Args:
        task: The `engine.task.Task` of the run's model.
        run: A `engine.run.Run`.
        data: Prepared dataset; default: the run's own.
        precision: What the model computes in; `"auto"`: what it was trained in where this machine computes it, else
            float32.
        jit: As of `engine.xla.choose_xla`.
        datasets: `{path: dataset}` of what is loaded already; gets what is loaded here.
        others: More runs, of the same task and dataset: together an ensemble, see `engine.task.Task.average`.
    """

    def __init__(self, task, run, data=None, precision="auto", jit="auto", datasets=None, others=()):
        self.task, self.run, self.data, self.precision, self.jit = task, run, data, precision, jit
        self.runs = [run, *others]
        self._datasets = {} if datasets is None else datasets

    @functools.cached_property
    def dataset(self):
        """What is scored."""
        if self.data and pathlib.Path(self.data).is_file():  # each run reads it by its own words
            return self.task.dataset_of(self.run, self.data)
        key = str(pathlib.Path(self.data or self.run.dataset["path"] or "").resolve())
        if key not in self._datasets:
            self._datasets[key] = self.task.dataset_of(self.run, self.data)
        return self._datasets[key]

    @functools.cached_property
    def _model(self):
        """The model, and what lengths are rounded up to."""
        trained_in = self.run.training.precision
        self.precision = choose_precision(self.precision, gains=trained_in == "bfloat16", gpu=has_gpu())
        set_precision(self.precision)
        models = [run.load_model() for run in self.runs]
        for model in models:
            self.task.check_fits(model.config, self.dataset)
        model = ensemble(self.task, models) if len(models) > 1 else models[0]
        return model, choose_xla(model, self.jit)

    def score(self, split="dev", measured_out=None, baselines=True, **options):
        """Scores a split; writes `metrics.json` into the run and prints a table.

        Args:
            split: One of the dataset's, as `train`, `dev` or `test`.
            measured_out: File for a `results/measured` record, or an existing directory: `RUN-SPLIT.json` in it.
            baselines: Compute the baselines too.
            **options: Of the task's `measure`, as `scores_out`.

        Returns:
            The record, as `measured_out` has it.

        Raises:
            UserError: where an input is at fault.
        """
        task, run = self.task, self.run
        if measured_out and pathlib.Path(measured_out).is_dir():
            measured_out = pathlib.Path(measured_out) / f"{run.path.resolve().name}-{split}.json"
        for out in filter(None, (measured_out, options.get("scores_out"))):
            check_output(out)
        for name in options:
            if name not in task.options:
                raise UserError(f"--{name} is not for {task.name}, which has {', '.join(task.options)}")
        if split not in self.dataset.splits:
            raise UserError(f"--split expects one of {', '.join(self.dataset.splits)}. Received: {split}")
        if not len(self.dataset.splits[split]):
            raise UserError(f"{self.dataset.path} has no examples in the split {split}")
        model, length_multiple = self._model
        started = time.perf_counter()
        record = task.measure(model, self.dataset, split, run, baselines, _progress, length_multiple, **options)
        record |= {"precision": self.precision, "evaluation_seconds": round(time.perf_counter() - started, 1)}
        several = f"Ensemble of {len(self.runs)}: " * (len(self.runs) > 1)
        label = f"{several}{_name_of(run)} ({', '.join(str(each.path) for each in self.runs)})"
        print_record(label, task, self.dataset, split, record)
        measured = _measured(run, task, self.dataset, split, record)
        if several:
            trainings = [run.trainings()[-1], *(each for other in self.runs[1:] for each in other.trainings())]
            seeds, seconds = [each.training.seed for each in self.runs], [each["seconds"] for each in trainings]
            measured |= {"name": several + measured["name"], "seeds": seeds, "seconds": sum(filter(None, seconds))}
        else:
            run.save_metrics(split, record)
        if measured_out:
            with atomic_file(measured_out) as file:
                json.dump(measured, file, indent=1, ensure_ascii=False)
                file.write("\n")
        return measured

    def analyse(self, split, groupings):
        """Scores groups of a split's examples.

        Args:
            split: Name of a split.
            groupings: Some of the task's.

        Returns:
            As of `engine.task.Task.metrics_by`.

        Raises:
            UserError: where the task has no such grouping, or the split no examples.
        """
        for name in groupings:
            if name not in self.task.groupings:
                known = ", ".join(self.task.groupings) or "nothing"
                raise UserError(f"examples of {self.task.name} are grouped by {known}. Received: {name}")
        if split not in self.dataset.splits or not len(self.dataset.splits[split]):
            raise UserError(f"{self.dataset.path} has no examples in the split {split}")
        model, length_multiple = self._model
        return self.task.metrics_by(model, self.dataset, split, groupings, _progress, length_multiple)


def evaluate(task, run_path, split="dev", data=None, precision="auto", jit="auto", **options):
    """Scores one split with one run.

    Args:
        task, data, precision, jit: As of `Evaluation`.
        run_path: Run directory.
        split, **options: As of `Evaluation.score`.

    Returns:
        The record.

    Raises:
        UserError: where an input is at fault.
    """
    return Evaluation(task, Run.open(run_path), data, precision, jit).score(split, **options)


def evaluate_all(tasks, pattern, splits, measured_out=None, data=None, precision="auto", jit="auto", **options):
    """Scores splits with one run or several, and prints several side by side: mean and deviation over their seeds.

    Args:
        tasks: `{name: engine.task.Task}`.
        pattern: A run directory, or a pattern of some, as `runs/babi/*`; or several separated by commas, which are
            scored together, as an ensemble.
        splits: Names of splits; a dataset among several may lack some.
        measured_out: With one run and split a file, else a directory: `RUN-SPLIT.json` each.
        data, precision, jit: As of `Evaluation`.
        **options: Of `Evaluation.score`.

    Raises:
        UserError: where an input is at fault.
    """
    together = pattern.split(",")
    paths = [path for path in sorted(glob.glob(pattern)) if (pathlib.Path(path) / "config.json").is_file()] or [pattern]
    paths = paths if len(together) == 1 else together[:1]
    several = len(paths) * len(splits) > 1
    if several and options.get("scores_out"):
        raise UserError(f"--scores_out is for one run and one split. Received: {len(paths)} runs, {', '.join(splits)}")
    if several and measured_out:
        check_output(pathlib.Path(measured_out) / "RUN-SPLIT.json")  # makes the directory
    records, datasets = [], {}
    for path in paths:
        run, others = Run.open(path), [Run.open(other) for other in together[1:]]
        for other in others:
            if other.task != run.task:
                raise UserError(f"an ensemble has one task: {path} is of {run.task}, not {other.path}")
        evaluation = Evaluation(tasks[run.task], run, data, precision, jit, datasets, others)
        for split in splits:
            examples = evaluation.dataset.splits
            if len(paths) > 1 and split in examples and not len(examples[split]):
                continue
            records.append(evaluation.score(split, measured_out=measured_out, **options))
    if not records:
        raise UserError(f"no dataset of {pattern} has examples in the splits {', '.join(splits)}")
    if several:
        _print_side_by_side(records, tasks)


def _print_side_by_side(records, tasks):
    for kind in sorted({record["task"] for record in records}):
        header, rows = by_corpus([record for record in records if record["task"] == kind], tasks[kind].headline)
        table = Table(*header, title=f"{kind}: {', '.join(tasks[kind].headline)}; mean ± deviation over seeds")
        for row in rows:
            table.add_row(*row)
        _print(table, 200)


def _print(table, width):
    """Prints a table as it is: what a model or a corpus says is no markup."""
    Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False).print(table)


def _progress(batches):
    return track(batches, "scoring", console=Console(stderr=True))


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
    _print(table, 120)
    if shown := task.show(record):
        print(f"\n{shown}")


def _name_of(run):
    return model_name(run.model, run.record["config"], run.record["training"])


def _measured(run, task, dataset, split, record):
    """One record of results/measured: metrics, and what it takes to get them again.

    Command, hardware, commit and versions are those of the training; those of the evaluation are in `evaluated`.
    """
    stored = run.record
    *before, own = run.trainings()
    trained = {name: stored.get(name) for name in ("command", "hardware", "commit", "dirty", "versions")}
    return {
        "name": _name_of(run),
        "task": run.task,
        "model": run.model,
        **{"corpus": dataset.name, "split": split, "text": run.dataset.get("text", {})},
        "settings": {"model": stored["config"], "training": stored["training"]},
        "seed": run.training.seed,
        "seconds": own["seconds"],
        "epochs": own["epochs"],
        "before": before,
        **trained,
        "evaluated": provenance(),
        **record,
        "history": run.history(),
    }
