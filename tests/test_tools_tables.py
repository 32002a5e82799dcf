"""tools/tables.py: the numbers of README.md and docs/ are those of results/, whose rows are those
of recipes.
"""

import json
import re

import pytest
from helpers import refusal

from colloquy.metrics.published import scores
from colloquy.models import MODELS
from colloquy.tasks import RECIPES
from colloquy.tools import tables
from colloquy.tools.tables import ROOT, render, write

RECIPE = "dam-ubuntu-irc-two-levels"
TITLE = RECIPES[RECIPE].title


def baseline(recipe="baseline: random", value=0.1, **more):
    found = {
        "recipe": recipe,
        "task": "selection",
        "corpus": "x",
        "split": "dev",
        "metrics": {"R10@1": value},
    }
    return {**found, **more}


def row(recipe=RECIPE, value=0.5, seed=1, **more):
    facts = {"epochs": 3.0, "minutes": 2.0, "commit": "c0ffee1", "hardware": "a CPU"}
    return baseline(recipe, value, seed=seed, **{**facts, **more})


@pytest.fixture
def filled(monkeypatch):
    """The lines that a marker makes of some rows, and of some published ones."""

    def made(marker, *rows, published=()):
        monkeypatch.setattr(tables, "scores", lambda: list(rows))
        monkeypatch.setattr(tables, "published", lambda: list(published))
        text = render(f"<!-- {marker} --><!-- end -->")
        return (
            text.removeprefix(f"<!-- {marker} -->")
            .removesuffix("<!-- end -->")
            .strip("\n")
            .splitlines()
        )

    return made


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


def test_every_row_says_how_to_get_it_again():
    rows = scores()
    assert len(rows) > 600
    for found in rows:
        if "seed" not in found:
            assert found["recipe"].startswith(("baseline: ", "upper bound: ")) and found["metrics"]
            continue
        command = r"python train\.py --recipe=([\w-]+)( --set=\S+)* --seed=(\d+) "
        name, settings, seed = re.match(command, found["command"]).groups()
        recipe = RECIPES[name]  # a recipe that is gone is another one with settings
        assert (settings is None) == (name == found["recipe"]) and int(seed) == found["seed"]
        assert MODELS[recipe.model].task == found["task"]
        assert settings or found["epochs"] <= recipe.training.epochs + 0.01
        assert {"minutes", "hardware", "versions", "dirty"} <= found.keys() and len(
            found["commit"]
        ) == 7
        assert "budget" in found or found["evaluation"]["command"].startswith(
            "python evaluate.py --run=RUN"
        )
    names = ("recipe", "corpus", "trained_on", "split", "seed", "search", "budget", "ensemble")
    assert len({tuple(found.get(name) for name in names) for found in rows}) == len(rows)
    assert len({recipe.title for recipe in RECIPES.values()}) == len(RECIPES)


# === Tables ===


def test_the_best_comes_first_and_baselines_last_and_seeds_are_averaged(filled):
    rows = [
        row(),
        row(value=0.7, seed=2, minutes=3.0),
        row("dam-chitchat", 0.2),
        baseline(),
        baseline(corpus="y"),
    ]
    facts = {"model": "BiDAF", "source": "s"}
    others = baseline(split="test", value=0.3, **facts), baseline(split="dev", value=0.25, **facts)
    header, _, *found = filled('scores: dam-* "published: BiDAF (d*"', *rows, published=others)
    assert header == "| | R2@1 | R10@1 | R10@2 | R10@5 | MAP | MRR | epochs | seeds | minutes |"
    assert found == [
        f"| {TITLE} | | .600 ± .141 | | | | | 3 | 1, 2 | 2 |",
        f"| {RECIPES['dam-chitchat'].title} | | .200 | | | | | 3 | 1 | 2 |",
        "| *baseline: random* | | .100 | | | | | | | |",
        "| *published: BiDAF (dev)* | | .250 | | | | | | | |",
    ]


