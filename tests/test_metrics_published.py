"""`results/published.json` is well-formed and has the scores of the papers' tables;
`metrics.tables`.
"""

import pytest

from colloquy.metrics import dialog, generation, reading_comprehension
from colloquy.metrics.published import published, published_beside, reference_rows
from colloquy.metrics.ranking import METRICS
from colloquy.metrics.tables import by_corpus

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
    of_douban = {
        "MAP": 0.550,
        "MRR": 0.601,
        "P@1": 0.427,
        "R10@1": 0.254,
        "R10@2": 0.410,
        "R10@5": 0.757,
    }
    assert dam[1]["metrics"] == of_douban and "Zhou et al., ACL 2018" in dam[1]["source"]
    later = {row["model"]: row["metrics"]["R10@1"] for row in ubuntu[len(table) :]}
    assert later == {
        "DAM (fuzhenxin)": 0.790,
        "DAM (DeepPavlov)": 0.7795,
        "MSN": 0.800,
        "BERT-FP": 0.911,
    }
    assert [row["metrics"]["R10@1"] for row in published("ecommerce")] == [0.595, 0.606]
    assert published("ubuntu-irc") == []


BABI = {  # per response (per dialog) in percent, as the papers print them
    "task1 test": "100 (100), 99.9 (99.6), 100 (100), 100 (100), 100 (100), 100, 100, 100, 100",
    "task2 test": "68.4 (0), 100 (100), 98.3 (83.9), 100 (100), 100 (100), 100, 100",
    "task3 test": "64.9 (0), 74.9 (2), 74.9 (0), 74.9 (0), 74.9 (0), 96.3, 100, 100",
    "task4 test": "57.2 (0), 59.5 (3), 100 (100), 57.2 (0), 100 (100)",
    "task5 test": "75.4 (0), 96.1 (49.4), 93.4 (19.7), 96.3 (52.5), 98 (72.5), 100, 99.2",
    "task6 test": "22.6 (0), 41.1 (0), 41 (0), 47.4 (1.4), 48.7 (1.4), 55.6",
    "task1 test-oov": "60 (0), 72.3 (0), 96.5 (82.7), 82.4 (0), 100 (100)",
    "task2 test-oov": "68.3 (0), 78.9 (0), 94.5 (48.4), 78.9 (0), 94.2 (47.1)",
    "task3 test-oov": "65 (0), 74.4 (0), 75.2 (0), 75.3 (0), 75.1 (0), 96.7",
    "task4 test-oov": "57 (0), 57.6 (0), 100 (100), 57 (0), 100 (100), 100, 100",
    "task5 test-oov": "58.2 (0), 65.5 (0), 77.7 (0), 66.7 (0), 79.4 (0), 100, 92",
    "task6 test-oov": "",
}
PAPERS = [(model, "Bordes") for model in ("SupEmb", "MemNN", "MemNN+match type")]
PAPERS += [(model, "Liu and Perez") for model in ("GMemN2N", "GMemN2N+match type")]


@pytest.mark.parametrize("name", BABI)
def test_published_dialog_is_the_papers(name):
    task, split = name.split()

    def printed(per_response, per_dialog=None):
        return f"{100 * per_response:.4g}" + (
            "" if per_dialog is None else f" ({100 * per_dialog:.4g})"
        )

    rows = [row for row in published(f"babi-{task}") if row["split"] == split]
    assert ", ".join(printed(**row["metrics"]) for row in rows) == BABI[name]
    models = [(row["model"], row["source"].split(",")[0]) for row in rows[:5]]
    assert models == (PAPERS if rows else [])


def test_published_rows_are_well_formed():
    for row in ROWS:
        assert (
            row.keys() == {"task", "corpus", "split", "model", "metrics", "source"}
            and row["source"]
        ), row
        metrics = row["metrics"]
        assert metrics and metrics.keys() <= NAMES[row["task"]], row
        assert all(
            0 < value <= 1
            for name, value in metrics.items()
            if name not in ("perplexity", "per_dialog")
        ), row
        by_k = [metrics[name] for name in ("R10@1", "R10@2", "R10@5") if name in metrics]
        assert by_k == sorted(by_k), row
        if "MAP" in metrics:
            assert metrics["R10@1"] < metrics["P@1"] < metrics["MAP"], row
        if "per_dialog" in metrics:
            assert (
                0 <= metrics["per_dialog"] < metrics["per_response"] or metrics["per_response"] == 1
            ), row
    keys = [(row["corpus"], row["split"], row["model"], row["source"]) for row in ROWS]
    assert len(set(keys)) == len(keys) and sum("per_dialog" in row["metrics"] for row in ROWS) == 55


