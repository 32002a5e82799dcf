"""A trained model or an ensemble on a dataset, and how it is opened and scored."""

import functools
import glob
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
from rich.console import Console
from rich.progress import track

from colloquy.base.config import Config, make_config
from colloquy.base.files import (
    PathLike,
    UserError,
    atomic_file,
    check_output,
    refuse_existing,
)
from colloquy.data.prepared import Dataset
from colloquy.engine.devices import choose_precision, choose_xla, set_precision
from colloquy.engine.ensembles import ensemble
from colloquy.engine.provenance import revision
from colloquy.engine.run import BEST, CONFIG, Run
from colloquy.engine.score_rows import describe_origin, name_recipes
from colloquy.engine.scoring import Scoring
from colloquy.engine.settings import check_fits
from colloquy.engine.task import Task


class LoadedModel(NamedTuple):
    """The model of an `Evaluation`."""

    model: keras.Model
    precision: str
    """What it computes in: `float32`, `bfloat16` or `float16`."""
    length_multiple: int
    """See `engine.task.Task.collate`."""


class Evaluation:
    """A model on a dataset; it is loaded once however many splits are scored.

    Args:
        task: The task of the runs.
        runs: The run of the model. Several runs are an ensemble, see `engine.task.Task.average`.
        dataset: The dataset to score.
        options: The task's `Options`; `None`: their defaults.
        precision: `auto` is bfloat16 if the training was, on a GPU or a CPU with AMX; else
            float32.
    """

    def __init__(
        self,
        task: Task,
        runs: list[Run],
        dataset: Dataset,
        options: Config | None = None,
        precision: str = "auto",
    ) -> None:
        self.task = task
        self.runs = runs
        self.dataset = dataset
        self.options = options or task.Options()
        self.precision = precision

    @functools.cached_property
    def _loaded(self) -> LoadedModel:
        first = self.runs[0]
        for run in self.runs:
            check_fits(self.task, run, self.dataset)
            if run.config != first.config:
                raise UserError(
                    "models of an ensemble have the same settings. "
                    f"Received: {first.path}, {run.path}"
                )
        was_trained_in_bfloat16 = first.training.precision == "bfloat16"
        precision = choose_precision(self.precision, gains=was_trained_in_bfloat16)
        set_precision(precision)
        models = [run.load_model() for run in self.runs]
        model = ensemble(self.task, models) if len(models) > 1 else models[0]
        return LoadedModel(model, precision, length_multiple=choose_xla(model, "auto"))

    def scoring(self, split: str, baselines: bool = False) -> Scoring:
        """The input of `Task.measure` and `metrics_by_group` for a split."""
        if split not in self.dataset.splits:
            known = ", ".join(self.dataset.splits)
            raise UserError(f"split: expected one of {known}. Received: {split}")
        if not len(self.dataset.splits[split]):
            raise UserError(f"{self.dataset.path} has no examples in the split {split}")
        return Scoring(
            model=self._loaded.model,
            dataset=self.dataset,
            split=split,
            run=self.runs[0],
            options=self.options,
            baselines=baselines,
            progress=_progress,
            length_multiple=self._loaded.length_multiple,
        )

    def score(
        self, split: str = "dev", baselines: bool = True, out: PathLike | None = None
    ) -> dict:
        """Scores a split, and writes `metrics.json` into a single run.

        Args:
            baselines: Scores baselines, too.
            out: A new file for the model's answers.

        Returns:
            The record of `measure`, and the fields of `score_rows.ROW`.
        """
        if out:
            check_output(out)
            refuse_existing(out)
        # The first call asks git, and its result is kept: scoring takes long, and somebody may
        # edit the code meanwhile.
        revision()
        measured = self.task.measure(self.scoring(split, baselines))
        if out:
            with atomic_file(out) as file:
                file.writelines(f"{line}\n" for line in measured.answers)

        scores = {**measured.record, "precision": self._loaded.precision}
        record = {**describe_origin(self.runs, self.dataset, split), **scores}
        is_own_corpus = "trained_on" not in record
        if len(self.runs) == 1 and is_own_corpus:
            try:
                self.runs[0].save_metrics(split, scores)
            except UserError as error:  # somebody else's run
                print(f"note: {error}: its metrics.json stays as it was", file=sys.stderr)
        return record

    def label(self) -> str:
        """The recipes and the paths of the runs."""
        paths = ", ".join(str(run.path) for run in self.runs)
        label = f"{name_recipes(self.runs)} ({paths})"
        if len(self.runs) == 1:
            return label + _unfinished(self.runs[0])
        return f"ensemble of {len(self.runs)}: {label}"


