"""Scores of one model, or an ensemble, on splits of a dataset."""

import functools
import pathlib
import time
from collections.abc import Iterable, Mapping

import keras
from rich.console import Console
from rich.progress import track

from colloquy.base.config import make_config
from colloquy.base.files import (
    PathLike,
    UserError,
    atomic_file,
    check_output,
    printable,
    refuse_existing,
)
from colloquy.base.runtime import choose_precision, return_memory
from colloquy.data.prepared import Dataset
from colloquy.engine.devices import choose_xla, has_gpu, set_precision
from colloquy.engine.ensembles import ensemble
from colloquy.engine.examples import take_scored_examples
from colloquy.engine.predictor import Predictor
from colloquy.engine.run import Run
from colloquy.engine.score_rows import describe_origin, name_recipes
from colloquy.engine.score_tables import print_records
from colloquy.engine.scoring import Group, Scoring
from colloquy.engine.settings import check_fits
from colloquy.engine.task import Task
from colloquy.metrics.bootstrap import Additive


class Evaluation:
    """Runs of a task with their dataset and model, each loaded once however many splits are scored.

    Args:
        task: The task of the runs.
        runs: Several are an ensemble, see `engine.task.Task.average`.
        data: Path of the dataset; `None`: that of the first run.
        settings: `{field: value}` of the task's `Options`.
        precision: `auto` is that of the training where this machine computes it, else float32.
        datasets: `{path: dataset}` that are loaded already; those loaded here are added.
    """

    def __init__(
        self,
        task: Task,
        runs: list[Run],
        data: PathLike | None = None,
        settings: Mapping[str, object] | None = None,
        precision: str = "auto",
        datasets: dict[str, Dataset] | None = None,
    ) -> None:
        self.task = task
        self.runs = runs
        self.data = data
        self.options = make_config(task.Options, settings or {})
        self.precision = precision
        self._datasets = {} if datasets is None else datasets
        for run in runs:
            if run.task != task.name:
                raise UserError(
                    f"an ensemble has one task: {runs[0].path} is of {task.name}, not {run.path}"
                )

    @functools.cached_property
    def dataset(self) -> Dataset:
        """The dataset to score."""
        path = pathlib.Path(self.data or self.runs[0].dataset["path"] or "").resolve()
        key = str(path)
        # A file is not shared: each run reads it by its own vocabulary.
        if path.is_file() or key not in self._datasets:
            self._datasets[key] = self.task.dataset_of(self.runs[0], self.data)
            return_memory()
        return self._datasets[key]

    @functools.cached_property
    def _model(self) -> tuple[keras.Model, int]:
        """The model, and the multiple that lengths are rounded up to."""
        gains = self.runs[0].training.precision == "bfloat16"
        self.precision = choose_precision(self.precision, gains=gains, gpu=has_gpu())
        set_precision(self.precision)
        for run in self.runs:
            check_fits(self.task, run, self.dataset)
        models = [run.load_model() for run in self.runs]
        model = ensemble(self.task, models) if len(models) > 1 else models[0]
        return model, choose_xla(model, "auto")

    def score(
        self,
        split: str = "dev",
        baselines: bool = True,
        out: PathLike | None = None,
        show: bool = True,
    ) -> dict:
        """Scores a split, prints a table, and writes `metrics.json` into a single run.

        Args:
            baselines: Scores baselines, too.
            out: A new file for the model's answers.
            show: Prints the table.

        Returns:
            The record of `measure`, and the fields of `score_rows.ROW`.
        """
        if out:
            check_output(out)
            refuse_existing(out)
        scoring = self._scoring(split, baselines)
        started = time.perf_counter()
        measured = self.task.measure(scoring)
        seconds = round(time.perf_counter() - started, 1)
        if out:
            with atomic_file(out) as file:
                file.writelines(f"{line}\n" for line in measured.answers)
        result = {
            **measured.record,
            "evaluation_seconds": seconds,
            "precision": self.precision,
        }

        record = {**describe_origin(self.runs, self.dataset, split), **result}
        if show:
            rows = [(self.label(), record)]
            print_records(rows, self.task, self.dataset, split)
        # The run keeps only scores on its own corpus.
        if len(self.runs) == 1 and "trained_on" not in record:
            self.runs[0].save_metrics(split, result)
        return record

    def metrics_by_example(self, split: str) -> tuple[dict[str, Additive], dict[str, int]]:
        """Scores a split.

        Returns:
            `{metric: Additive}` of its examples.
            `{name: number}` of what they are.
        """
        measured = self.task.measure(self._scoring(split, baselines=False))
        return measured.by_example(), measured.record["counts"]

    def metrics_by_group(self, split: str, breakdowns: Iterable[str]) -> dict[str, list[Group]]:
        """Scores groups of a split's examples, see `engine.task.Task.metrics_by_group`."""
        for name in breakdowns:
            if name not in self.task.breakdowns:
                known = ", ".join(self.task.breakdowns) or "nothing"
                raise UserError(
                    f"examples of {self.task.name} are grouped by {known}. Received: {name}"
                )
        return self.task.metrics_by_group(self._scoring(split, baselines=False), breakdowns)

    def _scoring(self, split: str, baselines: bool) -> Scoring:
        self._check_split(split)
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

    def show_examples(self, split: str, count: int) -> None:
        """Prints examples as the first run's model reads and answers them.

        An asterisk marks a correct answer.
        """
        examples = take_scored_examples(self.task, self.dataset, count, split)
        if not examples:
            raise UserError(
                f"{self.dataset.path} has no vocabulary.txt, "
                "so its examples cannot be shown in words"
            )
        predictor = self.task.predictor(self.runs[0]).for_scored_examples()
        for example in examples:
            print(printable(_describe_example(predictor, example)))

    def _check_split(self, split: str) -> None:
        if split not in self.dataset.splits:
            known = ", ".join(self.dataset.splits)
            raise UserError(f"split: expected one of {known}. Received: {split}")
        if not len(self.dataset.splits[split]):
            raise UserError(f"{self.dataset.path} has no examples in the split {split}")


def _unfinished(run: Run) -> str:
    """The epochs that a run has, if its training was interrupted or goes on."""
    rows = run.history()
    if not rows or run.saved_state() is None or run.finished():
        return ""
    return f", {rows[-1]['epoch']:g} of {run.training.epochs:g} epochs"


def _describe_example(predictor: Predictor, example: dict) -> str:
    """Returns lines with an example as the model reads it, its answers and the expected ones."""
    expected = example["expected"]
    instance = predictor.make_instance(example["instance"], example["title"])
    read, answers = predictor.show(instance)
    lines = ["", example["title"]]
    for label, text in read:
        lines.append(f"    {label:10}{text}")
    for score, text in answers:
        mark = "*" if text in expected else " "
        lines.append(f"{score:12.2f} {mark} {text}")
    has_correct_answer = any(text in expected for _, text in answers)
    if expected and not has_correct_answer:
        lines.append(f"    expected: {' / '.join(expected)}")
    return "\n".join(lines)


def _progress(batches: Iterable) -> Iterable:
    return track(batches, "scoring", console=Console(stderr=True))
