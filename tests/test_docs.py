"""docs/: files, flags, links and names of its pages exist; examples work; docstrings are plain
English.
"""

import dataclasses
import doctest
import functools
import importlib
import json
import re
import shutil
import subprocess
import sys
import types
from unittest.mock import patch

import numpy as np
import pytest
from helpers import ROOT, ran, refusal, run_process, run_script, script_refusal, written
from test_data_corpora import Reader, of_paths

from colloquy.data.corpora import CORPORA
from colloquy.engine.run import Run
from colloquy.engine.settings import build_config
from colloquy.metrics import generation
from colloquy.models import MODELS, ModelEntry
from colloquy.tasks import RECIPES, TASKS
from colloquy.tools.plots import describe, plots

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TESTS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_*.py")}


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request):
    return request.param


@pytest.fixture
def text(page):
    text = page.read_text(encoding="utf-8")
    # its commands are of their day
    return re.sub(r"(?m)^    .*$", "", text) if page.name == "experiments.md" else text


def path_of_program(name):
    """The path of a script, or of a module that `python -m` runs: `colloquy.tools.tables`."""
    if not name.startswith("colloquy."):
        return name
    path = name.removeprefix("colloquy.").replace(".", "/")
    return f"{path}/__main__.py" if (ROOT / path).is_dir() else f"{path}.py"


def test_the_tests_and_files_that_a_page_names_exist(text):
    for name in re.findall(r"`(test_\w+)`", text):
        assert name in TESTS or any(f"def {name}(" in code for code in TESTS.values()), name
    named = re.findall(r"`((?:[a-z_]+/)+[\w.]+\.(?:py|json|md))`", text)
    for name in re.findall(r"python (?:-m )?([\w.]+)", text):
        named.append(path_of_program(name))
    for name in named:
        written_here = f"```python\n# {name}\n" in text
        assert (
            (ROOT / name).exists() or written_here or not name.endswith((".py", ".json", ".md"))
        ), name


def anchors(page):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_to_what_they_hold(page, text):
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for link, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)[^)]*\)", prose):
        if not link.startswith(("http://", "https://")):
            target = page.parent / link if link else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), f"{link}#{anchor}"
    for name, link in re.findall(r"`(\w+)` in\s+\[[^\]]*\]\(([^)]+)\)", text):
        code = (page.parent / link).read_text(encoding="utf-8")
        assert re.search(rf"^(def |class |){name}\b", code, re.MULTILINE), f"{name} in {link}"


def commands(text):
    """`(script, flags, values of flags)` of every command in a page; a `\\` continues a line."""
    text = re.sub(r"\bcolloquy (\w+) --", r"python \1.py --", text)
    for script, arguments in re.findall(
        r"python ((?:-m )?[\w.]+)([^\n`|#]*)", text.replace("\\\n    ", "")
    ):
        path = path_of_program(script.removeprefix("-m "))
        if (ROOT / path).exists():
            yield (
                path,
                re.findall(r"--(?:no)?(\w+)", arguments),
                dict(re.findall(r"--(\w+)=(\S+)", arguments)),
            )


@functools.cache
def flags_of(script):
    return set(re.findall(r"(?m)^  --(?:\[no\])?(\w+)", run_script(script, "--helpfull").stdout))


MODULES_OF_DIAGRAMS = {
    "bidaf": ["bidaf"],
    "dam": ["dam"],
    "memory_networks": ["memma", "dialog_memory"],
    "seq2seq": ["seq2seq"],
}
"""The modules of models/ whose layers the diagram of a page shows."""


