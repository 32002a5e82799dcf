"""The scores that others published, from `results/published.json`."""

import json
from pathlib import Path

PUBLISHED = Path(__file__).resolve().parents[1] / "results" / "published.json"


def published(corpus: str, split: str | None = None) -> list[dict]:
    """The published scores on a corpus, in the file's order: the paper's own table first.

    Args:
        corpus: `"ubuntu-v1"`, `"douban"` or `"ecommerce"`: the full published corpora, so that no
            sample or look-alike (as `ubuntu-irc`) is compared with their scores; or
            `"babi-task1"` to `"babi-task6"`.
        split: Where a corpus has scores on several, only those on this one (dialog bAbI: `"test"`,
            and `"test-oov"` with entities that training never names); rows that name no split stay.

    Returns:
        Rows `{"task", "corpus", "model", "metrics": {name: value}, "source"}`, those of dialog bAbI
        with a `"split"`; metrics from 0 to 1, named as by the task's file in `metrics/` and absent
        where the source does not give them; an empty list for a corpus without published scores.

    >>> [row["metrics"]["R10@1"] for row in published("ubuntu-v1") if row["model"] == "DAM"]
    [0.767]
    >>> [row["metrics"]["per_response"] for row in published("babi-task1", "test-oov")][:2]
    [0.6, 0.723]
    >>> published("ubuntu-irc")
    []
    """
    rows = [row for row in json.loads(PUBLISHED.read_text("utf-8")) if row["corpus"] == corpus]
    return [row for row in rows if split is None or row.get("split", split) == split]
