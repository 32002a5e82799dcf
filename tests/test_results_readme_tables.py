"""results/readme_tables.py: the README's figures are those of results/measured."""

import json

from results.readme_tables import MEASURED, README, render, table


def record(name, seed, value, **more):
    figures = {"seconds": 120, "metrics": {"R10@1": value}, "floors": {}}
    return {"name": name, "corpus": "x", "seed": seed, **figures, **more}


def test_the_readme_is_up_to_date():
    text = README.read_text(encoding="utf-8")
    assert "<!-- table: ubuntu-irc" in text
    assert render(text) == text, "run: python -m results.readme_tables"


def test_rows_are_sorted_and_seeds_averaged():
    rows = table([record("a", 1, 0.2), record("b", 1, 0.5), record("b", 2, 0.7)]).splitlines()[2:]
    assert rows == ["| b | | .600 ± .141 | | | | | 1, 2 | 2 |", "| a | | .200 | | | | | 1 | 2 |"]


def test_every_measured_file_says_how_to_get_it_again():
    files = sorted(MEASURED.glob("*.json"))
    assert files
    for file in files:
        found = json.loads(file.read_text(encoding="utf-8"))
        needed = {"name", "model", "corpus", "split", "settings", "command", "seed", "hardware", "seconds", "commit"}
        assert needed | {"metrics", "floors", "history"} <= found.keys(), file.name
        assert found["command"].startswith("python "), file.name
