"""The scores in `results/`: our own, and those that others published."""

import json
from pathlib import Path

from colloquy.base.files import PathLike, UserError, in_one_line

RESULTS = Path(__file__).resolve().parents[1] / "results"
REFERENCES = {"baselines": "baseline", "upper_bounds": "upper bound"}
"""Parts of a record beside its metrics, and the label of their rows."""

PUBLISHED_SIZES = {
    ("ubuntu-v1", "test"): 50_000,
    ("douban", "test"): 667,
    ("squad", "dev"): 10_570,
}
"""`{(corpus, split): number}`: the contexts or questions that published scores are of, where a
source of ours says it."""


FIELDS_OF_ROWS = {"recipe", "corpus", "split", "metrics"}


def scores(path: PathLike = RESULTS / "scores.jsonl") -> list[dict]:
    """The rows of a file of scores; none if it does not exist.

    There is a row per recipe, corpus, split and seed; baselines have no seed. Measured rows have
    `recipe, task, corpus, split, seed, metrics, epochs, minutes, command, commit, dirty, hardware,
    versions, evaluation`, and where they apply:

        search: Search settings of replies.
        parts: Metrics of a part of the split.
        ensemble: Number of models.
        epochs_before: Epochs of the trainings that its weights come from.
        budget: The best validation within this number of epochs counts.
        trained_on: Another corpus.
        stale: The reason why the current code does not reproduce these numbers.
    """
    path = Path(path)
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:  # no JSON, or no UTF-8
            row = None
        if not isinstance(row, dict) or not FIELDS_OF_ROWS <= row.keys():
            raise UserError(
                f"{path}, line {number}: expected a JSON object with "
                f"{', '.join(sorted(FIELDS_OF_ROWS))}. "
                f"Received: {in_one_line(line.decode(errors='replace'), 60)}"
            )
        rows.append(row)
    return rows


def reference_rows(record: dict) -> list[dict]:
    """The baselines and upper bounds of a record as rows of their own, without a seed."""
    shared = {key: record[key] for key in ("task", "corpus", "split")}
    rows = []
    for part, label in REFERENCES.items():
        for name, metrics in record.get(part, {}).items():
            rows.append({"recipe": f"{label}: {name}", **shared, "metrics": metrics})
    return rows


def published(corpus: str | None = None) -> list[dict]:
    """The published scores on a corpus or all, in the file's order: the paper's own table first.

    Rows have `task, corpus, split, model, metrics, source`; metrics from 0 to 1. Corpora are the
    published ones, as `ubuntu-v1`, so no look-alike (`ubuntu-irc`) is compared with them. The split
    `test-oov` has entities that training never names; rows of `test, difference` say how far one
    model is ahead of another.

    >>> [row["metrics"]["R10@1"] for row in published("ubuntu-v1") if row["model"] == "DAM"]
    [0.767]
    """
    rows = json.loads((RESULTS / "published.json").read_text("utf-8"))
    return [row for row in rows if corpus is None or row["corpus"] == corpus]


def published_beside(task: str, corpus: str) -> list[dict]:
    """The published scores to show beside our own on a corpus.

    A difference between two models is no score, so rows of differences are left out. Where nothing
    is published on a corpus of response selection, the row of the DAM paper stands in, named as one
    of another corpus.

    >>> [row["model"] for row in published_beside("selection", "chitchat")]
    ['DAM, on another corpus: ubuntu-v1']
    """
    rows = [row for row in published(corpus) if not row["split"].endswith("difference")]
    if rows or task != "selection":
        return rows
    for row in published("ubuntu-v1"):
        if row["model"] == "DAM":
            rows.append({**row, "model": "DAM, on another corpus: ubuntu-v1"})
    return rows
