"""tasks/dialog/analysis.py: responses by kind, template, novelty and turn, and what is wrong with them."""

import json
import types

import numpy as np
import pytest
from helpers import run_script

from data.vocabulary import Vocabulary
from tasks.dialog.analysis import GROUPINGS, Responses, metrics_by
from tasks.dialog.dataset import World

CANDIDATES = [
    "hello there",  # 0
    "api_call thai west",  # 1
    "api_call greek west",  # 2
    "the nice rest is in the west",  # 3: the restaurant is written with spaces
    "the_nice_rest is in the east",  # 4
    "the_nice_rest is cheap , east",  # 5
]
ENTITIES = [
    ("thai", "cuisine", "knowledge"),
    ("greek", "cuisine", "knowledge"),
    ("west", "location", "knowledge"),
    ("east", "location", "knowledge"),
    ("the_nice_rest", "restaurant", "knowledge"),
]


@pytest.fixture
def dataset():
    words = sorted({word for candidate in CANDIDATES for word in candidate.split()})
    splits = {
        "train": types.SimpleNamespace(answers=np.array([0, 1, 4])),
        # two dialogs, of three turns and of two
        "dev": types.SimpleNamespace(answers=np.array([0, 1, 3, 2, 5]), dialog=np.array([0, 0, 0, 1, 1])),
    }
    world = World(Vocabulary(("_EOS_", "_UNK_", *words)), CANDIDATES, [], ENTITIES)
    return types.SimpleNamespace(splits=splits, world=world)


def test_a_candidate_is_a_template_and_its_entities(dataset):
    responses = Responses(dataset.world)
    assert responses.templates == [
        "hello there",
        *["api_call {cuisine} {location}"] * 2,
        *["{restaurant} is in the {location}"] * 2,
        "{restaurant} is cheap , {location}",
    ]
    assert responses.entities == [(), ((0,), (2,)), ((1,), (2,)), ((2,), (4,)), ((3,), (4,)), ((3,), (4,))]
    assert responses.calls.tolist() == [False, True, True, False, False, False]


def test_groups_say_what_is_wrong(dataset):
    # right; another cuisine; right; right wording of another call; another wording, right entities
    predicted = np.array([0, 2, 3, 1, 4])
    found = metrics_by(dataset, dataset.splits["dev"], predicted, GROUPINGS)
    rows = {
        name: [(each["group"], each["examples"], *each["metrics"].values()) for each in groups]
        for name, groups in found.items()
    }
    assert list(found["kind"][0]["metrics"]) == ["per_response", "template", "entities"]
    assert rows["kind"] == [
        ("asks the knowledge base", 2, 0.0, 1.0, 0.0),
        ("names an entity", 2, 0.5, 0.5, 1.0),
        ("other", 1, 1.0, 1.0, 1.0),
    ]
    assert rows["seen"] == [("not in train", 3, 1 / 3, 2 / 3, 2 / 3), ("in train", 2, 0.5, 1.0, 0.5)]
    assert rows["turns"] == [("1-2", 4, 0.25, 0.75, 0.5), ("3-4", 1, 1.0, 1.0, 1.0)]
    assert rows["template"][0] == ("api_call {cuisine} {location}", 2, 0.0, 1.0, 0.0)
    assert sum(each[1] for each in rows["template"]) == 5


def test_rare_templates_are_one_group(dataset, monkeypatch):
    monkeypatch.setattr("tasks.dialog.analysis.TEMPLATES", 1)
    split = dataset.splits["dev"]
    [groups] = metrics_by(dataset, split, split.answers, ["template"]).values()
    assert [(each["group"], each["examples"]) for each in groups] == [
        ("api_call {cuisine} {location}", 2),
        ("the rest", 3),
    ]


def test_a_run_is_analysed(trained_dialog, tmp_path):
    done = run_script("tools/analyses.py", f"--run={trained_dialog.path}", "--by=kind,turns", f"--out={tmp_path}")
    assert done.returncode == 0, done.stderr
    groups = json.loads((tmp_path / "kind.json").read_text(encoding="utf-8"))["groups"]
    turns = json.loads((tmp_path / "turns.json").read_text(encoding="utf-8"))["groups"]
    assert sum(each["examples"] for each in groups) == sum(each["examples"] for each in turns) > 0
    assert all(each["metrics"]["per_response"] <= each["metrics"]["template"] for each in groups)
