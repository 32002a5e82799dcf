"""tools/tables.py: the numbers of README.md and docs/ are those of results/, whose rows are those of recipes."""

import json
import re

import pytest

from base.files import UserError
from metrics.published import scores
from models import MODELS
from tasks import RECIPES
from tools import tables
from tools.tables import ROOT, render, rerun, write


def row(recipe="dam-ubuntu-irc", value=0.5, seed=1, **more):
    found = {"recipe": recipe, "task": "selection", "corpus": "x", "split": "dev", "metrics": {"R10@1": value}}
    return {**found, "seed": seed, "epochs": 3.0, "minutes": 2.0, "commit": "c0ffee1", "hardware": "a CPU", **more}


def baseline(name="baseline: random", value=0.1, **more):
    return {"recipe": name, "task": "selection", "corpus": "x", "split": "dev", "metrics": {"R10@1": value}, **more}


@pytest.fixture
def lines(monkeypatch):
    """The lines of the table that a marker makes of some rows, and of some published ones."""

    def made(marker, *rows, published=()):
        monkeypatch.setattr(tables, "scores", lambda: list(rows))
        monkeypatch.setattr(tables, "published", lambda: list(published))
        return render(f"<!-- {marker} -->\n<!-- end -->").splitlines()[1:-1]

    return made


# === Pages ===

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_is_up_to_date(page):
    text = page.read_text(encoding="utf-8")
    assert render(text) == text, "run: python -m tools.tables"
    assert set(re.findall(r"<!-- (\w+)", text)) <= {*tables.KINDS, "end"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link


def test_the_readme_is_short_and_shows_every_system_and_published_model():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    for name in ("DAM", "BiDAF", "Seq2seq, Luong's dot attention", "MEMMA", "MemN2N", "Entity MEMMA"):
        assert f"| {name} |" in text
    for run in (path.parent for path in (ROOT / "pretrained").glob("*/README.md")):
        files = [file for file in run.rglob("*") if file.is_file() and "index" not in file.parts]  # chat.py makes it
        megabytes = sum(file.stat().st_size for file in files) / 1e6
        [line] = re.findall(rf"\| \[`pretrained/{run.name}`\].*", text)
        assert line.endswith(f"| {megabytes:.0f} |"), run.name


def test_check_names_stale_pages_and_changes_nothing(tmp_path, monkeypatch, capsys):
    page = tmp_path / "docs" / "cards" / "page.md"
    page.parent.mkdir(parents=True)
    (tmp_path / "README.md").write_text("A word.", encoding="utf-8")
    page.write_text('A <!-- value: "published: DAM (test)" ubuntu-v1 R10@1 -->.1<!-- end --> b.\n', encoding="utf-8")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    with pytest.raises(UserError, match=r"out of date: docs/cards/page\.md;"):
        write(check=True)
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
        ("value: dam-ubuntu-irc ubuntu-irc R11@1", "R11@1"),
        ("value: results/published.json/9999", "index"),
        ("rows: results/benchmarks/absent.json/rows side", "absent.json"),
    ],
)
def test_a_marker_that_cannot_be_filled_is_quoted(marker, message):
    with pytest.raises(ValueError, match=f"<!-- {re.escape(marker)} -->.*{re.escape(message)}"):
        render(f"<!-- {marker} -->\n<!-- end -->")


# === The rows of results/ ===


def test_every_row_says_how_to_get_it_again():
    rows = scores()
    assert len(rows) > 600
    for found in rows:
        if "seed" not in found:
            assert found["recipe"].startswith(("baseline: ", "upper bound: ")) and found["metrics"]
            continue
        recipe = RECIPES[found["recipe"]]
        assert MODELS[recipe.model].task == found["task"]
        assert found["command"].startswith(f"python train.py --recipe={found['recipe']} --seed={found['seed']}")
        assert found["epochs"] <= recipe.training["epochs"] + 0.01
        assert {"minutes", "hardware", "versions", "dirty"} <= found.keys() and len(found["commit"]) == 7
        assert "budget" in found or found["evaluation"]["command"].startswith("python evaluate.py --run=RUN")
    names = ("recipe", "corpus", "split", "seed", "search", "budget", "ensemble")
    assert len({tuple(found.get(name) for name in names) for found in rows}) == len(rows)


