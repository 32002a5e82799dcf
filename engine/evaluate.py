"""Scoring of splits: tables beside baselines and published scores, rows of results/scores.jsonl."""

import functools
import glob
import json
import os
import pathlib
import sys
import time

from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from colloquy.base.files import (
    UserError,
    atomic_file,
    check_output,
    printable,
    refuse_existing,
    writing,
)
from colloquy.base.runtime import choose_precision, return_memory
from colloquy.engine.chat import Terminal
from colloquy.engine.devices import choose_xla, has_gpu, set_precision
from colloquy.engine.ensembles import ensemble
from colloquy.engine.provenance import portable, provenance
from colloquy.engine.run import CONFIG, Run
from colloquy.metrics.published import PUBLISHED_SIZES, published_beside, reference_rows
from colloquy.metrics.published import scores as read_scores
from colloquy.metrics.tables import by_corpus

ROW = (
    "recipe",
    "task",
    "corpus",
    "trained_on",
    "split",
    "seed",
    "ensemble",
    "search",
    "metrics",
    "parts",
    "epochs",
    "epochs_before",
    "minutes",
    "command",
    "commit",
    "dirty",
    "hardware",
    "versions",
    "evaluation",
)
"""Fields of a record that a row of results/scores.jsonl has, if the record has them."""


