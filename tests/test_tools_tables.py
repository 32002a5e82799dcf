"""tools/tables.py and tools/markdown.py: the numbers of the README and of docs/ are those of results/."""

import re

import pytest

from base.files import UserError
from metrics.names import of_today
from metrics.tables import read_record
from tasks import RECIPES
from tools import tables
from tools.benchmark_tables import sides
from tools.markdown import chosen, curve, samples, score_text, table
from tools.model_tables import MEASURED, ROOT, recipe_records, recipe_score
from tools.tables import main, pages, render


def record(name, seed, value, **more):
    metrics = {"seconds": 120, "epochs": 3.0, "metrics": {"R10@1": value}, "baselines": {}}
    return {"name": name, "corpus": "x", "seed": seed, **metrics, **more}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_page_is_up_to_date(page):
    text = page.read_text(encoding="utf-8")
    assert render(text) == text, "run: python -m tools.tables"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link


def test_the_readme_is_short_and_shows_every_system():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    for name in ("DAM", "BiDAF", "Seq2seq, Luong's dot attention", "MEMMA", "MemN2N", "Entity MEMMA"):
        assert f"| {name} |" in text


def test_check_names_stale_pages_and_changes_nothing(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("A <!-- value: published 0 metrics R10@1 -->.1<!-- end --> b.\n", encoding="utf-8")
    monkeypatch.setattr(tables, "pages", lambda: [page])
    monkeypatch.setattr(tables, "_shown", lambda path: path.name)
    monkeypatch.setattr(tables.flags.FLAGS["check"], "value", True)
    with pytest.raises(UserError, match=r"out of date: page\.md"):
        main()
    assert ">.1<" in page.read_text(encoding="utf-8")
    monkeypatch.setattr(tables.flags.FLAGS["check"], "value", False)
    main()
    assert page.read_text(encoding="utf-8") == "A <!-- value: published 0 metrics R10@1 -->.638<!-- end --> b.\n"


def test_a_marker_that_cannot_be_rendered_is_quoted():
    for marker, message in (
        ("<!-- tabel: x -->", "expected one of table, "),
        ("<!-- table: no-such-corpus -->", "no measured record"),
        ("<!-- value: published 9999 -->", "index"),
        ("<!-- speed: absent -->", "absent.json"),
        ("<!-- table: squad colour=red -->", "colour"),
    ):
        with pytest.raises(ValueError, match=re.escape(marker)) as error:
            render(f"{marker}\n<!-- end -->")
        assert message in str(error.value)


def test_rows_are_sorted_and_seeds_averaged():
    rows = table([record("a", 1, 0.2), record("b", 1, 0.5), record("b", 2, 0.7)]).splitlines()[2:]
    assert rows == ["| b | | .600 ± .141 | | | | | 3 | 1, 2 | 2 |", "| a | | .200 | | | | | 3 | 1 | 2 |"]


def test_every_measured_file_says_how_to_get_it_again():
    files = sorted(MEASURED.rglob("*.json"))
    assert len(files) > 300
    for file in files:
        found = read_record(file)
        needed = {"name", "model", "corpus", "split", "settings", "command", "seed", "hardware", "seconds", "commit"}
        assert needed | {"metrics", "history"} <= found.keys(), file.name
        assert found["command"].startswith("python "), file.name


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_what_its_records_say(name):
    assert RECIPES[name].score == recipe_score(RECIPES[name])
    assert (RECIPES[name].score == "not measured") == (not RECIPES[name].results)


def test_the_records_of_a_recipe_are_its_own():
    for name, recipe in RECIPES.items():
        for found in recipe_records(recipe):
            settings = {**of_today(found["model"], found["settings"]["model"]), **found["settings"]["training"]}
            assert found["model"] == recipe.model, name
            for field, value in recipe.settings.items():
                assert settings[field] == value, f"{name}: {field}"


def test_a_score_averages_seeds_before_corpora():
    row = {"task": "dialog", "split": "dev", "seconds": 60, "epochs": 8, "hardware": "h"}
    found = [
        {**row, "corpus": corpus, "seed": seed, "metrics": {"per_response": value}}
        for corpus, seed, value in (("t1", 1, 0.25), ("t1", 2, 0.75), ("t2", 1, 1.0))
    ]
    assert score_text(found, 8.0) == "dev per_response .750, the mean of 2 tasks; seeds 1, 2, 60 seconds per task, h"


def test_replies_found_by_another_search_have_their_own_row():
    metrics = {"seconds": 60, "epochs": 1, "baselines": {}, "corpus": "x", "task": "generation", "name": "a", "seed": 1}
    found = [
        {**metrics, "metrics": {"perplexity": 30.0, "BLEU-1": 0.1}},
        {**metrics, "metrics": {"perplexity": 30.0, "BLEU-1": 0.1}, "search": "greedy", "seed": 2},
        {**metrics, "metrics": {"perplexity": 31.0, "BLEU-1": 0.2}, "search": "beam of 5", "baselines": {"f": {}}},
    ]
    rows = [row.split("|")[1].strip() for row in table(found).splitlines()[2:]]
    assert rows == ["a", "a, beam of 5", "*baseline: f*"]
    assert "| 1, 2 |" in table(found)


PUBLISHED = [
    {"model": "BiDAF, single", "split": "test", "metrics": {"R10@1": 0.3}},
    {"model": "BiDAF, single", "split": "dev", "metrics": {"R10@1": 0.25}},
    {"model": "DAM", "metrics": {"R10@1": 0.4}},
]


def test_a_table_shows_the_published_rows_that_it_asks_for():
    assert chosen(PUBLISHED, "") == []
    assert chosen(PUBLISHED, "DAM; BiDAF, * (dev)") == [PUBLISHED[2], PUBLISHED[1]]
    assert chosen(PUBLISHED, "*; DAM") == PUBLISHED
    with pytest.raises(ValueError, match=r"'SMN'.*Known: BiDAF, single \(test\), BiDAF, single \(dev\), DAM"):
        chosen(PUBLISHED, "SMN")
    rows = table([record("a", 1, 0.2)], chosen(PUBLISHED, "BiDAF, single (dev)")).splitlines()[3:]
    assert rows == ["| *published: BiDAF, single (dev)* | | .250 | | | | | | | |"]


def test_a_curve_at_some_steps_stands_beside_the_published_one():
    rows = [
        {"step": step, "epoch": step / 100, "loss": loss, "seconds": 60.0, "perplexity": 9.0}
        for step, loss in ((500, 5.0), (600, 4.5), (1000, 4.0))
    ]
    others = [{"model": "tutorial", "curve": {"500": 3.77, "1000": 3.47}}]
    shown = curve({"task": "generation", "history": rows}, [500, 1000], others).splitlines()
    assert shown[0] == "| steps | loss | *published: tutorial* | perplexity | minutes |"
    assert shown[2:] == ["| 500 | 5.00 | 3.77 | 9.00 | 1 |", "| 1,000 | 4.00 | 3.47 | 9.00 | 1 |"]


def test_a_curve_is_that_of_the_longest_run_whose_name_is_not_left_out(monkeypatch):
    runs = [("a, more", 2.0), ("a", 1.0)]
    history = {name: [{"epoch": last, "loss": last, "seconds": 60.0, "R10@1": 0.5}] for name, last in runs}
    records = [record(name, 1, 0.5, epochs=last, task="selection", history=history[name]) for name, last in runs]
    monkeypatch.setattr(tables, "measured", lambda corpus, files: records)
    records.append({**record("ensemble of more", 1, 0.5, epochs=3.0, task="selection"), "seeds": [1, 2]})
    for option, epoch in (("", 2), (' without="more"', 1), (' only="more"', 2)):
        assert f"\n| {epoch} | {epoch}.00 |" in render(f"<!-- curve: x{option} -->\n<!-- end -->")


def test_samples_have_a_column_per_search():
    pair = {"source": "a | b", "target": "c ."}
    records = [
        {"unit": "words", "search": search, "samples": [{**pair, "reply": reply}]}
        for search, reply in (("greedy", "x"), ("beam of 5", "y !"))
    ]
    assert samples(records).splitlines()[0] == "| what was said | greedy | beam of 5 | what a human answered |"
    assert samples(records).splitlines()[2] == "| a \\| b | x | y! | c. |"


def test_two_sides_stand_beside_their_ratio():
    rows = {"squad": {"per_second": [90.0, 60.0], "peak_gigabytes": [3.25, 2.0]}}
    shown = sides({"sides": ["a", "b"], "unit": "questions", "rows": rows}).splitlines()
    assert shown[0] == "| questions per second | a | b | ratio | GB, a | GB, b |"
    assert shown[2] == "| squad | 90 | 60 | 1.50 | 3.2 | 2.0 |"


def test_rows_of_a_benchmark_are_shown_by_field():
    shown = render("<!-- rows: lazy_adam side milliseconds absent -->\n<!-- end -->").splitlines()
    assert shown[1:4] == ["| side | milliseconds | absent |", "|---|---|---|", "| exact Adam | 150 | |"]


def test_models_are_shown_or_left_out_by_a_part_of_their_name(monkeypatch):
    records = [record("a, 5 units", 1, 0.2), record("a, no b", 1, 0.5)]
    monkeypatch.setattr(tables, "measured", lambda corpus, files: records)
    for option, kept, gone in (
        ('only="no b"', "| a, no b |", "| a, 5"),
        ('without="no b"', "| a, 5 units |", "| a, no"),
    ):
        shown = render(f"<!-- table: x {option} -->\n<!-- end -->")
        assert kept in shown
        assert gone not in shown


def test_a_table_is_of_the_records_in_files_like_a_pattern():
    shown = render('<!-- table: dailydialog files="chat/chat-none-*-1-dev.json" -->\n<!-- end -->')
    names = [line.split(" | ")[0] for line in shown.splitlines()[3:-1] if "baseline" not in line]
    assert names == ["| Seq2seq, no attention", "| Seq2seq, no attention, without the pairs of train"]


def test_budgets_leave_out_ensembles_and_runs_that_had_less(monkeypatch):
    history = [{"epoch": epoch, "seconds": 60 * epoch, "R10@1": 0.1 * epoch} for epoch in (1.0, 2.0, 3.0)]
    records = [record("a", 1, 0.3, history=history), record("b", 1, 0.1, history=history[:1], epochs=1.0)]
    records.append({**record("Ensemble of 2: a", 1, 0.4, history=history), "seeds": [1, 2]})
    monkeypatch.setattr(tables, "measured", lambda corpus, files: records)
    assert tables._table("x", epochs="2").splitlines()[2:] == ["| a | | .200 | | | | | 2 | 1 | 2 |"]


def test_rows_of_one_task_are_chosen_by_their_names(monkeypatch):
    """What was measured on some tasks only stands in no table of all."""

    def record(task, split, value, **settings):
        found = {
            "name": "x",
            "model": "memma",
            "task": "dialog",
            "corpus": f"babi-task{task}",
            "split": split,
            "seed": 1,
        }
        settings = {"model": {"speaker": True, "time": True, **settings}}
        metrics = {"per_response": value, "per_dialog": 0.25}
        return {**found, "settings": settings, "metrics": metrics, "baselines": {"nothing": metrics}}

    found = [record(task, "dev", 0.5) for task in range(1, 6)]
    found += [record(1, split, value, heads=1) for split, value in (("dev", 0.75), ("dev-oov", 0.625))]
    monkeypatch.setattr(tables, "measured", lambda: found)
    assert tables._dialog_task("babi-task1", "1 head; 8 heads").splitlines() == [
        "| | babi-task1 dev | babi-task1 dev-oov | mean | seeds |",
        "|---|---|---|---|---|",
        "| MEMMA, 1 head | 75.0 (25.0) | 62.5 (25.0) | 68.8 | 1 |",
    ]
    assert [line.split(" |")[0] for line in tables._dialog("dev").splitlines()[2:]] == [
        "| MEMMA",
        "| *baseline: nothing*",
    ]
