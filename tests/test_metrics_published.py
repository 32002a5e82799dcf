"""`results/published.json`: well-formed, and the scores of the papers' tables."""

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