class Evaluation:
    """Runs of a task with their dataset and model, each loaded once however many splits are scored.

    Args:
        task: The `engine.task.Task` of the runs.
        runs: Several are an ensemble, see `engine.task.Task.average`.
        data: Path of the dataset; `None`: that of the first run.
        precision: `auto` is that of the training where this machine computes it, else float32.
        jit: See `engine.task.Training`.
        datasets: `{path: dataset}` that are loaded already; those loaded here are added.
    """

    def __init__(self, task, runs, data=None, precision="auto", jit="auto", datasets=None):
        self.task = task
        self.runs = runs
        self.data = data
        self.precision = precision
        self.jit = jit
        self._datasets = {} if datasets is None else datasets
        for run in runs:
            if run.task != task.name:
                raise UserError(
                    f"an ensemble has one task: {runs[0].path} is of {task.name}, not {run.path}"
                )

    @functools.cached_property
    def dataset(self):
        """The dataset to score."""
        path = pathlib.Path(self.data or self.runs[0].dataset["path"] or "").resolve()
        key = str(path)
        # A file is not shared: each run reads it by its own vocabulary.
        if path.is_file() or key not in self._datasets:
            self._datasets[key] = self.task.dataset_of(self.runs[0], self.data)
            return_memory()
        return self._datasets[key]

    @functools.cached_property
    def _model(self):
        """The model, and the multiple that lengths are rounded up to."""
        gains = self.runs[0].training.precision == "bfloat16"
        self.precision = choose_precision(self.precision, gains=gains, gpu=has_gpu())
        set_precision(self.precision)
        for run in self.runs:
            self.task.check_fits(run, self.dataset)
        models = [run.load_model() for run in self.runs]
        model = ensemble(self.task, models) if len(models) > 1 else models[0]
        return model, choose_xla(model, self.jit)

    def score(self, split="dev", baselines=True, scores_out=None, show=True, **options):
        """Scores a split, prints a table, and writes `metrics.json` into a single run.

        Args:
            baselines: Scores baselines, too.
            scores_out: A new file for the model's answers.
            show: Prints the table.
            options: Those of the task's `measure`.

        Returns:
            The result of `measure` without the answers, and the fields of `ROW`.
        """
        if scores_out:
            check_output(scores_out)
            refuse_existing(scores_out)
        result = self._measure(split, baselines, options)
        answers = result.pop("answers")
        result.pop("by_example")
        if scores_out:
            with atomic_file(scores_out) as file:
                file.writelines(f"{line}\n" for line in answers)
        result["precision"] = self.precision

        record = {**self._origin(split), **result}
        if show:
            rows = [(self.label(), record)]
            print_records(rows, self.task, self.dataset, split)
        # The run keeps only scores on its own corpus.
        if len(self.runs) == 1 and "trained_on" not in record:
            self.runs[0].save_metrics(split, result)
        return record

    def metrics_by_example(self, split, **options):
        """Scores a split.

        Returns:
            `{metric: metrics.bootstrap.Additive}` of its examples.
            `{name: number}` of what they are.
        """
        result = self._measure(split, baselines=False, options=options)
        return result["by_example"](), result["counts"]

    def _measure(self, split, baselines, options):
        refuse_options(self.task, options)
        self._check_split(split)
        model, length_multiple = self._model
        started = time.perf_counter()
        result = self.task.measure(
            model,
            self.dataset,
            split,
            self.runs[0],
            baselines=baselines,
            progress=_progress,
            length_multiple=length_multiple,
            **options,
        )
        result["evaluation_seconds"] = round(time.perf_counter() - started, 1)
        return result

    def label(self):
        """The recipes and the paths of the runs."""
        paths = ", ".join(str(run.path) for run in self.runs)
        label = f"{self._recipe()} ({paths})"
        if len(self.runs) == 1:
            return label
        return f"ensemble of {len(self.runs)}: {label}"

    def _recipe(self):
        """The recipe of a run, or those of an ensemble."""
        recipes = [run.record.get("recipe") or run.model for run in self.runs]
        return " + ".join(dict.fromkeys(recipes))

    def show_examples(self, split, count):
        """Prints examples as the first run's model reads and answers them.

        An asterisk marks a correct answer.
        """
        examples = self.task.examples(self.dataset, count, split)
        if not examples:
            raise UserError(
                f"{self.dataset.path} has no vocabulary.txt, "
                "so its examples cannot be shown in words"
            )
        predictor = self.task.predictor(self.runs[0])
        for example in examples:
            print(printable(_describe_example(predictor, example)))

    def analyse(self, split, breakdowns):
        """Scores groups of a split's examples by some of the task's breakdowns.

        See `engine.task.Task.metrics_by_group`.
        """
        for name in breakdowns:
            if name not in self.task.breakdowns:
                known = ", ".join(self.task.breakdowns) or "nothing"
                raise UserError(
                    f"examples of {self.task.name} are grouped by {known}. Received: {name}"
                )
        self._check_split(split)
        model, length_multiple = self._model
        return self.task.metrics_by_group(
            model, self.dataset, split, breakdowns, _progress, length_multiple
        )

    def _check_split(self, split):
        if split not in self.dataset.splits:
            raise UserError(
                f"--split expects one of {', '.join(self.dataset.splits)}. Received: {split}"
            )
        if not len(self.dataset.splits[split]):
            raise UserError(f"{self.dataset.path} has no examples in the split {split}")

    def _origin(self, split):
        """The fields of `ROW` that `measure` does not know; provenance is that of the training."""
        run = self.runs[0]
        record = run.record
        *trainings_before, own_training = run.trainings()
        evaluation = provenance()
        origin = {
            "recipe": self._recipe(),
            "task": self.task.name,
            "corpus": self.dataset.name,
            "split": split,
            "seed": run.training.seed,
            "settings": {**record["config"], **record["training"]},
            "epochs": own_training["epochs"],
            "minutes": round(self._training_seconds() / 60, 3),
            "command": record.get("command"),
            "commit": record.get("commit"),
            "dirty": record.get("dirty"),
            "hardware": record.get("hardware"),
            "versions": record.get("versions"),
            "evaluation": {name: evaluation[name] for name in ("command", "commit", "dirty")},
        }
        if own_training["corpus"] != self.dataset.name:
            origin["trained_on"] = own_training["corpus"]
        if len(self.runs) > 1:
            origin["ensemble"] = len(self.runs)
        if trainings_before:
            origin["epochs_before"] = [training["epochs"] for training in trainings_before]
        return origin

    def _training_seconds(self):
        """The time of all trainings of all runs."""
        seconds = 0.0
        for run in self.runs:
            for training in run.trainings():
                seconds += training["seconds"] or 0
        return seconds