def test_titles_are_unique():
    assert len({recipe.title for recipe in RECIPES.values()}) == len(RECIPES)


# === Tables ===


def test_the_best_stands_first_and_seeds_are_averaged(lines):
    several = [
        row(value=0.5),
        row(value=0.7, seed=2, minutes=3.0),
        row("dam-sample", 0.2),
        baseline(),
        baseline(corpus="y"),
    ]
    header, _, *found = lines("scores: dam-*", *several)
    assert header == "| | R2@1 | R10@1 | R10@2 | R10@5 | MAP | MRR | epochs | seeds | minutes |"
    best, second = RECIPES["dam-ubuntu-irc"].title, RECIPES["dam-sample"].title
    assert found == [
        f"| {best} | | .600 ± .141 | | | | | 3 | 1, 2 | 2 |",
        f"| {second} | | .200 | | | | | 3 | 1 | 2 |",
        "| *baseline: random* | | .100 | | | | | | | |",
    ]


def test_rows_that_are_more_than_a_recipe_say_so(lines):
    rows = [
        row(ensemble=2, value=0.9),
        row(epochs_before=[1.5, 2.0], value=0.8, stale="code"),
        row(seed=2, commit="babe001", value=0.6, stale="code", parts={"unseen": {"R10@1": 0.25}}),
        row(budget=1.0, value=0.1, epochs=1.0),
    ]
    title = RECIPES["dam-ubuntu-irc"].title
    assert lines("scores: dam-*", *rows)[2:] == [
        f"| Ensemble of 2: {title} | | .900 | | | | | 3 | 1 | 2 | |",
        f"| {title} | | .700 ± .141 | | | | | 1.5 + 2 + 3 | 1, 2 | 2 | c0ffee1 and 1 more |",
    ]
    assert lines("scores: dam-* epochs=1", *rows)[2:] == [f"| {title} | | .100 | | | | | 1 | 1 | 2 |"]
    assert lines("scores: dam-*", rows[2])[3] == f"| {title}, unseen | | .250 | | | | | | | | |"


def test_perplexity_is_no_fraction_and_less_is_better(lines):
    chat = {"task": "generation", "corpus": "x", "split": "dev"}
    rows = [{**row("chat-dot"), **chat, "metrics": {"perplexity": value, "BLEU-1": 0.1}} for value in (31.0, 30.0)]
    rows[0]["search"] = "beam of 5"
    found = [line.split(" | ")[:3] for line in lines("scores: chat-*", *rows)[2:]]
    assert [cells[1] for cells in found] == ["30.00", "31.00"] and found[1][0].endswith("attention, beam of 5")


def test_published_scores_stand_below(lines):
    others = [
        {**baseline(value=value), "model": "BiDAF", "split": split, "source": "s"}
        for split, value in (("test", 0.3), ("dev", 0.25))
    ]
    assert lines("scores: dam-*", row(), published=others)[3:] == []
    assert lines('scores: dam-* "published: BiDAF (d*"', row(), published=others)[3:] == [
        "| *published: BiDAF (dev)* | | .250 | | | | | | | |"
    ]


def test_dialogs_have_a_column_per_task_and_recipes_that_were_measured_on_all(lines):
    def dialog(recipe, task, **more):
        metrics = {"per_response": 0.5, "per_dialog": 0.25}
        return {**row(recipe, **more), "task": "dialog", "corpus": f"babi-task{task}", "metrics": metrics}

    rows = [dialog("babi-memma", 1), dialog("babi-memma", 2, stale="code"), dialog("babi-memr", 1)]
    assert lines("scores: babi-*", *rows) == [
        "| | babi-task1 | babi-task2 | mean | seeds | commit |",
        "|---|---|---|---|---|---|",
        "| MEMMA | 50.0 (25.0) | 50.0 (25.0) | 50.0 | 1 | c0ffee1 |",
    ]


