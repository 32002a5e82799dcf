"""`results/published.json`: well-formed, and the scores of the papers' tables."""

import pytest

from metrics import dialog, generation, reading_comprehension
from metrics.published import published
from metrics.ranking import METRICS

NAMES = {
    "selection": set(METRICS),
    "dialog": set(dialog.METRICS),
    "generation": set(generation.METRICS),
    "reading_comprehension": set(reading_comprehension.METRICS),
}
ROWS = published()


def test_published_selection_is_the_papers_table_and_later_scores():
    ubuntu, douban = published("ubuntu-v1"), published("douban")
    table = [row["model"] for row in ubuntu if "Table 1" in row["source"]]
    assert table == [row["model"] for row in douban if "Table 1" in row["source"]]
    assert table == [
        *("DualEncoder_lstm", "DualEncoder_bilstm", "MV-LSTM", "Match-LSTM", "Multiview", "DL2R"),
        *("SMN_dynamic", "DAM", "DAM_first", "DAM_last", "DAM_self", "DAM_cross"),
    ]
    dam = [rows[table.index("DAM")] for rows in (ubuntu, douban)]
    assert dam[0]["metrics"] == {"R2@1": 0.938, "R10@1": 0.767, "R10@2": 0.874, "R10@5": 0.969}
    of_douban = {"MAP": 0.550, "MRR": 0.601, "P@1": 0.427, "R10@1": 0.254, "R10@2": 0.410, "R10@5": 0.757}
    assert dam[1]["metrics"] == of_douban and "Zhou et al., ACL 2018" in dam[1]["source"]
    later = {row["model"]: row["metrics"]["R10@1"] for row in ubuntu[len(table) :]}
    assert later == {"DAM (fuzhenxin)": 0.790, "DAM (DeepPavlov)": 0.7795, "MSN": 0.800, "BERT-FP": 0.911}
    assert [row["metrics"]["R10@1"] for row in published("ecommerce")] == [0.595, 0.606]
    assert published("ubuntu-irc") == []


BABI = {  # per response (per dialog) in percent, as the papers print them
    ("task1", "test"): ["100 (100)", "99.9 (99.6)", "100 (100)", "100 (100)", "100 (100)", *["100"] * 4],
    ("task2", "test"): ["68.4 (0)", "100 (100)", "98.3 (83.9)", "100 (100)", "100 (100)", "100", "100"],
    ("task3", "test"): ["64.9 (0)", "74.9 (2)", "74.9 (0)", "74.9 (0)", "74.9 (0)", "96.3", "100", "100"],
    ("task4", "test"): ["57.2 (0)", "59.5 (3)", "100 (100)", "57.2 (0)", "100 (100)"],
    ("task5", "test"): ["75.4 (0)", "96.1 (49.4)", "93.4 (19.7)", "96.3 (52.5)", "98 (72.5)", "100", "99.2"],
    ("task6", "test"): ["22.6 (0)", "41.1 (0)", "41 (0)", "47.4 (1.4)", "48.7 (1.4)", "55.6"],
    ("task1", "test-oov"): ["60 (0)", "72.3 (0)", "96.5 (82.7)", "82.4 (0)", "100 (100)"],
    ("task2", "test-oov"): ["68.3 (0)", "78.9 (0)", "94.5 (48.4)", "78.9 (0)", "94.2 (47.1)"],
    ("task3", "test-oov"): ["65 (0)", "74.4 (0)", "75.2 (0)", "75.3 (0)", "75.1 (0)", "96.7"],
    ("task4", "test-oov"): ["57 (0)", "57.6 (0)", "100 (100)", "57 (0)", "100 (100)", "100", "100"],
    ("task5", "test-oov"): ["58.2 (0)", "65.5 (0)", "77.7 (0)", "66.7 (0)", "79.4 (0)", "100", "92"],
    ("task6", "test-oov"): [],
}
PAPERS = [(model, "Bordes") for model in ("SupEmb", "MemNN", "MemNN+match type")]
PAPERS += [(model, "Liu and Perez") for model in ("GMemN2N", "GMemN2N+match type")]


@pytest.mark.parametrize(("task", "split"), BABI)
def test_published_dialog_is_the_papers(task, split):
    def printed(per_response, per_dialog=None):
        return f"{100 * per_response:.4g}" + ("" if per_dialog is None else f" ({100 * per_dialog:.4g})")

    rows = [row for row in published(f"babi-{task}") if row["split"] == split]
    assert [printed(**row["metrics"]) for row in rows] == BABI[task, split]
    models = [(row["model"], row["source"].split(",")[0]) for row in rows[:5]]
    assert models == (PAPERS if rows else [])


def test_published_rows_are_well_formed():
    for row in ROWS:
        assert row.keys() == {"task", "corpus", "split", "model", "metrics", "source"} and row["source"], row
        metrics = row["metrics"]
        assert metrics and metrics.keys() <= NAMES[row["task"]], row
        assert all(0 < value <= 1 for name, value in metrics.items() if name not in ("perplexity", "per_dialog")), row
        by_k = [metrics[name] for name in ("R10@1", "R10@2", "R10@5") if name in metrics]
        assert by_k == sorted(by_k), row
        if "MAP" in metrics:
            assert metrics["R10@1"] < metrics["P@1"] < metrics["MAP"], row
        if "per_dialog" in metrics:
            assert 0 <= metrics["per_dialog"] < metrics["per_response"] or metrics["per_response"] == 1, row
    keys = [(row["corpus"], row["split"], row["model"], row["source"]) for row in ROWS]
    assert len(set(keys)) == len(keys) and sum("per_dialog" in row["metrics"] for row in ROWS) == 55
