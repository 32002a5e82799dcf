"""`pretrained/`: the models that come with the project work as they are, from a fresh clone."""

import json
import re

import pytest
from helpers import ROOT

from colloquy.data.json_files import read_json
from colloquy.engine.run import CARD, PAGE, Run
from colloquy.metrics.reading_comprehension import exact_match
from colloquy.serving.run_facts import Page
from colloquy.tasks import RECIPES, TASKS

PRETRAINED = sorted(path.parent for path in (ROOT / "pretrained").glob("*/config.json"))
MEGABYTE = 2**20


@pytest.fixture(params=PRETRAINED, ids=lambda path: path.name)
def run(request):
    return Run.open(request.param)


def test_a_clone_stays_small():
    sizes = [
        sum(file.stat().st_size for file in path.rglob("*") if "index" not in file.parts)
        for path in PRETRAINED
    ]
    assert max(sizes) <= 15 * MEGABYTE and sum(sizes) <= 60 * MEGABYTE


def test_the_pages_open_with_one_model_of_each_task_and_readable_examples_of_dev():
    pages = {path: Page(**read_json(path / PAGE)) for path in PRETRAINED}
    assert sorted(Run.open(path).task for path, page in pages.items() if page.default) == sorted(
        TASKS
    )
    for page in pages.values():
        assert page.title and all(example.source.startswith("dev, ") for example in page.examples)
        assert "_UNK_" not in str(page.examples) and not any(
            "dev" in example.title for example in page.examples
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bidaf-squad", "dam-ubuntu-irc"])
def test_the_example_that_the_pages_open_with_is_answered_right(name):
    """`test_pinned.py` asks all models more."""
    run = Run.open(ROOT / "pretrained" / name)
    first = Page(**read_json(run.path / PAGE)).examples[0]
    [answer] = TASKS[run.task].predictor(run).predict([first.instance])
    if run.task == "reading_comprehension":
        assert answer["answer"] in first.expected and answer["good"]
    else:
        assert first.instance["candidates"][answer["order"][0]] in first.expected


def test_a_card_says_what_was_measured_and_names_no_machine(run):
    card = (run.path / CARD).read_text(encoding="utf-8")
    assert run.dataset["path"] is None
    assert "licence" in card.lower() and "## Limits" in card
    for split, record in run.metrics().items():
        assert f"| {run.dataset['name']}, {split} | " in card
        assert all(
            f"{value:.4f}" in card
            for value in record["metrics"].values()
            if isinstance(value, float)
        )


def test_the_commands_of_a_card_can_be_repeated(run):
    card = (run.path / CARD).read_text(encoding="utf-8")
    commands = [training["command"] for training in run.trainings()]
    assert "".join(f"    {command}\n" for command in commands) in card.split("## Trained by\n")[1]
    recipes = [re.search(r"--recipe=([\w-]+)", command)[1] for command in commands]
    assert set(recipes) <= set(RECIPES) and recipes[-1] == run.record["recipe"]
    assert run.path.name not in RECIPES or run.path.name == run.record["recipe"]
    # in runs/, or published since
    starts = re.findall(r"--init_from=\w+/(\S+)", " ".join(commands))
    workdirs = re.findall(r"--workdir=runs/(\S+)", " ".join(commands[:-1]))
    assert starts == workdirs and len(starts) == len(commands) - 1
    # prepare.py makes a directory per task of bAbI
    for data in re.findall(r"evaluate\.py .*--data=(\S+)", card):
        task = run.dataset["name"].removeprefix("babi-") if run.task == "dialog" else ""
        assert data == f"build/data/{task}".rstrip("/")


# === The published reader on everyday texts ===

TEXTS = json.loads((ROOT / "tests" / "everyday_questions.json").read_text(encoding="utf-8"))
"""Sixty questions to six everyday texts, written before any model had answered them. A question
without answers is not answered by its text.
"""


def outcomes(predictor):
    """Counts of answers, by whether they are right and called good."""
    counts = {"right": 0, "right doubted": 0, "wrong good": 0, "unanswerable good": 0}
    for text in TEXTS:
        asked = []
        for question in text["questions"]:
            asked.append({"passage": text["passage"], "question": question["question"]})
        for question, found in zip(text["questions"], predictor.predict(asked), strict=True):
            is_right = any(exact_match(found["answer"], answer) for answer in question["answers"])
            if is_right:
                counts["right"] += 1
                counts["right doubted"] += not found["good"]
            elif question["answers"]:
                counts["wrong good"] += found["good"]
            else:
                counts["unanswerable good"] += found["good"]
    return counts


@pytest.mark.slow
def test_sixty_questions_to_everyday_texts():
    predictor = TASKS["reading_comprehension"].predictor(Run.open(ROOT / "pretrained/bidaf-squad"))
    found = outcomes(predictor)
    assert found["right"] >= 31
    assert found["right doubted"] <= 3
    assert found["wrong good"] <= 3
    assert found["unanswerable good"] <= 8
