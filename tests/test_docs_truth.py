"""docs/ and README.md say what is so: each number has a source, each name exists, and each score is
one of the network that it is shown with.

Numbers of a page come from results/ by markers (`tools/tables.py`), from docs/experiments.md, which
keeps single observations, or from a line of `page_numbers.tsv` that names their source.
"""

import json
import pathlib
import re

from helpers import ROOT

from colloquy.models import MODELS
from colloquy.tasks import RECIPES, TASKS

REGISTERS = {"experiments.md", "openings.md"}
"""Pages of single observations: their numbers are of the commit that they name."""
NUMBER = re.compile(r"(?<![\w.,])(?:\d[\d,]*)?\.?\d+(?:\.\d+)?")
SMALL = 12
"""Whole numbers up to this are counted without a source: *three steps*, *9 turns*."""
PLACES = (
    r"eq\.|equations?|sections?|figures?|tables?|tasks?|seeds?|levels?|Python|TensorFlow|Keras|"
    r"PyTorch|JAX|commit|SQuAD|Apache|CC BY|BY|BY-SA|BY-NC-SA|status"
)
NAMED_PLACE = re.compile(rf"(?i)\b({PLACES})[- ]?\d[\d.]*((, | to | and |,)\d[\d.]*)*")
YEAR = re.compile(r"\b(19|20)\d\d(-\d\d-\d\d)?\b")
SOURCES = pathlib.Path(__file__).with_name("page_numbers.tsv")

FLAG = re.compile(r"DEFINE_\w+\(\s*\"(\w+)\"")
FIELD = re.compile(r"(?m)^    (\w+): ")
FILES_WITH_FIELDS = (
    "tasks/*/*.py",
    "data/prepared.py",
    "engine/training_settings.py",
    "serving/*.py",
)
"""Files whose typed fields are flags of a script, too."""
NOT_RECIPES = {"babi-dialog", "dam-release", "chat-chinese"}
"""Two corpora, and a name that `make reproduce` takes."""
OTHER_PROGRAMS = ("docker", "pip", "tensorboard", "git", "curl")


def pages(root=ROOT):
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def without_code_and_markers(text):
    """The text of a page without code, and without what `tools/tables.py` writes."""
    text = re.sub(r"(?ms)^```.*?^```$", "", text)
    text = re.sub(r"(?m)^(?:    | {6,}).*$", "", text)
    return re.sub(r"<!-- (scores|rows|value): .*?<!-- end -->", "", text, flags=re.DOTALL)


def paragraphs(text):
    """Paragraphs, items of lists and rows of tables."""
    return re.split(r"\n\s*\n|\n(?=\||- |\d+\. )", text)


def numbers(paragraph):
    """The numbers in a paragraph's prose, as written: `12,000`, `.014`."""
    prose = re.sub(r"`[^`]*`", "", paragraph)
    prose = re.sub(r"\]\([^)\s]*\)", "]", prose)
    prose = YEAR.sub("", NAMED_PLACE.sub("", prose))
    found = []
    for number in NUMBER.findall(prose):
        is_small = number.isdigit() and int(number) <= SMALL
        if not is_small:
            found.append(number)
    return found


def observed(root=ROOT):
    """The numbers of docs/experiments.md."""
    return set(NUMBER.findall((root / "docs" / "experiments.md").read_text(encoding="utf-8")))


def listed(path=SOURCES):
    """`{page: {number: source}}` of the list of sources."""
    sources = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            page, source, text = line.split("\t")
            for number in text.split():
                sources.setdefault(page, {})[number] = source
    return sources


def numbers_without_source(root=ROOT, sources=None):
    """`(page, number, paragraph)` of each number that nothing accounts for."""
    sources = listed() if sources is None else sources
    observations = observed(root)
    missing = []
    for page in pages(root):
        if page.name in REGISTERS:
            continue
        known = sources.get(page.name, {})
        for paragraph in paragraphs(without_code_and_markers(page.read_text(encoding="utf-8"))):
            cites = "experiments.md" in paragraph or page.name == "what_helped.md"
            for number in numbers(paragraph):
                if number not in known and not (cites and number in observations):
                    missing.append((page.name, number, paragraph[:80]))
    return missing


def test_each_number_of_a_page_has_a_source():
    assert numbers_without_source() == []


def test_each_number_in_the_list_is_on_its_page_and_in_the_file_that_is_its_source():
    for page, sources in listed().items():
        path = ROOT / page if page == "README.md" else ROOT / "docs" / page
        shown = numbers(without_code_and_markers(path.read_text(encoding="utf-8")))
        for number, source in sources.items():
            assert number in shown, f"{page}: {number} is listed and not shown"
            file = ROOT / source
            if file.is_file():
                digits = number.replace(",", "").strip(".")
                content = file.read_text(encoding="utf-8").replace("_", "").replace(",", "")
                assert digits in content, f"{page}: {number} is not in {source}"


# === Names ===


