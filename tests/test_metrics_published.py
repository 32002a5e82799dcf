"""`results/published.json`: well-formed, and the figures of the paper's table."""

import json

import pytest

from metrics.published import PUBLISHED, published
from metrics.ranking import METRICS

NAMES = {"selection": set(METRICS)}  # the metric names of each task; a task that comes in adds its own
ROWS = json.loads(PUBLISHED.read_text("utf-8"))


def test_published_dam_is_the_papers():
    first = {c: next(r for r in published(c) if r["model"] == "DAM") for c in ("ubuntu-v1", "douban")}
    assert first["ubuntu-v1"]["metrics"] == {
        "R2@1": 0.938,
        "R10@1": 0.767,
        "R10@2": 0.874,
        "R10@5": 0.969,
    }
    assert first["douban"]["metrics"] == {
        "MAP": 0.550,
        "MRR": 0.601,
        "P@1": 0.427,
        "R10@1": 0.254,
        "R10@2": 0.410,
        "R10@5": 0.757,
    }
    assert "Zhou et al., ACL 2018" in first["douban"]["source"]


def test_published_has_the_whole_table_and_later_figures():
    table = [row["model"] for row in published("ubuntu-v1") if "Table 1" in row["source"]]
    assert table == [row["model"] for row in published("douban") if "Table 1" in row["source"]]
    assert table == [
        *("DualEncoder_lstm", "DualEncoder_bilstm", "MV-LSTM", "Match-LSTM", "Multiview", "DL2R"),
        *("SMN_dynamic", "DAM", "DAM_first", "DAM_last", "DAM_self", "DAM_cross"),
    ]
    later = {row["model"]: row["metrics"]["R10@1"] for row in published("ubuntu-v1")[len(table) :]}
    assert later == {
        "DAM (fuzhenxin)": 0.790,
        "DAM (DeepPavlov)": 0.7795,
        "MSN": 0.800,
        "BERT-FP": 0.911,
    }
    assert [row["metrics"]["R10@1"] for row in published("ecommerce")] == [0.595, 0.606]


def test_published_figures_grow_with_k():
    for row in (row for row in ROWS if row["task"] == "selection"):
        by_k = [row["metrics"][n] for n in ("R10@1", "R10@2", "R10@5") if n in row["metrics"]]
        assert by_k == sorted(by_k), row
        if "MAP" in row["metrics"]:
            assert row["metrics"]["R10@1"] < row["metrics"]["P@1"] < row["metrics"]["MAP"], row


def test_published_of_an_unknown_corpus_is_empty():
    assert published("ubuntu-irc") == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['corpus']}-{row['model']}")
def test_published_row_is_well_formed(row):
    assert set(row) == {"task", "corpus", "model", "metrics", "source"}
    assert row["source"]
    assert row["metrics"]
    if row["task"] in NAMES:
        assert set(row["metrics"]) <= NAMES[row["task"]]
        assert all(0 < value <= 1 for value in row["metrics"].values())


def test_published_rows_are_unique():
    keys = [(row["corpus"], row["model"], row["source"]) for row in ROWS]
    assert len(set(keys)) == len(keys)
