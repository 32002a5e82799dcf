"""Scoring of splits: tables beside baselines and published scores, rows of results/scores.jsonl,
ensembles.
"""

import functools
import glob
import json
import pathlib
import sys
import time

import keras
import numpy as np
from keras import ops
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from colloquy.base.files import UserError, atomic_file, check_output, printable, writing
from colloquy.base.runtime import choose_precision, return_memory
from colloquy.engine.chat import Terminal
from colloquy.engine.devices import choose_xla, has_gpu, set_precision
from colloquy.engine.provenance import provenance
from colloquy.engine.run import CONFIG, Run
from colloquy.metrics.published import published, reference_rows
from colloquy.metrics.published import scores as read_scores
from colloquy.metrics.tables import by_corpus

ROW = (
    *(
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
    ),
    *(
        "epochs_before",
        "minutes",
        "command",
        "commit",
        "dirty",
        "hardware",
        "versions",
        "evaluation",
    ),
)
"""Fields of a record that a row of results/scores.jsonl has, if the record has them."""


class Evaluation:
    """Runs of a task with their dataset and model, each loaded once however many splits are scored.

    Several runs are an ensemble, see `engine.task.Task.average`. `data` is by default the dataset
    of the first run, `precision="auto"` that of the training where this machine computes it, else
    float32. `datasets`, `{path: dataset}`, are loaded already, and get those that are loaded here.
    """

    def __init__(self, task, runs, data=None, precision="auto", jit="auto", datasets=None):
        self.task, self.runs, self.data, self.precision, self.jit = task, runs, data, precision, jit
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
        # each run reads a file by its own vocabulary
        if path.is_file() or str(path) not in self._datasets:
            self._datasets[str(path)] = self.task.dataset_of(self.runs[0], self.data)
            return_memory()
        return self._datasets[str(path)]

    @functools.cached_property
    def _model(self):
        """The model, and the multiple that lengths are rounded up to."""
        trained_in = self.runs[0].training.precision
        self.precision = choose_precision(
            self.precision, gains=trained_in == "bfloat16", gpu=has_gpu()
        )
        set_precision(self.precision)
        for run in self.runs:
            self.task.check_fits(run, self.dataset)
        models = [run.load_model() for run in self.runs]
        model = ensemble(self.task, models) if len(models) > 1 else models[0]
        return model, choose_xla(model, self.jit)

    def score(self, split="dev", baselines=True, scores_out=None, **options):
        """Scores a split, prints a table, and writes `metrics.json` into a single run, the answers
        into `scores_out`.

        Returns the result of the task's `measure`, which takes the options, without the answers;
        and the fields of `ROW`.
        """
        refuse_options(self.task, options)
        if scores_out:
            check_output(scores_out)
        self._check_split(split)
        model, length_multiple = self._model
        started = time.perf_counter()
        found = self.task.measure(
            model,
            self.dataset,
            split,
            self.runs[0],
            baselines,
            _progress,
            length_multiple,
            **options,
        )
        answers = found.pop("answers")
        if scores_out:
            with atomic_file(scores_out) as file:
                file.writelines(f"{line}\n" for line in answers)
        found |= {
            "precision": self.precision,
            "evaluation_seconds": round(time.perf_counter() - started, 1),
        }
        record = {**self._origin(split), **found}
        several = f"ensemble of {len(self.runs)}: " if len(self.runs) > 1 else ""
        label = f"{several}{record['recipe']} ({', '.join(str(run.path) for run in self.runs)})"
        print_record(label, self.task, self.dataset, split, record)
        # the run's scores are those of its own corpus
        if not several and "trained_on" not in record:
            self.runs[0].save_metrics(split, found)
        return record

    def show_examples(self, split, count):
        """Prints examples as the first run's model reads and answers them; an asterisk marks a
        correct answer.
        """
        found = self.task.examples(self.dataset, count, split)
        if not found:
            raise UserError(
                f"{self.dataset.path} has no vocabulary.txt, so its examples cannot be shown in words"
            )
        predictor = self.task.predictor(self.runs[0])
        for example in found:
            expected = example["expected"]
            read, answers = predictor.show(predictor.valid(example["instance"], example["title"]))
            lines = ["", example["title"], *(f"    {label:10}{text}" for label, text in read)]
            lines += [
                f"{score:12.2f} {'*' if text in expected else ' '} {text}"
                for score, text in answers
            ]
            if expected and not any(text in expected for _, text in answers):
                lines.append(f"    expected: {' / '.join(expected)}")
            print(printable("\n".join(lines)))

    def analyse(self, split, breakdowns):
        """Scores groups of a split's examples by some of the task's breakdowns, see
        `engine.task.Task.metrics_by_group`.
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
        run, here = self.runs[0], provenance()
        *before, own = run.trainings()
        seconds = [training["seconds"] or 0 for each in self.runs for training in each.trainings()]
        found = {
            "recipe": run.record.get("recipe") or run.model,
            **{
                "task": self.task.name,
                "corpus": self.dataset.name,
                "split": split,
                "seed": run.training.seed,
            },
            "settings": {**run.record["config"], **run.record["training"]},
            **{"epochs": own["epochs"], "minutes": round(sum(seconds) / 60, 3)},
            **{
                name: run.record.get(name)
                for name in ("command", "commit", "dirty", "hardware", "versions")
            },
            "evaluation": {name: here[name] for name in ("command", "commit", "dirty")},
        }
        if own["corpus"] != self.dataset.name:
            found["trained_on"] = own["corpus"]
        if len(self.runs) > 1:
            found["ensemble"] = len(self.runs)
        if before:
            found["epochs_before"] = [training["epochs"] for training in before]
        return found


def evaluate(task, run_path, split="dev", data=None, precision="auto", jit="auto", **options):
    """Scores one split with one run, as `Evaluation` and its `score` do."""
    return Evaluation(task, [Run.open(run_path)], data, precision, jit).score(split, **options)


def evaluate_all(
    tasks,
    pattern,
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

    `pattern` is a run directory, a pattern of several, as `runs/babi/*`, or several separated by
    commas: an ensemble. `scores` is a file to append rows to; `examples` are shown for each run and
    split. The other arguments are those of `Evaluation` and its `score`.
    """
    members = pattern.split(",")
    found = [
        [path] for path in sorted(glob.glob(pattern)) if (pathlib.Path(path) / CONFIG).is_file()
    ]
    evaluated = found if found and len(members) == 1 else [members]
    several = len(evaluated) * len(splits) > 1
    if several and options.get("scores_out"):
        raise UserError(
            f"--scores_out is for one run and one split. Received: {pattern}, {', '.join(splits)}"
        )
    if scores:
        check_output(scores)
        read_scores(scores)  # so that one that is damaged is refused now, not after the work
    records, datasets = [], {}
    opened = [[Run.open(path) for path in paths] for paths in evaluated]
    for runs in opened:
        refuse_options(tasks[runs[0].task], options.keys() - {"baselines", "scores_out"})
    for runs in opened:
        evaluation = Evaluation(tasks[runs[0].task], runs, data, precision, jit, datasets)
        for split in splits:
            if len(evaluated) > 1 and not len(evaluation.dataset.splits.get(split, [None])):
                continue
            records.append(evaluation.score(split, **options))
            if examples:
                evaluation.show_examples(split, examples)
            if scores:
                append_scores(scores, records[-1])
    if not records:
        raise UserError(f"no dataset of {pattern} has examples in the splits {', '.join(splits)}")
    for name in sorted({record["task"] for record in records}) if several else ():
        rows = [
            row for each in records if each["task"] == name for row in (each, *reference_rows(each))
        ]
        header, lines = by_corpus(rows, tasks[name].summary_metrics)
        table = Table(
            *header,
            title=f"{name}: {', '.join(tasks[name].summary_metrics)}; mean ± deviation over seeds",
        )
        for line in lines:
            table.add_row(*line)
        _print(table, 200)