def _progress(batches):
    return track(batches, "scoring", console=Console(stderr=True))


def _unfinished(run):
    """The epochs that a run has, if its training was interrupted or still runs; else empty."""
    rows = run.history()
    if not rows or run.saved_state() is None or run.finished():
        return ""
    return f", {rows[-1]['epoch']:g} of {run.training.epochs:g} epochs"


# === Opening ===


def open_evaluations(
    tasks: Mapping[str, Task],
    patterns: Any,
    data: PathLike | None = None,
    settings: Mapping[str, object] | None = None,
    precision: str = "auto",
    datasets: dict | None = None,
) -> list[Evaluation]:
    """Opens runs with their datasets; a dataset of several runs is loaded once.

    Args:
        tasks: `tasks.TASKS`.
        patterns: A pattern as `_find_runs` takes it, or a list of them.
        data: Path of the dataset; `None`: that of each run.
        settings: `{field: value}` of the tasks' `Options`.
        precision: See `Evaluation`.
        datasets: `{(task, path): dataset}` that are loaded already; those loaded here are added.
    """
    if datasets is None:
        datasets = {}
    if not isinstance(patterns, list):
        patterns = [patterns]
    evaluations = []
    for pattern in patterns:
        for paths in _find_runs(pattern):
            runs = _open_ensemble(paths)
            task = tasks[runs[0].task]
            options = make_config(task.Options, settings or {})
            dataset = _open_dataset(task, runs[0], data, datasets)
            evaluations.append(Evaluation(task, runs, dataset, options, precision))
    return evaluations


def _find_runs(pattern):
    """Finds the runs that a pattern names; each inner list is one run or one ensemble.

    runs/a           ->  [[runs/a]]            a directory
    bidaf-squad      ->  [[bidaf-squad]]       a published run
    runs/a,runs/b    ->  [[runs/a, runs/b]]    an ensemble
    runs/*           ->  [[runs/a], [runs/b]]  several directories, those with weights
    a `Run`          ->  [[the `Run`]]
    """
    if isinstance(pattern, os.PathLike):
        pattern = str(pattern)
    if not isinstance(pattern, str):
        return [[pattern]]
    # The name of a directory may have commas and brackets, so this case comes first.
    if os.path.isfile(os.path.join(pattern, CONFIG)):
        return [[pattern]]
    if "," in pattern:
        return [pattern.split(",")]
    trained = []
    untrained = []
    for path in sorted(glob.glob(pattern)):
        if not os.path.isfile(os.path.join(path, CONFIG)):
            continue
        if os.path.isfile(os.path.join(path, BEST)):
            trained.append(path)
        else:
            untrained.append(path)
    if not (trained or untrained):
        return [[pattern]]
    if not trained:
        raise UserError(f"{pattern}: no run of it has weights yet")
    for path in untrained:
        print(f"note: {path} is left out: it has no weights yet", file=sys.stderr)
    return [[path] for path in trained]


def _open_ensemble(paths):
    runs = [Run.open(path) for path in paths]
    first = runs[0]
    for run in runs:
        if run.task != first.task:
            raise UserError(
                f"an ensemble has one task: {first.path} is of {first.task}, not {run.path}"
            )
    return runs


def _open_dataset(task, run, data, datasets):
    """Opens the dataset of a run, or the one at `data`; `datasets` has those opened before."""
    path = pathlib.Path(data or run.dataset["path"] or "").resolve()
    # Each run reads a file, such as one of references, by its own vocabulary.
    if path.is_file():
        return task.dataset_of(run, data)
    key = (task.name, path)
    if key not in datasets:
        datasets[key] = task.dataset_of(run, data)
    return datasets[key]