@pytest.mark.parametrize("name", MODULES_OF_DIAGRAMS)
def test_a_diagram_is_of_the_layers_that_its_model_has(name):
    """A layer is a box with corners, `id["layer<br>note"]`; ends of the network are round."""
    code = ""
    for module in MODULES_OF_DIAGRAMS[name]:
        code += (ROOT / "models" / f"{module}.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    [diagram] = re.findall(r"```mermaid\n(.*?)```", page, re.DOTALL)
    layers = re.findall(r'\w\["(\w+)', diagram)
    assert layers
    for layer in layers:
        assert re.search(rf'"{layer}(_\d|_\{{\w\}})?"', code), layer


def test_plots_show_the_records():
    for name, panels in plots().items():
        drawn = (ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        assert describe(panels) in drawn, "run: python -m colloquy.tools.plots"


def test_commands_of_a_page_have_flags_that_exist(text):
    for script, given, values in commands(text):
        assert set(given) <= flags_of(script), f"{script}: {given}"
        if "recipe" in given and "..." not in values["recipe"]:
            assert set(values["recipe"].split(",")) <= set(RECIPES), values["recipe"]
        if "corpus" in given and values["corpus"] != "FORMAT":
            # of docs/add_a_corpus.md
            assert values["corpus"] in CORPORA or values["corpus"] == "script"


def test_the_map_names_files_that_exist_and_every_file_of_the_shared_rooms():
    folder, drawn = ROOT, set()
    for line in (
        (ROOT / "docs" / "architecture.md")
        .read_text(encoding="utf-8")
        .split("```text\n")[1]
        .splitlines()
    ):
        first, *others = re.findall(r"[\w/]+(?:\.py|/(?= |$))", line) or [""]
        if line[:1] not in ("", " ", "`"):
            folder = (ROOT / first).parent if first.endswith(".py") else ROOT / first
        drawn |= {
            folder / first if line[:1] == " " else ROOT / first,
            *(folder / name for name in others),
        }
    assert [path for path in drawn if not path.exists()] == []
    shared = {
        path
        for room in ("base", "data", "engine", "serving")
        for path in (ROOT / room).glob("*.py")
    }
    assert {path for path in shared - drawn if path.name != "__init__.py"} == set()


# === The walks that add a model, a corpus, a metric ===

RUN = {"config": {}, "training": {}, "dataset": {"path": None, "name": "x"}}
"""The rest of the `config.json` of a run."""
WALKS = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("add_a_*.md"))
)


def code_of(name):
    """The code of a walk that begins with this file's name."""
    [code] = re.findall(rf"```python\n# {re.escape(name)}\n(.*?)```", WALKS, re.DOTALL)
    return code


def example(name):
    """The names that this code defines."""
    names = {"__name__": "example"}
    exec(compile(code_of(name), name, "exec"), names)
    return names


@pytest.mark.parametrize("command", [("check",), ("format", "--check")], ids=" ".join)
def test_the_files_of_the_walks_pass_lint(command, tmp_path):
    for name in re.findall(r"```python\n# (\S+)\n", WALKS):
        is_part_of_a_file = (ROOT / name).exists()
        if not is_part_of_a_file:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            written(tmp_path / name, code_of(name))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
    run = subprocess.run(ruff, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}"


@pytest.fixture
def bag_match(monkeypatch):
    """The model to follow, at the place that the page names: its file, its row."""
    module = types.ModuleType("colloquy.models.bag_match")
    vars(module).update(example("models/bag_match.py"))
    monkeypatch.setitem(sys.modules, "colloquy.models.bag_match", module)
    [row] = re.findall(r'`"bag-match": (ModelEntry\(.*?\)),`', WALKS)
    monkeypatch.setitem(MODELS, "bag-match", eval(row, {"ModelEntry": ModelEntry}))


def test_the_model_to_follow_passes_the_test_to_follow(bag_match):
    """And other logits do not."""
    names = example("tests/test_models_bag_match.py")
    test = names["test_bag_match_follows_its_equation"]
    test()
    assert MODELS["bag-match"].build is names["BagMatch"]

    names["to_numpy"] = lambda logits: np.asarray(logits) + 0.01
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        test()


def test_a_model_without_hashed_words_refuses_a_dataset_with_them(bag_match, prepared):
    dataset = dataclasses.replace(TASKS["selection"].load_dataset(prepared), hashed_words=7)
    task = TASKS["selection"]
    message = refusal(build_config, task, MODELS["bag-match"], dataset, {})
    assert "hashed_words 7, BagMatchConfig" in message


