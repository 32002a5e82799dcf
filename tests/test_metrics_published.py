"""`results/published.json`: well-formed, and the scores of the paper's table."""

import json

import pytest

from metrics import dialog, generation, reading_comprehension
from metrics.published import PUBLISHED, published
from metrics.ranking import METRICS

# the metric names of each task; a task that comes in adds its own
NAMES = {
    "selection": set(METRICS),
    "dialog": set(dialog.METRICS),
    "generation": set(generation.METRICS),
    "reading_comprehension": set(reading_comprehension.METRICS),
}
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


def test_published_has_the_whole_table_and_later_scores():
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


def test_published_scores_grow_with_k():
    for row in (row for row in ROWS if row["task"] == "selection"):
        by_k = [row["metrics"][n] for n in ("R10@1", "R10@2", "R10@5") if n in row["metrics"]]
        assert by_k == sorted(by_k), row
        if "MAP" in row["metrics"]:
            assert row["metrics"]["R10@1"] < row["metrics"]["P@1"] < row["metrics"]["MAP"], row


BABI = {  # per response (per dialog) in percent, as the papers print them
    ("babi-task1", "test"): ["100 (100)", "99.9 (99.6)", "100 (100)", "100 (100)", "100 (100)", "100", "100"],
    ("babi-task2", "test"): ["68.4 (0)", "100 (100)", "98.3 (83.9)", "100 (100)", "100 (100)", "100", "100"],
    ("babi-task3", "test"): ["64.9 (0)", "74.9 (2)", "74.9 (0)", "74.9 (0)", "74.9 (0)", "96.3"],
    ("babi-task4", "test"): ["57.2 (0)", "59.5 (3)", "100 (100)", "57.2 (0)", "100 (100)"],
    ("babi-task5", "test"): ["75.4 (0)", "96.1 (49.4)", "93.4 (19.7)", "96.3 (52.5)", "98 (72.5)", "100", "99.2"],
    ("babi-task6", "test"): ["22.6 (0)", "41.1 (0)", "41 (0)", "47.4 (1.4)", "48.7 (1.4)", "55.6"],
    ("babi-task1", "test-oov"): ["60 (0)", "72.3 (0)", "96.5 (82.7)", "82.4 (0)", "100 (100)"],
    ("babi-task2", "test-oov"): ["68.3 (0)", "78.9 (0)", "94.5 (48.4)", "78.9 (0)", "94.2 (47.1)"],
    ("babi-task3", "test-oov"): ["65 (0)", "74.4 (0)", "75.2 (0)", "75.3 (0)", "75.1 (0)", "96.7"],
    ("babi-task4", "test-oov"): ["57 (0)", "57.6 (0)", "100 (100)", "57 (0)", "100 (100)"],
    ("babi-task5", "test-oov"): ["58.2 (0)", "65.5 (0)", "77.7 (0)", "66.7 (0)", "79.4 (0)", "100", "92"],
    ("babi-task6", "test-oov"): [],
}


@pytest.mark.parametrize(("corpus", "split"), BABI)
def test_published_dialog_is_the_papers(corpus, split):
    def printed(per_response, per_dialog=None):
        return f"{100 * per_response:.4g}" + ("" if per_dialog is None else f" ({100 * per_dialog:.4g})")

    rows = published(corpus, split)
    assert [printed(**row["metrics"]) for row in rows] == BABI[corpus, split]
    models = [row["model"] for row in rows]
    if rows:
        assert models[:5] == ["SupEmb", "MemNN", "MemNN+match type", "GMemN2N", "GMemN2N+match type"]
    later = {3: ["GLMP"], 5: ["HCN", "GLMP"], 6: ["HCN"] * bool(rows)}
    later |= {1: ["MEMR", "MEMMA"], 2: ["MEMR", "MEMMA"]} if split == "test" else {}
    assert models[5:] == later.get(int(corpus[-1]), [])
    sources = {"SupEmb": "Bordes", "MemNN": "Bordes", "GMemN2N": "Liu and Perez", "HCN": "Williams", "GLMP": "Wu"}
    sources |= {"MEMR": "Ren", "MEMMA": "Ren"}
    assert all(row["source"].startswith(sources[row["model"].split("+")[0]]) for row in rows)


def test_published_differences_are_those_of_the_memma_article():
    found = {(row["corpus"], row["model"], row["against"]): row["differences"] for row in ROWS if "against" in row}
    assert found == {
        ("babi-ten-tasks", "MEMMA", "MEMR"): {"per_response": 0.0165},
        ("babi-ten-tasks", "MEMMA, speaker + time", "MEMR, speaker + time"): {"per_response": 0.0146},
        ("babi-task6", "MEMMA", "LTR-SEM"): {"per_response": 0.185},
        ("babi-task6", "MEMMA", "MEMR"): {"per_response": 0.014},
        ("babi-task6", "MEMMA, speaker + time", "MEMR, speaker + time"): {"per_response": 0.026},
    }


def test_published_split_filters_only_rows_that_name_one():
    both = published("babi-task3")
    assert both == published("babi-task3", "test") + published("babi-task3", "test-oov")
    assert [row["split"] for row in both] == ["test"] * 6 + ["test-oov"] * 6
    assert published("babi-task3", "dev") == []
    assert published("douban", "test") == published("douban") != []


def test_published_dialogs_are_harder_than_responses():
    rows = [row["metrics"] for row in ROWS if "per_dialog" in row["metrics"]]
    assert len(rows) == 55
    assert all(row["per_dialog"] < row["per_response"] or row["per_response"] == 1 for row in rows)


def test_published_of_an_unknown_corpus_is_empty():
    assert published("ubuntu-irc") == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['corpus']}-{row.get('split')}-{row['model']}")
def test_published_row_is_well_formed(row):
    keys = {"task", "corpus", "model", "metrics", "source"}
    assert set(row) - {"curve", "differences", "against"} == (keys if row["task"] == "selection" else keys | {"split"})
    assert row["source"] and ("differences" in row) == ("against" in row)
    if "differences" in row:
        assert not row["metrics"] and all(-1 < value < 1 for value in row["differences"].values())
    else:
        assert row["metrics"] or all(int(step) > 0 and loss > 0 for step, loss in row["curve"].items())
    if row["task"] in NAMES:
        assert set(row["metrics"]) <= NAMES[row["task"]]
        free = {"perplexity"} | ({"per_dialog"} if row["metrics"].get("per_dialog") == 0 else set())
        assert all(0 < value <= 1 or name in free for name, value in row["metrics"].items())


def test_published_rows_are_unique():
    keys = [(row["corpus"], row.get("split"), row["model"], row.get("against"), row["source"]) for row in ROWS]
    assert len(set(keys)) == len(keys)
