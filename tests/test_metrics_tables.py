"""results/tables.py: rows of text from records."""

import pytest

from metrics.tables import by_corpus


def record(name, corpus="babi-task1", split="dev", seed=1, value=0.5, **more):
    return {"name": name, "corpus": corpus, "split": split, "seed": seed, "metrics": {"per_response": value}, **more}


def test_a_row_a_model_and_a_column_a_corpus():
    records = [
        record("MEMR", value=0.25),
        record("MEMMA", corpus="babi-task2", value=1.0),
        record("MEMMA", value=0.875),
    ]
    assert by_corpus(records, ["per_response"]) == (
        ["", "babi-task1", "babi-task2", "mean", "seeds"],
        [["MEMMA", "87.5", "100.0", "93.8", "1"], ["MEMR", "25.0", "", "", "1"]],
    )


def test_a_baseline_may_lack_the_first_metric():
    """As one has no perplexity that only repeats what people said."""
    lacking = {"constant": {"per_dialog": 0.25}}
    records = [record("MEMR", corpus=f"babi-task{n}", baselines=lacking) for n in (1, 2)]
    assert by_corpus(records, ["per_response", "per_dialog"])[1][1] == ["baseline: constant", *[" (25.0)"] * 2, "", ""]


def test_the_best_model_stands_first():
    values = {"MemN2N": 0.3, "MEMMA": 0.7, "MEMR": 0.5}
    _, rows = by_corpus([record(name, value=value) for name, value in values.items()], ["per_response"])
    assert [row[0] for row in rows] == ["MEMMA", "MEMR", "MemN2N"]


def test_perplexity_is_no_fraction_and_less_of_it_is_better():
    def of(name, perplexity):
        scores = {"perplexity": perplexity, "BLEU-1": 0.25}
        return {"name": name, "corpus": "chat", "split": "dev", "seed": 1, "metrics": scores}

    _, rows = by_corpus([of("bad", 70.0), of("good", 34.28)], ["perplexity", "BLEU-1"])
    assert rows == [["good", "34.3 (25.0)", "1"], ["bad", "70.0 (25.0)", "1"]]


def test_models_of_one_name_with_different_settings_are_rows_of_their_own():
    def of(seed, value, corpus="babi-task1", **settings):
        more = {"settings": {"model": settings, "fit": {"seed": seed}}}
        return record("MEMMA", corpus=corpus, seed=seed, value=value, **more)

    records = [of(1, 0.5, hops=1), of(2, 0.7, hops=1), of(1, 0.9, hops=3)]
    assert by_corpus(records, ["per_response"])[1] == [
        ["MEMMA, hops=3", "90.0", "1"],
        ["MEMMA, hops=1", "60.0 ± 14.1", "2"],
    ]
    # What differs between corpora alone, as the size of a vocabulary does, is no other model.
    records = [of(1, 0.5, vocabulary_size=7), of(1, 0.7, corpus="babi-task2", vocabulary_size=9)]
    assert [row[0] for row in by_corpus(records, ["per_response"])[1]] == ["MEMMA"]


def test_splits_are_named_where_there_are_several():
    records = [
        record("MEMMA", corpus=corpus, split=split)
        for corpus in ("babi-task2", "babi-task1")
        for split in ("dev-oov", "dev")
    ]
    header, _ = by_corpus(records, ["per_response"])
    names = ["babi-task1 dev", "babi-task2 dev", "babi-task1 dev-oov", "babi-task2 dev-oov"]
    assert header == ["", *names, "mean", "seeds"]
    assert by_corpus(records[::2], ["per_response"])[0] == ["", "babi-task1", "babi-task2", "mean", "seeds"]


def test_seeds_give_a_mean_and_a_deviation():
    records = [record("MEMMA", seed=seed, value=value) for seed, value in ((1, 0.9), (2, 0.92), (5, 0.97))]
    assert by_corpus(records, ["per_response"])[1] == [["MEMMA", "93.0 ± 3.6", "3"]]  # divided by n - 1
    more = [*records, record("MEMMA", corpus="babi-task2", value=0.5), record("MEMR")]
    assert by_corpus(more, ["per_response"])[1] == [
        ["MEMMA", "93.0 ± 3.6", "50.0", "71.5", "1-3"],  # each column counts the same, whatever its seeds
        ["MEMR", "50.0", "", "", "1"],
    ]


def test_a_seed_counts_once():
    records = [record("MEMMA", value=0.25), record("MEMMA", value=0.75)]  # the later measurement counts
    assert by_corpus(records, ["per_response"])[1] == [["MEMMA", "75.0", "1"]]


def test_other_metrics_stand_in_brackets():
    def both(name, seed, value, other):
        return {**record(name, seed=seed), "metrics": {"per_response": value, "per_dialog": other}}

    records = [both("MEMMA", 1, 0.9, 0.5), both("MEMMA", 2, 0.9, 0.6), both("MEMR", 1, 0.75, 0.0), record("MemN2N")]
    assert by_corpus(records, ["per_response", "per_dialog"])[1] == [
        ["MEMMA", "90.0 ± 0.0 (55.0 ± 7.1)", "2"],
        ["MEMR", "75.0 (0.0)", "1"],
        ["MemN2N", "50.0", "1"],
    ]
    assert by_corpus(records[:2], ["per_dialog"])[1] == [["MEMMA", "55.0 ± 7.1", "2"]]


def test_baselines_and_upper_bounds_stand_below():
    baselines = {"TF-IDF": {"per_response": 0.0625}, "nearest": {"per_response": 0.667}}
    upper_bounds = {"seen": {"per_response": 0.8314}}
    records = [
        record("MEMMA", value=0.05, baselines=baselines, upper_bounds=upper_bounds),
        record("MEMMA", seed=2, value=0.05),  # the baselines of a dataset are always the same
        record("MEMR", corpus="babi-task2", baselines={"TF-IDF": {"per_response": 0.03125}}),
    ]
    assert by_corpus(records, ["per_response"])[1] == [
        ["MEMR", "", "50.0", "", "1"],
        ["MEMMA", "5.0 ± 0.0", "", "", "2"],
        ["baseline: TF-IDF", "6.2", "3.1", "4.7", ""],
        ["baseline: nearest", "66.7", "", "", ""],
        ["upper bound: seen", "83.1", "", "", ""],
    ]


@pytest.mark.parametrize("metrics", [["per_response"], ["per_response", "per_dialog"]])
def test_no_records_make_an_empty_table(metrics):
    assert by_corpus([], metrics) == (["", "seeds"], [])
