"""docs/: what its pages name exists."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TESTS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_*.py")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tests_that_a_page_names_exist(page):
    for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")):
        assert name in TESTS or any(f"def {name}(" in text for text in TESTS.values()), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:[a-z_]+/)+[\w.]+\.(?:py|json|md))`", text):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"python (?:-m )?([\w.]+)", text):
        if name.startswith(("tools.", "benchmarks.")):
            name = name.replace(".", "/") + ".py"
        if name.endswith(".py"):
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_the_words_of_the_field(page):
    text = re.sub(r"```text.*?```", "", page.read_text(encoding="utf-8").lower(), flags=re.DOTALL)  # no docstrings
    for phrase in ("parted by", "to be had", "told apart", "figures of", "wrong response", "right response", " floor"):
        if phrase == " floor" and page.name == "architecture.md":  # of a house
            continue
        assert phrase not in text, phrase
