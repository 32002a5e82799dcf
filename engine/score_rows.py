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
"""Fields of a record that a row has, if the record has them."""
PROVENANCE = ("command", "commit", "dirty", "hardware", "versions")
"""Fields of the record of a run; of the evaluation, a row has the first three."""


def name_recipes(runs: list[Run]) -> str:
    """The recipe of a run, or those of an ensemble."""
    recipes = [run.record.get("recipe") or run.model for run in runs]
    return " + ".join(dict.fromkeys(recipes))


def describe_origin(runs: list[Run], dataset: Dataset, split: str) -> dict:
    """The fields of `ROW` that say which models were scored on which data, and some beside them.

    The provenance is that of the training of the first run.
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
        **{name: record.get(name) for name in PROVENANCE},
        "evaluation": {name: evaluation[name] for name in PROVENANCE[:3]},
    }
    if own_training["corpus"] != dataset.name:
        origin["trained_on"] = own_training["corpus"]
    if len(runs) > 1:
        origin["ensemble"] = len(runs)
    if trainings_before:
        origin["epochs_before"] = [training.get("epochs") for training in trainings_before]
    return origin


def _training_seconds(runs: list[Run]) -> float:
    """The time of all trainings of all runs."""
    seconds = 0.0
    for run in runs:
        for training in run.trainings():
            seconds += training.get("seconds") or 0
    return seconds


def append_scores(path: PathLike, record: dict) -> None:
    """Appends rows to a file such as results/scores.jsonl.

    They are the row of a record of `Evaluation.score`, and those of baselines that the file lacks.
    Commands name no paths of this machine.
    """
    known_rows = [{**row, "metrics": None} for row in read_scores(path)]
    row = {name: record[name] for name in ROW if name in record}
    if row.get("command"):
        row["command"] = portable(row["command"])
    row["metrics"] = _rounded(row["metrics"])
    if "parts" in row:
        row["parts"] = {name: _rounded(metrics) for name, metrics in row["parts"].items()}
    evaluation = row["evaluation"]
    row["evaluation"] = {**evaluation, "command": portable(evaluation["command"])}

    rows = [row]
    for row in reference_rows(record):
        if {**row, "metrics": None} not in known_rows:
            rows.append({**row, "metrics": _rounded(row["metrics"])})

    with writing(path), open(path, "a", encoding="utf-8") as file:
        content = pathlib.Path(path).read_bytes()
        if content and not content.endswith(b"\n"):
            file.write("\n")
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _rounded(metrics: dict[str, float]) -> dict[str, float]:
    """Metrics with six decimals: further ones differ between machines."""
    return {name: round(value, 6) for name, value in metrics.items()}
