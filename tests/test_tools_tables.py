"""tools/tables.py: the numbers of README.md and docs/ are those of results/, whose rows are those
of recipes.

The pages show what a table can be: `test_every_page_is_up_to_date` notices other tables.
"""

import functools
import re
import shlex

import pytest
from helpers import refusal, run_script

from colloquy.base.config import parse_assignments
from colloquy.metrics.published import scores
from colloquy.models import MODELS
from colloquy.recipes import choose_recipe, merge_settings
from colloquy.tasks import RECIPES, TASKS
from colloquy.tools import tables
from colloquy.tools.tables import ROOT, render, write

RECIPE = "dam-ubuntu-irc-two-levels"

# === Pages ===


def test_every_page_is_up_to_date(capsys):
    write(check=True)
    assert capsys.readouterr().out == "up to date\n"


def test_the_readme_is_short_and_shows_every_system_and_published_model():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for name in (
        "DAM",
        "BiDAF",
        "Seq2seq, Luong's dot attention",
        "MEMMA",
        "MemN2N",
        "Entity MEMMA",
    ):
        assert f"| {name} |" in text
    for run in (path.parent for path in (ROOT / "pretrained").glob("*/README.md")):
        # chat.py makes it
        files = [file for file in run.rglob("*") if file.is_file() and "index" not in file.parts]
        megabytes = sum(file.stat().st_size for file in files) / 1e6
        [line] = re.findall(rf"\| \[`pretrained/{run.name}`\].*", text)
        assert line.endswith(f"| {megabytes:.0f} |"), run.name


def test_check_names_stale_pages_and_changes_nothing(tmp_path, monkeypatch, capsys):
    page = tmp_path / "docs" / "cards" / "page.md"
    page.parent.mkdir(parents=True)
    (tmp_path / "README.md").write_text("A word.", encoding="utf-8")
    page.write_text(
        'A <!-- value: "published: DAM (test)" ubuntu-v1 R10@1 -->.1<!-- end --> b.\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    assert "out of date: docs/cards/page.md;" in refusal(write, True)
    assert ">.1<" in page.read_text(encoding="utf-8")
    write()
    write(check=True)
    assert ">.767<" in page.read_text(encoding="utf-8")
    assert capsys.readouterr().out == "docs/cards/page.md\nup to date\n"


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("tabel: x", "scores, rows, value"),
        ("scores: no-such-recipe", "no score"),
        ("scores: dam-* colour=red", "colour"),
        (f"value: {RECIPE} ubuntu-irc R11@1", "R11@1"),
        ("value: results/published.json/9999", "index"),
        ("rows: results/benchmarks/absent.json/rows side", "absent.json"),
    ],
)
def test_a_marker_that_cannot_be_filled_is_quoted(marker, message):
    with pytest.raises(ValueError, match=f"<!-- {re.escape(marker)} -->.*{re.escape(message)}"):
        render(f"<!-- {marker} --><!-- end -->")


# === Each row of results/scores.jsonl can be trained again by its command ===

OUTSIDE = ("data", "workdir", "init_from", "save_minutes", "devices")
"""Flags of train.py that are no settings."""


@functools.cache
def flags_of_train():
    printed = run_script("train.py", "--helpfull").stdout
    return {line.split(":")[0].strip().removeprefix("--") for line in printed.splitlines()}


def parse(command):
    """The recipe and the settings of a call of train.py, and its other flags."""
    python, script, *words = shlex.split(command)
    assert (python, script) == ("python", "train.py"), command
    given = {}
    assignments = []
    while words:
        name, _, value = words.pop(0).removeprefix("--").partition("=")
        if name == "set":
            assignments.append(value or words.pop(0))
        else:
            given[name] = value
    recipe = given.pop("recipe", None)
    return recipe, given, parse_assignments(assignments)


def test_the_command_of_each_row_still_runs():
    commands = {row["command"] for row in scores() if row.get("command")}
    assert len(commands) > 300
    for command in commands:
        recipe, given, settings = parse(command)
        assert given.keys() <= flags_of_train() | {"resume"}, command
        for name, value in given.items():
            if name not in OUTSIDE:
                settings.setdefault(name, value)
        model, recipe = choose_recipe(given.get("model"), recipe, has_data=True)
        merged, _ = merge_settings(recipe, settings)
        merged.pop("model", None)
        spec = MODELS[model]
        TASKS[spec.task].split_settings(spec, merged)  # refuses unknown fields and wrong values


def test_every_row_says_how_to_get_it_again():
    rows = scores()
    assert len(rows) > 600
    for row in rows:
        if "seed" not in row:
            assert row["recipe"].startswith(("baseline: ", "upper bound: "))
            continue
        name, given, settings = parse(row["command"])
        # The recipe of a run with other settings has another name.
        assert bool(settings) == (name != row["recipe"])
        assert MODELS[RECIPES[name].model].task == row["task"]
        assert int(given["seed"]) == row["seed"]
        assert {"minutes", "hardware", "versions", "dirty"} <= row.keys()
        assert len(row["commit"]) == 7
    names = ("recipe", "corpus", "trained_on", "split", "seed", "search", "budget", "ensemble")
    assert len({tuple(row.get(name) for name in names) for row in rows}) == len(rows)
    assert len({recipe.title for recipe in RECIPES.values()}) == len(RECIPES)


def test_a_row_without_a_recipe_has_a_title():
    for row in scores():
        name = row["recipe"].partition(" with ")[0]
        has_origin = name in RECIPES or "title" in row or "seed" not in row
        assert has_origin or row["recipe"].startswith("ensemble"), row["recipe"]


def test_recipes_are_few():
    assert len(RECIPES) <= 36