def _describe_example(predictor, example):
    """Returns lines with an example as the model reads it, its answers and the expected ones."""
    expected = example["expected"]
    instance = predictor.valid(example["instance"], example["title"])
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


def evaluate(task, run_path, split="dev", data=None, precision="auto", jit="auto", **options):
    """Scores one split with one run, as `Evaluation` and its `score` do."""
    evaluation = Evaluation(task, [Run.open(run_path)], data=data, precision=precision, jit=jit)
    return evaluation.score(split, **options)


def evaluate_all(
    tasks,
    patterns,
    splits,
    scores=None,
    examples=0,
    data=None,
    precision="auto",
    jit="auto",
    **options,
):
    """Scores splits with one run or several; those of several are also shown together, as means
    over seeds.

    Args:
        tasks: `tasks.TASKS`.
        patterns: A list of run directories, names of published runs, patterns of several, as
            `runs/babi/*`, or several separated by commas: an ensemble.
        scores: A file to append rows to.
        examples: Number of examples to show for each run and split.
        data, precision, jit: See `Evaluation`.
        options: Those of `Evaluation.score`.

    Returns:
        A list of the records of `Evaluation.score`.
    """
    names = ", ".join(str(pattern) for pattern in patterns)
    opened = open_all(patterns)
    has_several = len(opened) * len(splits) > 1
    if has_several and options.get("scores_out"):
        raise UserError(
            f"--scores_out is for one run and one split. Received: {names}, {', '.join(splits)}"
        )
    if scores:
        check_output(scores)
        read_scores(scores)  # so that one that is damaged is refused now, not after the work
    for runs in opened:
        refuse_options(tasks[runs[0].task], options.keys() - {"baselines", "scores_out"})

    records = []
    rows_by_split = {}
    datasets = {}
    for runs in opened:
        task = tasks[runs[0].task]
        evaluation = Evaluation(task, runs, data, precision, jit, datasets)
        for split in splits:
            is_missing = not len(evaluation.dataset.splits.get(split, [None]))
            if is_missing and len(opened) > 1:
                continue
            record = evaluation.score(split, show=not has_several, **options)
            records.append(record)
            place = (task.name, record["corpus"], split)
            _, rows = rows_by_split.setdefault(place, (evaluation.dataset, []))
            rows.append((evaluation.label(), record))
            if examples:
                evaluation.show_examples(split, examples)
            if scores:
                append_scores(scores, record)
    if not records:
        raise UserError(f"no dataset of {names} has examples in the splits {', '.join(splits)}")
    if has_several:
        for (name, _, split), (dataset, rows) in rows_by_split.items():
            print_records(rows, tasks[name], dataset, split)
        for name in sorted({record["task"] for record in records}):
            _print_summary(tasks[name], [record for record in records if record["task"] == name])
    return records


def _find_ensembles(pattern):
    """Returns the paths of the runs of each ensemble; most have one run."""
    if isinstance(pattern, os.PathLike):
        pattern = str(pattern)
    if not isinstance(pattern, str):
        return [[pattern]]  # a run
    members = pattern.split(",")
    if len(members) > 1:
        return [members]
    runs = []
    for path in sorted(glob.glob(pattern)):
        if (pathlib.Path(path) / CONFIG).is_file():
            runs.append([path])
    return runs or [members]


def open_all(patterns):
    """Opens the runs of some patterns: a list for each ensemble; most have one run."""
    opened = []
    for pattern in patterns:
        for paths in _find_ensembles(pattern):
            opened.append([Run.open(path) for path in paths])
    return opened


def _print_summary(task, records):
    """Prints means over seeds, of several corpora or splits side by side."""
    places = {(record["corpus"], record["split"]) for record in records}
    models = {(record["recipe"], record["corpus"], record["split"]) for record in records}
    if len(places) == 1 and len(models) == len(records):
        return  # the table before has all of it
    header, lines = by_corpus(records, task.summary_metrics)
    metrics = ", ".join(task.summary_metrics)
    table = Table(*header, title=f"{task.name}: {metrics}; mean ± deviation over seeds")
    for line in lines:
        table.add_row(*line)
    print_table(table, width=200)


