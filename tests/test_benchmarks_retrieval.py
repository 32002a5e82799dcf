"""The benchmarks of answers by retrieval, over five contexts of a small corpus."""

import json

from helpers import run_script


def benchmark(run, prepared, tmp_path, *arguments):
    """The record of a benchmark."""
    out, source = tmp_path / "record.json", f"--source={prepared.parent / 'raw'}"
    arguments = [f"--run={run.path}", source, "--contexts=5", f"--out={out}", *arguments]
    done = run_script("benchmarks/retrieval.py", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


def test_benchmark_counts_what_is_found(trained_selection, prepared, tmp_path):
    record = benchmark(trained_selection, prepared, tmp_path, "--what=found")
    assert record["contexts"] == 5 and record["true_response_in_index"] in (0.2, 0.4, 0.6, 0.8, 1.0)
    found = {row["found_by"]: row for row in record["rows"]}
    assert list(found) == ["BM25", "contexts", "vectors", "together", "model"]
    assert found["model"]["R@100"] == found["together"]["R@100"]  # ranking changes the order of the first 32 alone
    recalls = [found["model"][f"R@{k}"] for k in (1, 10, 100)]
    assert recalls == sorted(recalls) and recalls[-1] <= record["true_response_in_index"]
    assert found["contexts"]["R@100"] == 0  # the true responses are in the index without their contexts


def test_benchmark_compares_what_is_answered(trained_selection, prepared, tmp_path):
    record = benchmark(trained_selection, prepared, tmp_path, "--what=answers")
    rows = {row.pop("chosen_by"): row for row in record["rows"]}
    weighted = [f"model and {weight} x question" for weight in (0, 8, 12, 16, 24, 32, 64)]
    assert list(rows) == ["people", "any", "words", "model and 16 x words", "question", *weighted]
    assert all(0 <= row["echo"] <= 1 and row["echo_error"] >= 0 for row in rows.values())
    assert rows["people"]["news"] == max(row["news"] for row in rows.values()) > 0
    assert rows["words"]["echo"] >= rows["question"]["echo"]  # the most similar to what was said, of all that was found
    others = [row["chosen_by"] for row in record["of_the_others"]]
    assert others == ["people", "model and 16 x words", record["chosen"]] and record["chosen"] in weighted
