"""The scores in `results/`: our own, and those that others published."""

import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"
REFERENCES = {"baselines": "baseline", "upper_bounds": "upper bound"}
"""Parts of a record beside its metrics, and what a row with one of them is called."""


def scores(path=RESULTS / "scores.jsonl") -> list[dict]:
    """The rows of a file of scores, if there is one: one per recipe, corpus, split and seed; baselines have no seed.

    Each has `recipe, task, corpus, split, metrics`, metrics named as by the task's file in `metrics/`. Measured rows
    also have `seed, epochs, minutes, command, commit, dirty, hardware, versions` of the training and `evaluation`, and
    where it applies `search` (of replies), `parts` (metrics of a part of the split), `ensemble` (number of models),
    `epochs_before` (of the trainings that its weights come from), `budget` (the best validation within so many epochs),
    `trained_on` (another corpus) and `stale`: why today's code does not give these numbers.
    """
    path = Path(path)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def reference_rows(record):
    """The baselines and upper bounds of a record as rows of their own, without a seed."""
    shared = {key: record[key] for key in ("task", "corpus", "split")}
    return [
        {"recipe": f"{label}: {name}", **shared, "metrics": metrics}
        for kind, label in REFERENCES.items()
        for name, metrics in record.get(kind, {}).items()
    ]


def published(corpus: str | None = None) -> list[dict]:
    """The published scores on a corpus or all, in the file's order: the paper's own table first.

    Args:
        corpus: As `"ubuntu-v1"`: the full published corpora, so that no sample or look-alike (as `ubuntu-irc`) is
            compared with their scores; or `"babi-task1"` to `"babi-task6"`.

    Returns:
        Rows `{"task", "corpus", "split", "model", "metrics", "source"}`; metrics from 0 to 1, absent where the source
        does not give them. The split `test-oov` has entities that training never names; rows of `test, difference` say
        how far one model is ahead of another.

    >>> [row["metrics"]["R10@1"] for row in published("ubuntu-v1") if row["model"] == "DAM"]
    [0.767]
    """
    rows = json.loads((RESULTS / "published.json").read_text("utf-8"))
    return [row for row in rows if corpus is None or row["corpus"] == corpus]