def defined_flags():
    flags = {"help", "helpfull"}
    for path in ROOT.rglob("*.py"):
        if ".venv" not in path.parts:
            flags |= set(FLAG.findall(path.read_text(encoding="utf-8")))
    for pattern in FILES_WITH_FIELDS:
        for path in ROOT.glob(pattern):
            flags |= set(FIELD.findall(path.read_text(encoding="utf-8")))
    return flags


def setting_names():
    """Fields of all models and trainings, those of nested configs with the name of their field."""
    configs = [entry.config for entry in MODELS.values()]
    for task in TASKS.values():
        configs += [task.Training, task.Options]
    names = {"compatibility"}
    for config in configs:
        for name, field in config.model_fields.items():
            names.add(name)
            for nested in getattr(field.annotation, "__args__", ()):
                for inner in getattr(nested, "model_fields", ()):
                    names.add(f"{name}.{inner}")
    return names


def names_that_are_gone(root=ROOT):
    """`(page, name)` of functions, flags, recipes and settings that a page names."""
    flags = defined_flags()
    settings = setting_names()
    runs = {path.name for path in (ROOT / "pretrained").iterdir()}
    names = RECIPES.keys() | runs | NOT_RECIPES
    gone = []
    for page in pages(root):
        if page.name in REGISTERS:
            continue
        text = page.read_text(encoding="utf-8")
        for file, function in re.findall(r"`([\w/]+\.py):(\w+)`", text):
            path = ROOT / file
            is_there = path.is_file() and re.search(
                rf"(?m)^\s*(def|class) {function}\b", path.read_text(encoding="utf-8")
            )
            if not is_there:
                gone.append((page.name, f"{file}:{function}"))
        for code in re.findall(r"`([^`\n]+)`", text):
            if not code.startswith(OTHER_PROGRAMS):
                for flag in re.findall(r"(?<![\w-])--(?:no)?(\w+)(?![\w-])", code):
                    if flag not in flags:
                        gone.append((page.name, f"--{flag}"))
            for setting in re.findall(r"--set[ =]([a-z][\w.]*)=", code):
                if setting not in settings:
                    gone.append((page.name, f"--set {setting}"))
            for recipe in re.findall(r"^(?:dam|babi|chat|bidaf|seq2seq)-[a-z0-9-]+$", code):
                if recipe not in names:
                    gone.append((page.name, recipe))
    return gone


def test_the_functions_flags_recipes_and_settings_that_a_page_names_exist():
    assert names_that_are_gone() == []


# === Scores ===


def scores_of_other_networks(root=ROOT):
    """`(page, record, metric)` of each analysis of a published run that is not of its weights.

    Groups of an analysis share out the examples of a split, so that their weighted mean is the
    score of the split, which the run's metrics.json has.
    """
    wrong = []
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        for file, key in set(re.findall(r"results/analyses/([\w-]+)\.json/([\w-]+)/rows", text)):
            records = json.loads((root / f"results/analyses/{file}.json").read_text("utf-8"))
            record = records[key]
            runs = record.get("runs", [])
            if len(runs) != 1 or not runs[0].startswith("pretrained/"):
                continue
            path = root / runs[0] / "metrics.json"
            if not path.is_file():
                wrong.append((page.name, f"{file}/{key}", runs[0]))
                continue
            metrics = json.loads(path.read_text("utf-8"))[record["split"]]["metrics"]
            total = sum(row["n"] for row in record["rows"])
            for name in metrics.keys() & record["rows"][0].keys():
                mean = sum(row["n"] * row[name] for row in record["rows"]) / total
                if abs(mean - metrics[name]) > 5e-4:
                    wrong.append((page.name, f"{file}/{key}", name))
    return wrong


def test_an_analysis_is_of_the_network_whose_score_its_metrics_have():
    assert scores_of_other_networks() == []


# === The checks find what they are for ===

GOOD_PAGE = """\
R10@1 is .614 in 2018 ([experiments.md](experiments.md)).

And <!-- value: x digits=3 -->.613<!-- end -->.

Task 6 of `--epochs=40`, equation 17.
"""
BAD_PAGE = """\
R10@1 is .613 after 3 epochs of 12,000 contexts: `models/dam.py:gone`, `train.py --gone`,
`--set gone=1`, `dam-gone`.
"""


def test_a_number_without_a_source_and_a_name_that_is_gone_are_found(tmp_path):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    (tmp_path / "README.md").touch()
    (tmp_path / "docs" / "experiments.md").write_text("It has .614.")
    page.write_text(GOOD_PAGE)
    assert numbers_without_source(tmp_path, {}) == names_that_are_gone(tmp_path) == []
    page.write_text(BAD_PAGE)
    numbers_found = [number for _, number, _ in numbers_without_source(tmp_path, {})]
    assert numbers_found == [".613", "12,000"]
    names_found = [name for _, name in names_that_are_gone(tmp_path)]
    assert names_found == ["models/dam.py:gone", "--gone", "--set gone", "dam-gone"]
