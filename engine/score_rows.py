"""Rows of a file of scores, such as results/scores.jsonl."""

import json
import pathlib

from colloquy.base.files import PathLike, writing
from colloquy.data.prepared import Dataset
from colloquy.engine.provenance import portable, provenance
from colloquy.engine.run import Run
from colloquy.metrics.published import reference_rows
from colloquy.metrics.published import scores as read_scores

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
"""Fields of a row, in this order; a row lacks those that its record lacks."""
TRAINING_PROVENANCE = ("command", "commit", "dirty", "hardware", "versions")
"""Fields of `engine.provenance.provenance` that a row has of the training of its run."""
EVALUATION_PROVENANCE = ("command", "commit", "dirty")
"""Fields that the entry `evaluation` of a row has of the process that scored the run."""


def name_recipes(runs: list[Run]) -> str:
    """The recipe of a run, or those of an ensemble."""
    recipes = [run.record.get("recipe") or run.model for run in runs]
    return " + ".join(dict.fromkeys(recipes))


def describe_origin(runs: list[Run], dataset: Dataset, split: str) -> dict:
    """The fields of `ROW` that say which runs were scored on which data.

    It also has `settings`, by which tables tell apart runs of one recipe. Of an ensemble, seed,
    settings, epochs and provenance are those of the first run.
    """
    run = runs[0]
    record = run.record
    *trainings_before, own_training = run.trainings()
    evaluation = provenance()
    origin = {
        "recipe": name_recipes(runs),
        "task": run.task,
        "corpus": dataset.name,
        "split": split,
        "seed": run.training.seed,
        "settings": {**record["config"], **record["training"]},
        "epochs": own_training["epochs"],
        "minutes": round(_training_seconds(runs) / 60, 3),
        **{name: record.get(name) for name in TRAINING_PROVENANCE},
        "evaluation": {name: evaluation[name] for name in EVALUATION_PROVENANCE},
    }
    if own_training["corpus"] != dataset.name:
        origin["trained_on"] = own_training["corpus"]
    if len(runs) > 1:
        origin["ensemble"] = len(runs)
    if trainings_before:
        origin["epochs_before"] = [training.get("epochs") for training in trainings_before]
    return origin


def _training_seconds(runs):
    """The time of all trainings of all runs."""
    seconds = 0.0
    for run in runs:
        for training in run.trainings():
            seconds += training.get("seconds") or 0
    return seconds


def append_scores(path: PathLike, record: dict) -> None:
    """Appends the row of a record of `Evaluation.score` to a file such as results/scores.jsonl.

    It also appends the rows of the record's baselines and upper bounds, if the file lacks them.
    """
    path = pathlib.Path(path)
    known_rows = [_without_metrics(row) for row in read_scores(path)]
    rows = [_make_row(record)]
    for reference in reference_rows(record):
        if _without_metrics(reference) not in known_rows:
            rows.append({**reference, "metrics": _rounded(reference["metrics"])})

    content = path.read_bytes() if path.exists() else b""
    with writing(path), open(path, "a", encoding="utf-8") as file:
        # An editor may have removed the last line feed.
        if content and not content.endswith(b"\n"):
            file.write("\n")
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _without_metrics(row):
    return {name: value for name, value in row.items() if name != "metrics"}


def _make_row(record):
    """Makes the row of a record. Its commands name no paths of this machine."""
    row = {name: record[name] for name in ROW if name in record}
    row["metrics"] = _rounded(row["metrics"])
    if "parts" in row:
        row["parts"] = {name: _rounded(metrics) for name, metrics in row["parts"].items()}
    if row.get("command"):
        row["command"] = portable(row["command"])
    evaluation = row["evaluation"]
    row["evaluation"] = {**evaluation, "command": portable(evaluation["command"])}
    return row


def _rounded(metrics):
    """Metrics with six decimals: further ones differ between machines."""
    return {name: round(value, 6) for name, value in metrics.items()}
