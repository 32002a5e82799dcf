"""Scores of models and ensembles on splits of datasets, as tables and rows."""

import functools
import glob
import os
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import keras
from rich.console import Console
from rich.progress import track

from colloquy.base.config import make_config
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
from colloquy.engine.examples import check_vocabulary, show_examples
from colloquy.engine.provenance import revision
from colloquy.engine.run import CONFIG, Run
from colloquy.engine.score_rows import append_scores, describe_origin, name_recipes
from colloquy.engine.score_tables import print_records, print_summary
from colloquy.engine.scoring import Scoring
from colloquy.engine.settings import check_fits
from colloquy.engine.task import ScoringOptions, Task
from colloquy.metrics.published import scores as read_scores


class Evaluation:
    """A model on a dataset; it is loaded once however many splits are scored.

    Args:
        task: The task of the runs.
        runs: Several are an ensemble, see `engine.task.Task.average`.
        dataset: The dataset to score.
        options: The task's `Options`; `None`: their defaults.
        precision: `auto` is bfloat16 if the training was and this machine computes it; else
            float32.
    """

    def __init__(
        self,
        task: Task,
        runs: list[Run],
        dataset: Dataset,
        options: ScoringOptions | None = None,
        precision: str = "auto",
    ) -> None:
        self.task = task
        self.runs = runs
        self.dataset = dataset
        self.options = options or task.Options()
        self.precision = precision

    @functools.cached_property
    def _model(self) -> tuple[keras.Model, int]:
        """The model, and the multiple that lengths are rounded up to."""
        first = self.runs[0]
        gains = first.training.precision == "bfloat16"
        self.precision = choose_precision(self.precision, gains=gains)
        set_precision(self.precision)
        for run in self.runs:
            check_fits(self.task, run, self.dataset)
            if run.config != first.config:
                raise UserError(
                    "models of an ensemble have the same settings. "
                    f"Received: {first.path}, {run.path}"
                )
        models = [run.load_model() for run in self.runs]
        model = ensemble(self.task, models) if len(models) > 1 else models[0]
        return model, choose_xla(model, "auto")

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
        revision()  # asks for the commit now: scoring takes long, and the code may change meanwhile
        scoring = self.scoring(split, baselines)
        measured = self.task.measure(scoring)
        if out:
            with atomic_file(out) as file:
                file.writelines(f"{line}\n" for line in measured.answers)
        result = {**measured.record, "precision": self.precision}
        record = {**describe_origin(self.runs, self.dataset, split), **result}
        # The run keeps only scores on its own corpus.
        if len(self.runs) == 1 and "trained_on" not in record:
            try:
                self.runs[0].save_metrics(split, result)
            except UserError as error:  # somebody else's run
                print(f"note: {error}: its metrics.json stays as it was", file=sys.stderr)
        return record

    def scoring(self, split: str, baselines: bool = False) -> Scoring:
        """The input of `Task.measure` and `metrics_by_group` for a split."""
        if split not in self.dataset.splits:
            known = ", ".join(self.dataset.splits)
            raise UserError(f"split: expected one of {known}. Received: {split}")
        if not len(self.dataset.splits[split]):
            raise UserError(f"{self.dataset.path} has no examples in the split {split}")
        model, length_multiple = self._model
        return Scoring(
            model=model,
            dataset=self.dataset,
            split=split,
            run=self.runs[0],
            options=self.options,
            baselines=baselines,
            progress=_progress,
            length_multiple=length_multiple,
        )

    def label(self) -> str:
        """The recipes and the paths of the runs."""
        paths = ", ".join(str(run.path) for run in self.runs)
        label = f"{name_recipes(self.runs)} ({paths})"
        if len(self.runs) == 1:
            return label + _unfinished(self.runs[0])
        return f"ensemble of {len(self.runs)}: {label}"