def test_the_corpus_to_follow_is_read(tmp_path):
    script = types.SimpleNamespace(**example("data/corpora/script.py"))
    row = code_of("tests/test_data_corpora.py").removeprefix('"script": ').removesuffix(",\n")
    reader = eval(row, {"Reader": Reader, "of_paths": of_paths, "script": script})
    good, bad = (
        written(tmp_path / "train.txt", reader.good),
        written(tmp_path / "dev.txt", "ANN: Hi"),
    )
    assert script.find_splits(tmp_path)["train"] == [good] and reader.read(good) == reader.found
    [(expected, [line])] = reader.bad.items()
    message = refusal(reader.read, written(bad, line))
    assert message == f"{bad}, line 1: expected {expected}. Received: {line!r}"


def test_the_metric_to_follow_is_what_its_doctest_says():
    metric = example("metrics/generation.py")["unique"]
    [found] = doctest.DocTestFinder().find(metric, globs={"unique": metric})
    assert doctest.DocTestRunner().run(found) == doctest.TestResults(failed=0, attempted=1)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A directory outside of the clone with the modules that the pages show for one."""
    modules = ("my_project", "my_corpora", "my_metrics")
    codes = {name: code_of(f"{name}.py") for name in modules}
    codes["bag_match"] = code_of("models/bag_match.py")
    codes["script"] = code_of("data/corpora/script.py")
    for name, code in codes.items():
        written(tmp_path / f"{name}.py", code)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with (
        patch.dict(MODELS),
        patch.dict(RECIPES),
        patch.dict(CORPORA),
        patch.dict(generation.ADDED),
        patch.dict(sys.modules),
    ):
        yield tmp_path


@pytest.mark.slow
def test_a_project_of_its_own_adds_a_model_a_recipe_a_corpus_and_a_metric(project, prepared):
    train = ("--import=my_project", "--recipe=bag-match-short", "--workdir=run")
    ran("train.py", *train, f"--data={prepared}", "--epochs=1", "--batch_size=16")
    run = Run.open("run")
    assert (run.model, run.config.max_turns) == ("bag-match", 3)
    ran("export.py", "--import=my_project", "--run=run", "--out=exported")

    (project / "plays").mkdir()
    for name in ("train.txt", "dev.txt"):
        written(project / "plays" / name, "ANN: Hi!\nBOB: Hello, Ann.\n")
    prepare = ("--import=my_corpora", "--corpus=script", "--source=plays", "--out=data")
    ran("prepare.py", *prepare, "--min_count=1")
    assert (project / "data" / "dataset.json").is_file()

    importlib.import_module("my_metrics")
    metrics = generation.generation_metrics(["a", "a"], [["a"], ["b"]])
    assert metrics["unique"] == 0.5


def test_a_module_that_is_missing_and_a_run_of_a_model_that_is_not_registered(project, prepared):
    assert "--import=absent: there is no such module in" in script_refusal(
        "train.py", "--import=absent"
    )
    written(project / "config.json", json.dumps({**RUN, "model": "not-registered"}))
    assert "--import=MODULE adds a model of your own" in refusal(Run.open, project)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "expected"), [(0, "fitted, saved and loaded"), (1, "padding changes nothing")]
)
def test_programs_with_layers_run(number, expected, tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "use_the_layers.md").read_text(encoding="utf-8")
    program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[number]
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "use_the_layers.md", "exec"), {"__name__": "program"})
    assert capsys.readouterr().out == f"{expected}\n"


# === docs/tour.ipynb ===

TOUR = ROOT / "docs" / "tour.ipynb"


def code_cells():
    cells = json.loads(TOUR.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_the_tour_is_short_and_was_executed():
    cells = code_cells()
    assert len(cells) <= 8
    assert all(cell["outputs"] for cell in cells)
    assert "image/png" in str(cells)


@pytest.mark.slow
def test_the_tour_runs(tmp_path):
    program = tmp_path / "tour.py"
    sources = ["".join(cell["source"]) for cell in code_cells()]
    program.write_text("\n\n".join(sources), encoding="utf-8")
    done = ran(program, by=run_process, MPLBACKEND="Agg", TMPDIR=str(tmp_path))
    assert "dam-chitchat with epochs=1 (run)" in done.stdout