def refuse_options(task, options):
    """Refuses flags of evaluate.py that a task does not take, as a `UserError`."""
    for name in options:
        if name not in task.options:
            raise UserError(
                f"--{name} is not for {task.name}, which has {', '.join(['scores_out', *task.options])}"
            )


def append_scores(path, record):
    """Appends the row of a record of `Evaluation.score` to a file such as results/scores.jsonl, and
    those of baselines that it lacks."""
    known = [{**row, "metrics": None} for row in read_scores(path)]
    rows = [{name: record[name] for name in ROW if name in record}]
    rows += [row for row in reference_rows(record) if {**row, "metrics": None} not in known]
    with writing(path), open(path, "a", encoding="utf-8") as file:
        # ends a last line without one
        file.write("" if pathlib.Path(path).read_bytes()[-1:] in b"\n" else "\n")
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def ensemble(task, models):
    """Joins models into one, whose probabilities are a mean of theirs; see
    `engine.task.Task.average`.

    One of the models takes all inputs that any of them takes: the result has its inputs and its
        `config`.
    """
    widest = max(models, key=lambda model: len(model.input))
    for model in models:
        if not model.input.keys() <= widest.input.keys():
            fields = " and ".join(", ".join(sorted(each.input)) for each in (widest, model))
            raise UserError(f"models of an ensemble read the same fields. Received: {fields}")
        for field in task.batch_fields:
            mine, others = (getattr(each.config, field, None) for each in (model, widest))
            if mine != others:
                raise UserError(
                    f"models of an ensemble have the same {field}. Received: {others} and {mine}"
                )
    logits = [model({name: widest.input[name] for name in model.input}) for model in models]
    joint = keras.Model(widest.input, task.average(logits))
    joint.config = widest.config
    return joint