def evaluate_all(
    tasks: Mapping[str, Task],
    patterns: Any,
    splits: list[str],
    *,
    scores: PathLike | None = None,
    examples: int = 0,
    data: PathLike | None = None,
    precision: str = "auto",
    baselines: bool = True,
    out: PathLike | None = None,
    settings: Mapping[str, object] | None = None,
) -> list[dict]:
    """Scores splits with one run or several, and prints a table for each corpus and split. Of
    several runs it also prints means over seeds.

    Args:
        tasks: `tasks.TASKS`.
        patterns, data, precision, settings: See `open_evaluations`.
        scores: A file to append rows to.
        examples: Number of examples to show for each run and split.
        baselines, out: See `Evaluation.score`.

    Returns:
        A list of the records of `Evaluation.score`.
    """
    evaluations = open_evaluations(tasks, patterns, data, settings, precision)
    has_several = len(evaluations) > 1
    if out and (has_several or len(splits) > 1):
        raise UserError(f"out: expected one run and one split. Received: {patterns}, {splits}")
    if scores:
        check_output(scores)
        read_scores(scores)  # a damaged file is refused before the work

    if examples:
        for evaluation in evaluations:
            check_vocabulary(evaluation.dataset)

    records = []
    tables: dict[tuple, list] = {}
    while evaluations:
        # It leaves the list, so that its model is freed before the next one is loaded.
        evaluation = evaluations.pop(0)
        for split in splits:
            # Of several runs, those whose dataset lacks a split are left out of its table.
            examples_of_split = evaluation.dataset.splits.get(split, [])
            if has_several and not len(examples_of_split):
                continue
            record = evaluation.score(split, baselines, out)
            records.append(record)
            key = (record["task"], record["corpus"], split)
            tables.setdefault(key, []).append((evaluation.label(), record))
            if scores:
                append_scores(scores, record)
            if examples:
                if len(evaluation.runs) > 1:
                    print(f"\nexamples of {evaluation.runs[0].path}, the first of the ensemble:")
                show_examples(
                    evaluation.task, evaluation.runs[0], evaluation.dataset, split, examples
                )
    if not records:
        raise UserError(f"no dataset of {patterns} has examples in the splits {', '.join(splits)}")
    for (task_name, corpus, split), rows in tables.items():
        print_records(rows, tasks[task_name], corpus, split)
    for task_name in sorted({record["task"] for record in records}):
        records_of_task = [record for record in records if record["task"] == task_name]
        print_summary(tasks[task_name], records_of_task)
    return records


def open_evaluations(
    tasks: Mapping[str, Task],
    patterns: Any,
    data: PathLike | None = None,
    settings: Mapping[str, object] | None = None,
    precision: str = "auto",
    datasets: dict[tuple[str, pathlib.Path], Dataset] | None = None,
) -> list[Evaluation]:
    """Opens runs with their datasets; a dataset of several runs is loaded once.

    Args:
        tasks: `tasks.TASKS`.
        patterns: One or a list of run directories, names of published runs, patterns of several,
            as `runs/babi/*`, or several separated by commas: an ensemble.
        data: Path of the dataset; `None`: that of each run.
        settings: `{field: value}` of the tasks' `Options`.
        precision: See `Evaluation`.
        datasets: `{(task, path): dataset}` that are loaded already; those loaded here are added.
    """
    datasets = {} if datasets is None else datasets
    evaluations = []
    for pattern in patterns if isinstance(patterns, list) else [patterns]:
        for paths in _find_ensembles(pattern):
            runs = [Run.open(path) for path in paths]
            first = runs[0]
            for run in runs:
                if run.task != first.task:
                    raise UserError(
                        f"an ensemble has one task: {first.path} is of {first.task}, not {run.path}"
                    )
            task = tasks[first.task]
            options = make_config(task.Options, settings or {})
            path = pathlib.Path(data or first.dataset["path"] or "").resolve()
            key = (task.name, path)
            # A file is not shared: each run reads it by its own vocabulary.
            if path.is_file() or key not in datasets:
                datasets[key] = task.dataset_of(first, data)
            evaluations.append(Evaluation(task, runs, datasets[key], options, precision))
    return evaluations


def _find_ensembles(pattern: object) -> list[list]:
    """Returns the paths of the runs of each ensemble; most have one run."""
    if isinstance(pattern, os.PathLike):
        pattern = str(pattern)
    if not isinstance(pattern, str):
        return [[pattern]]  # a run
    if os.path.isfile(os.path.join(pattern, CONFIG)):
        return [[pattern]]  # its name may have commas and brackets
    members = pattern.split(",")
    if len(members) > 1:
        return [members]
    runs = []
    for path in sorted(glob.glob(pattern)):
        if (pathlib.Path(path) / CONFIG).is_file():
            runs.append([path])
    return runs or [members]


def _unfinished(run: Run) -> str:
    """The epochs that a run has, if its training was interrupted or goes on."""
    rows = run.history()
    if not rows or run.saved_state() is None or run.finished():
        return ""
    return f", {rows[-1]['epoch']:g} of {run.training.epochs:g} epochs"


def _progress(batches: Iterable) -> Iterable:
    return track(batches, "scoring", console=Console(stderr=True))