def test_rows_that_are_more_than_a_recipe_say_so(filled):
    rows = [
        row(ensemble=2, value=0.9),
        row(epochs_before=[1.5, 2.0], value=0.8, stale="code"),
        row(seed=2, commit="babe001", value=0.6, stale="code", parts={"unseen": {"R10@1": 0.25}}),
        row(budget=1.0, value=0.1, epochs=1.0),
    ]
    assert filled("scores: dam-*", *rows)[2:] == [
        f"| Ensemble of 2: {TITLE} | | .900 | | | | | 3 | 1 | 2 | |",
        f"| {TITLE} | | .700 ± .141 | | | | | 1.5 + 2 + 3 | 1, 2 | 2 | c0ffee1 and 1 more |",
    ]
    assert filled("scores: dam-* epochs=1", *rows)[2:] == [
        f"| {TITLE} | | .100 | | | | | 1 | 1 | 2 |"
    ]
    assert filled("scores: dam-*", rows[2])[3] == f"| {TITLE}, unseen | | .250 | | | | | | | | |"


def test_less_perplexity_is_better_and_a_search_is_named(filled):
    rows = [
        row("chat-dot", task="generation", metrics={"perplexity": value, "BLEU-1": 0.1})
        for value in (31.0, 30.0)
    ]
    rows[0]["search"] = "beam of 5"
    title = RECIPES["chat-dot"].title
    found = [line.split(" | ")[:2] for line in filled("scores: chat-*", *rows)[2:]]
    assert found == [[f"| {title}", "30.00"], [f"| {title}, beam of 5", "31.00"]]


def test_dialogs_have_a_column_per_task_and_recipes_that_were_measured_on_all(filled):
    metrics = {"task": "dialog", "metrics": {"per_response": 0.5, "per_dialog": 0.25}}
    measured = [("babi-memma", 1), ("babi-memma", 2), ("babi-memr", 1)]
    rows = [
        row(recipe, corpus=f"babi-task{task}", stale="code", **metrics) for recipe, task in measured
    ]
    header, _, *found = filled("scores: babi-*", *rows)
    assert header == "| | babi-task1 | babi-task2 | mean | seeds | commit |"
    assert found == ["| MEMMA | 50.0 (25.0) | 50.0 (25.0) | 50.0 | 1 | c0ffee1 |"]
    parts = {
        "parts": {
            "manager: larger": {"per_response": 0.25},
            "manager: smaller": {"per_response": 0.75},
        }
    }
    rows = [
        row("babi-memma", corpus="both", trained_on=corpus, **metrics, **parts)
        for corpus in ("one", "two")
    ]
    assert filled("scores: babi-*", *rows)[::2] == [
        "| | manager: larger | manager: smaller | mean | seeds |",
        "| MEMMA, trained on one | 25.0 | 75.0 | 50.0 | 1 |",
    ]


def test_recipes_are_listed_with_what_they_reached(filled):
    rows = [
        row(minutes=1.0, epochs=0.5),
        row(value=0.7, seed=2, corpus="y"),
        row(search="beam", value=0.9),
    ]
    assert filled(f"scores: {RECIPE} dam-douban layout=recipes", *rows)[2:] == [
        "| `dam-douban` | douban | not measured | | | | |",
        f"| `{RECIPE}` | ubuntu-irc | dev R10@1 .600, mean of 2 tasks | 3 | 1, 2 "
        "| 2 minutes | a CPU |",
    ]
    [one] = filled(f"scores: {RECIPE} layout=recipes", rows[0])[2:]
    assert "| dev R10@1 .500 | 0.5 of 2 | 1 | 60 seconds | a CPU |" in one


def test_values_and_rows(filled, tmp_path, monkeypatch):
    rows = [
        row(value=0.2),
        row(value=0.4, seed=2),
        row(value=0.7, corpus="y"),
        row("dam-chitchat", 0.6),
    ]
    assert filled(f"value: {RECIPE} * R10@1", *rows) == [".500"]
    assert filled(f"value: {RECIPE} x R10@1 times=100 digits=2", *rows) == ["30.00"]
    assert filled(f"value: {RECIPE} x minutes digits=0", *rows) == ["2"]
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    things = [{"side": "a", "GB": 1234.5}, {"side": "b", "GB": 0.0123, "pair": [0.5, 0.25]}]
    (tmp_path / "b.json").write_text(json.dumps({"rows": things}))
    assert filled("value: b.json/rows/0/GB digits=1") == ["1,234.5"]
    header, _, *found = filled("rows: b.json/rows side GB pair:3")
    assert [header, *found] == [
        "| side | GB | pair |",
        "| a | 1,234 | |",
        "| b | 0.0123 | .500 ± .250 |",
    ]
