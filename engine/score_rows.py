"""Rows of a file of scores, such as results/scores.jsonl."""

import json
import pathlib

from colloquy.base.files import PathLike, writing
from colloquy.engine.provenance import portable
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
