"""engine/groups.py, `evaluate.py --by`."""

import json

import pytest
from helpers import ran, script_refusal


def test_groups_of_examples_are_a_table_and_a_file(trained_selection, tmp_path):
    flags = [f"--run={trained_selection.path}", "--by=turns,words", "--split=test"]
    done = ran("evaluate.py", *flags, f"--out={tmp_path}")
    assert "| turns | n |" in done.stdout and "| words | n |" in done.stdout
    for name in ("turns", "words"):
        kept = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        assert kept["by"] == name and kept["split"] == "test"
        assert sum(row["n"] for row in kept["rows"]) == 11
    assert "turns.json exists" in script_refusal("evaluate.py", *flags, f"--out={tmp_path}")


@pytest.mark.slow
def test_a_model_is_compared_with_a_baseline_and_with_a_file_of_scores(trained_selection, tmp_path):
    run = f"--run={trained_selection.path}"
    scores = tmp_path / "scores.txt"
    ran("evaluate.py", run, "--nobaselines", f"--out={scores}")
    result = tmp_path / "same.json"
    ran("evaluate.py", run, f"--against={scores}", f"--out={result}")
    metrics = json.loads(result.read_text(encoding="utf-8"))["metrics"]
    assert all(row["difference"] == row["low"] == row["high"] == 0 for row in metrics.values())

    ran("evaluate.py", run, "--against=bm25", f"--out={tmp_path / 'bm25.json'}")
    kept = json.loads((tmp_path / "bm25.json").read_text(encoding="utf-8"))
    assert kept["against"] == ["bm25"] and kept["examples"] == 11
    scores.write_text("0.5\n")
    assert "lines" in script_refusal("evaluate.py", run, f"--against={scores}")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--by=levels"], "are grouped by turns, last_turn, words, echo. Received: levels"),
        (["--by=turns", "--split=dev,test"], "--split: expected one split"),
    ],
)
def test_what_by_takes(trained_selection, flags, message):
    run = f"--run={trained_selection.path}"
    assert message in script_refusal("evaluate.py", run, *flags)