def test_recipes_are_listed_with_what_they_reached(lines):
    rows = [row(minutes=1.0, epochs=0.5, corpus="x"), row(value=0.7, seed=2, corpus="y"), row(search="beam", value=0.9)]
    found = lines("scores: dam-ubuntu-irc dam-douban layout=recipes", *rows)[2:]
    assert found == [
        "| `dam-douban` | douban | not measured | | | | |",
        "| `dam-ubuntu-irc` | ubuntu-irc | dev R10@1 .600, mean of 2 tasks | 3 | 1, 2 | 2 minutes | a CPU |",
    ]
    [one] = lines("scores: dam-ubuntu-irc layout=recipes", rows[0])[2:]
    assert "| dev R10@1 .500 | 0.5 of 2 | 1 | 60 seconds | a CPU |" in one


def test_values_are_means_over_corpora_differences_and_numbers_of_files(lines, tmp_path, monkeypatch):
    rows = [row(value=0.2), row(value=0.4, seed=2), row(value=0.7, corpus="y"), row("dam-sample", 0.6)]

    lines("scores: dam-*", *rows)

    def shown(marker):
        return render(f"<!-- {marker} --><!-- end -->").removeprefix(f"<!-- {marker} -->").removesuffix("<!-- end -->")

    assert shown("value: dam-ubuntu-irc * R10@1") == ".500"
    assert shown("value: dam-ubuntu-irc x R10@1 minus=dam-sample times=100 digits=2 sign=+") == "-30.00"
    assert shown("value: dam-ubuntu-irc x minutes digits=0") == "2"
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    things = [{"side": "a", "GB": 1234.5}, {"side": "b", "GB": 0.0123, "pair": [0.5, 0.25]}]
    (tmp_path / "b.json").write_text(json.dumps({"rows": things}))
    assert shown("value: b.json/rows/0/GB digits=1") == "1,234.5"
    assert lines("rows: b.json/rows side GB pair:3") == [
        "| side | GB | pair |",
        "|---|---|---|",
        "| a | 1,234 | |",
        "| b | 0.0123 | .500 ± .250 |",
    ]


# === Measuring again ===


def test_rows_are_measured_again_by_their_commands(tmp_path, monkeypatch, capsys):
    script = "import json, pathlib, sys\nflags = dict(word[2:].split('=') for word in sys.argv[1:])\n"
    (tmp_path / "train.py").write_text(
        script + "pathlib.Path(flags['workdir']).mkdir()\nassert flags['data'] == 'here/x'"
    )
    found = {"dev": {"metrics": {"R10@1": 0.75}}}
    (tmp_path / "evaluate.py").write_text(script + f"json.dump({found}, open(flags['run'] + '/metrics.json', 'w'))")
    train, evaluate = (
        "python train.py --recipe=a --data=build/x",
        {"command": "python evaluate.py --run=RUN --split=dev"},
    )
    good = row(command=train, evaluation=evaluate, stale="an old commit")
    rows = [
        good,
        row(command=f"{train} --init_from=b", evaluation=evaluate),
        row(command=train, minutes=9.0, evaluation=evaluate),
    ]
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "scores", lambda: [*rows, baseline()])
    rerun(5, seed=1, datasets="here", minutes=5.0)
    assert capsys.readouterr().out.splitlines() == [
        "dam-ubuntu-irc, x dev, seed 1, commit c0ffee1",
        "  stale: an old commit",
        "  R10@1: claimed 0.5000, found 0.7500",
    ]
    with pytest.raises(UserError, match=r"python train\.py --recipe=a .*AssertionError"):
        rerun(1, seed=1, datasets="there", minutes=5.0)