def refuse_options(task, options):
    """Refuses flags of evaluate.py that a task does not take, as a `UserError`."""
    for name in options:
        if name not in task.options:
            known = ", ".join(["scores_out", *task.options])
            raise UserError(f"--{name} is not for {task.name}, which has {known}")


def append_scores(path, record):
    """Appends rows to a file such as results/scores.jsonl.

    They are the row of a record of `Evaluation.score`, and those of baselines that the file lacks.
    Commands name no paths of this machine.
    """
    known_rows = [{**row, "metrics": None} for row in read_scores(path)]
    row = {name: record[name] for name in ROW if name in record}
    if row.get("command"):
        row["command"] = portable(row["command"])
    evaluation = row["evaluation"]
    row["evaluation"] = {**evaluation, "command": portable(evaluation["command"])}

    rows = [row]
    for row in reference_rows(record):
        if {**row, "metrics": None} not in known_rows:
            rows.append(row)

    with writing(path), open(path, "a", encoding="utf-8") as file:
        content = pathlib.Path(path).read_bytes()
        if content and not content.endswith(b"\n"):
            file.write("\n")
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def print_records(rows, task, dataset, split):
    """Prints a table of a split: a line per record, then the baselines and the published results.

    Args:
        rows: `(label, record)` of each record of `measure`.
        task: Their task.
        dataset, split: What was scored.
    """
    records = [record for _, record in rows]
    title, caption = task.describe(records[0])
    metrics = list(dict.fromkeys(name for record in records for name in record["metrics"]))
    columns = [Column(name, justify="right") for name in metrics]
    published_rows = _published_for(task.name, dataset.name, split)
    remarks = [caption, _remark_on_size(dataset.name, split, task, records[0], published_rows)]
    table = Table(
        "",
        *columns,
        title=f"{dataset.name}, {split}: {title}",
        caption="; ".join(remark for remark in remarks if remark) or None,
    )

    def add(title, values, style=None):
        cells = [f"{values[name]:.4f}" if name in values else "" for name in metrics]
        table.add_row(title, *cells, style=style)

    for label, record in rows:
        add(label, record["metrics"], style="bold")
        for part, values in record.get("parts", {}).items():
            add(part, values)
    table.add_section()
    origin = {"task": task.name, "corpus": dataset.name, "split": split}
    references = {}
    for record in records:
        for row in reference_rows({**record, **origin}):
            references.setdefault(row["recipe"], row["metrics"])
    for name, values in references.items():
        add(name, values)
    table.add_section()
    for row in published_rows:
        where = f" ({row['split']})" if row["split"] != split else ""
        add(f"published{where}: {row['model']}", row["metrics"], style="dim")
    print_table(table, width=120)


def _published_for(task, corpus, split):
    """The published scores to show beside a split: those with new entities beside such alone."""
    is_oov = split.endswith("-oov")
    rows = published_beside(task, corpus)
    return [row for row in rows if row["split"].endswith("-oov") == is_oov]


def _remark_on_size(corpus, split, task, record, published_rows):
    """A remark, if a split has another size than the published one of its name; else `None`."""
    unit = f"{task.example_unit}s"
    expected = PUBLISHED_SIZES.get((corpus, split))
    received = record["counts"].get(unit)
    if not published_rows or expected is None or received is None:
        return None
    # The release drops the last partial batch.
    if abs(received - expected) <= 0.01 * expected:
        return None
    return f"not comparable: the published {split} has {expected:,} {unit}, this one {received:,}"


def print_table(table, width):
    """Prints a table literally: texts of models and corpora are not markup."""
    if sys.stdout.isatty():
        width = None  # that of the terminal
    Terminal(width=width, markup=False, highlight=False).print(table)


def _progress(batches):
    return track(batches, "scoring", console=Console(stderr=True))