def mean_of_logits(logits):
    """Averages logits, in float32: the geometric mean of the probabilities of a softmax, or of the
    odds of a sigmoid.

    >>> mean_of_logits([np.array([[0.0, 3.0]]), np.array([[1.0, 4.0]])]).numpy().tolist()
    [[0.5, 3.5]]
    """
    return ops.mean(ops.stack([ops.cast(each, "float32") for each in logits]), axis=0)


def mean_of_softmaxes(logits):
    """Log of the arithmetic mean of softmaxes over the last axis, in float32.

    >>> one, other = (np.log(np.array([p], "float32")) for p in ([0.5, 0.5], [1.0, 3.0]))
    >>> np.exp(mean_of_softmaxes([one, other])).round(3).tolist()
    [[0.375, 0.625]]
    """
    log_p = ops.stack([ops.log_softmax(ops.cast(each, "float32"), axis=-1) for each in logits])
    return ops.logsumexp(log_p, axis=0) - np.log(len(logits))


def print_record(label, task, dataset, split, record):
    """Prints a record of `measure` as a table, beside its baselines and the published results for
    its corpus.
    """
    title, caption = task.describe(record)
    names = list(record["metrics"])
    columns = (Column(name, justify="right") for name in names)
    table = Table("", *columns, title=f"{dataset.name}, {split}: {title}", caption=caption)

    def add(rows, style=None):
        for title, metrics in rows:
            table.add_row(
                title,
                *(f"{metrics[name]:.4f}" if name in metrics else "" for name in names),
                style=style,
            )

    add([(label, record["metrics"])], "bold")
    add(record.get("parts", {}).items())
    table.add_section()
    references = reference_rows(
        {**record, "task": task.name, "corpus": dataset.name, "split": split}
    )
    add((row["recipe"], row["metrics"]) for row in references)
    table.add_section()
    for row in published(dataset.name):
        where = f" ({row['split']})" if row["split"] != split else ""
        add([(f"published{where}: {row['model']}", row["metrics"])], "dim")
    _print(table, 120)


def _print(table, width):
    """Prints a table literally: texts of models and corpora are not markup."""
    Terminal(width=None if sys.stdout.isatty() else width, markup=False, highlight=False).print(
        table
    )


def _progress(batches):
    return track(batches, "scoring", console=Console(stderr=True))
