"""`results/published.json` is well-formed and has the scores of the papers' tables;
`metrics.tables`.
"""

import json

import pytest
from helpers import refusal, written

from colloquy.metrics import dialog, generation, reading_comprehension
from colloquy.metrics.published import published, published_beside, reference_rows, scores
from colloquy.metrics.ranking import METRICS
from colloquy.metrics.tables import by_corpus

NAMES = {
    "selection": set(METRICS),
    "dialog": set(dialog.METRICS),
    "generation": set(generation.METRICS),
    "reading_comprehension": set(reading_comprehension.METRICS),
}
FIELDS = {"task", "corpus", "split", "model", "metrics", "source"}
ROWS = published()


def test_published_rows_are_well_formed():
    for row in ROWS:
        assert row.keys() == FIELDS and row["source"], row
        metrics = row["metrics"]
        assert metrics and metrics.keys() <= NAMES[row["task"]], row
        by_k = [metrics[name] for name in ("R10@1", "R10@2", "R10@5") if name in metrics]
        assert by_k == sorted(by_k), row
    keys = [(row["corpus"], row["split"], row["model"], row["source"]) for row in ROWS]
    assert len(set(keys)) == len(keys)


def test_rows_beside_a_corpus_are_scores_and_name_another_corpus():
    beside = published_beside("dialog", "babi-task6")
    assert beside and all(" - " not in row["model"] for row in beside)
    [stand_in] = published_beside("selection", "chitchat")
    assert stand_in["model"].endswith("another corpus: ubuntu-v1")
    assert stand_in["metrics"]["R10@1"] == 0.767
    assert published_beside("selection", "ubuntu-v1") == published("ubuntu-v1")


@pytest.mark.parametrize("damaged", [b'{"recipe": ', b'{"recipe": "MEMMA"}', b"7", b'"\xff"'])
def test_a_damaged_line_of_scores_is_named(tmp_path, damaged):
    file = written(tmp_path / "scores.jsonl", json.dumps(row("MEMMA")) + "\r\n\r\n")
    assert scores(file) == [row("MEMMA")]
    written(file, file.read_bytes() + damaged)
    assert refusal(scores, file).startswith(f"{file}, line 3: expected a JSON object with corpus,")


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
    rows = [row("MEMMA", split=split) for split in ("dev-oov", "dev")]
    header = ["", "babi-task1 dev", "babi-task1 dev-oov", "mean", "seeds"]
    assert by_corpus(rows, ["per_response"])[0] == header


def test_baselines_and_upper_bounds_come_last():
    baselines = {
        "TF-IDF": {"per_response": 0.0625},
        "nearest": {"per_response": 0.667},
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
    ]
