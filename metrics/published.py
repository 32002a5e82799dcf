"""The figures that others published, from `results/published.json`."""

import json
from pathlib import Path

PUBLISHED = Path(__file__).resolve().parents[1] / "results" / "published.json"


def published(corpus: str) -> list[dict]:
    """The published figures on a corpus, in the file's order: the paper's own table first.

    Args:
        corpus: `"ubuntu-v1"`, `"douban"` or `"ecommerce"`: the full published corpora, so that no
            sample or look-alike (as `ubuntu-irc`) is compared with their figures.

    Returns:
        Rows `{"task", "corpus", "model", "metrics": {name: value}, "source"}`, metrics named as by
        the task's file in `metrics/` and absent where the source does not give them; an empty list
        for a corpus without published figures.

    >>> [row["metrics"]["R10@1"] for row in published("ubuntu-v1") if row["model"] == "DAM"]
    [0.767]
    >>> published("ubuntu-irc")
    []
    """
    return [row for row in json.loads(PUBLISHED.read_text("utf-8")) if row["corpus"] == corpus]