def test_rows_beside_a_corpus_are_scores_and_name_another_corpus():
    beside = published_beside("dialog", "babi-task6")
    assert beside and all(" - " not in row["model"] for row in beside)
    [stand_in] = published_beside("selection", "chitchat")
    assert stand_in["model"].endswith("another corpus: ubuntu-v1")
    assert stand_in["metrics"]["R10@1"] == 0.767
    assert published_beside("selection", "ubuntu-v1") == published("ubuntu-v1")


# === Tables ===


def row(name, corpus="babi-task1", split="dev", seed=1, value=0.5, **more):
    found = {"recipe": name, "task": "dialog", "corpus": corpus, "split": split, "seed": seed}
    return {**found, "metrics": {"per_response": value}, **more}


def lines(rows, *metrics):
    return by_corpus(rows, metrics or ["per_response"])[1]


def test_perplexity_is_no_fraction_and_less_of_it_is_better():
    rows = [
        row(name, metrics={"perplexity": value, "BLEU-1": 0.25})
        for name, value in (("bad", 70.0), ("good", 34.28))
    ]
    assert lines(rows, "perplexity", "BLEU-1") == [
        ["good", "34.3 (25.0)", "1"],
        ["bad", "70.0 (25.0)", "1"],
    ]


def test_models_of_one_name_with_different_settings_have_lines_of_their_own():
    settings = [(1, 0.5, 1), (2, 0.7, 1), (1, 0.9, 3)]
    rows = [
        row("MEMMA", seed=seed, value=value, settings={"hops": hops, "seed": seed})
        for seed, value, hops in settings
    ]
    assert lines(rows) == [["MEMMA, hops=3", "90.0", "1"], ["MEMMA, hops=1", "60.0 ± 14.1", "2"]]
    # A difference between corpora alone, as in the size of a vocabulary, makes no other model.
    rows = [row("MEMMA", corpus=f"babi-task{n}", settings={"vocabulary_size": n}) for n in (1, 2)]
    assert [line[0] for line in lines(rows)] == ["MEMMA"]


def test_columns_are_corpora_and_where_there_are_several_splits():
    corpora, splits = ("babi-task2", "babi-task1"), ("dev-oov", "dev")
    rows = [row("MEMMA", corpus=corpus, split=split) for corpus in corpora for split in splits]
    names = ["babi-task1 dev", "babi-task2 dev", "babi-task1 dev-oov", "babi-task2 dev-oov"]
    assert by_corpus(rows, ["per_response"])[0] == ["", *names, "mean", "seeds"]
    assert by_corpus(rows[::2], ["per_response"])[0] == [
        "",
        "babi-task1",
        "babi-task2",
        "mean",
        "seeds",
    ]
    assert by_corpus([], ["per_response"]) == (["", "seeds"], [])


def test_seeds_give_a_mean_and_a_deviation():
    rows = [
        row("MEMMA", seed=seed, value=value) for seed, value in ((1, 0.9), (2, 0.92), (5, 0.97))
    ]
    assert lines(rows) == [["MEMMA", "93.0 ± 3.6", "3"]]  # divided by n - 1
    assert lines([*rows, row("MEMMA", corpus="babi-task2", value=0.5), row("MEMR")]) == [
        # each column counts the same, whatever its seeds
        ["MEMMA", "93.0 ± 3.6", "50.0", "71.5", "1-3"],
        ["MEMR", "50.0", "", "", "1"],
    ]
    # the later counts
    assert lines([row("MEMMA", value=0.25), row("MEMMA", value=0.75)]) == [["MEMMA", "75.0", "1"]]


def test_baselines_and_upper_bounds_come_last():
    baselines = {
        "TF-IDF": {"per_response": 0.0625},
        "nearest": {"per_response": 0.667},
        "other": {"per_dialog": 0.25},
    }
    records = [
        row(
            "MEMMA",
            value=0.05,
            baselines=baselines,
            upper_bounds={"seen": {"per_response": 0.8314}},
        ),
        row("MEMMA", seed=2, value=0.05),
        row("MEMR", corpus="babi-task2", baselines={"TF-IDF": {"per_response": 0.03125}}),
    ]
    rows = [each for record in records for each in (record, *reference_rows(record))]
    assert lines(rows, "per_response", "per_dialog") == [
        ["MEMR", "", "50.0", "", "1"],
        ["MEMMA", "5.0 ± 0.0", "", "", "2"],
        ["upper bound: seen", "83.1", "", "", ""],
        ["baseline: nearest", "66.7", "", "", ""],
        ["baseline: TF-IDF", "6.2", "3.1", "4.7", ""],
        # as one has no perplexity that only repeats what people said
        ["baseline: other", " (25.0)", "", "", ""],
    ]
