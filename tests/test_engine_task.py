"""engine/task.py: settings of every task, recipes, the embedded sample."""

import pathlib
import re
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from helpers import refusal, run_script, train_small

from colloquy.base.config_fields import describe_fields
from colloquy.engine import sample
from colloquy.engine.sample import code_digest, prepare_sample
from colloquy.engine.settings import build_config
from colloquy.models import MODELS
from colloquy.tasks import RECIPES, TASKS


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("dialog", {"candidates": "[3, 5]"}, "task1 decides candidates, it is "),
        ("dialog", {"levels": "3"}, "no setting 'levels'.*heads.*; its training has .*loss, "),
        ("dialog", {"epochs": "Infinity"}, "epochs: .* finite number"),
        ("dialog", {"batch_size": "0.5"}, "batch_size: .* valid integer"),
        ("dialog", {"precision": "float64"}, "precision: .*'float16'. Received: float64"),
        (
            "selection",
            {"compatibility": "tf2"},
            "expected paper, or release for DAM. Received: 'tf2'",
        ),
        ("selection", {"conv_filters": "[16]"}, "conv_filters.1 is missing"),
        ("generation", {"vocabulary_size": "5"}, "decides vocabulary_size, it is "),
        ("reading_comprehension", {"characters": "3"}, "decides characters"),
    ],
)
def test_wrong_settings_are_refused_and_leave_nothing(name, settings, message, data, tmp_path):
    assert re.search(message, refusal(train_small, name, data[name], tmp_path / "run", settings))
    assert not (tmp_path / "run").exists()


def test_compatibility_release_sets_what_the_release_is(prepared):
    task = TASKS["selection"]
    spec = MODELS["dam"]
    settings = {"compatibility": "release", "variant": "last"}
    model_settings, training = task.split_settings(spec, settings)
    config = build_config(task, spec, task.load_dataset(prepared), model_settings)
    assert (config.masking, config.scalar_bias, config.response_rows) == ("release", True, True)
    assert training.loss_clip == 10.0


@pytest.mark.parametrize("name", MODELS)
def test_train_shows_every_setting_with_its_default_and_meaning(name):
    spec = MODELS[name]
    printed = run_script("train.py", f"--model={name}", "--show_settings").stdout
    configs = spec.config, TASKS[spec.task].Training
    titles = [f"{config.__module__}.{config.__qualname__}\n" for config in configs]
    assert printed.startswith(f"The model, {titles[0]}")
    assert f"\nIts training, {titles[1]}" in printed
    for config in configs:
        for name, _, default, meaning in describe_fields(config):
            shown = f"  {name}  (" if default == "" else f"  --set {name}={default}  ("
            assert meaning and shown in printed and f")\n      {meaning}\n" in printed, name


def test_a_setting_with_one_value_is_shown_with_it():
    fields = describe_fields(MODELS["supervised-embeddings"].config)
    types = {name: type_name for name, type_name, *_ in fields}
    assert types["speaker"] == "False"


def test_recipes_have_known_settings():
    for name, recipe in RECIPES.items():
        spec = MODELS[recipe.model]
        model_settings, training = TASKS[spec.task].split_settings(spec, recipe.settings())
        assert model_settings == recipe.config, name
        assert training == recipe.training, name


def small(text="x", then=lambda: None):
    """A task whose sample is a file with a text; once it is made, `then` is called."""

    def make_sample(directory):
        (directory / "prepared").mkdir()
        (directory / "prepared" / "file").write_text(text)
        then()

    return SimpleNamespace(name="small", make_sample=Mock(side_effect=make_sample))


@pytest.fixture
def in_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sample, "code_digest", lambda: "abc")


def test_a_sample_is_made_once_for_each_state_of_the_code(
    in_empty_directory, tmp_path, monkeypatch
):
    task = small()
    found = prepare_sample(task)
    assert found == pathlib.Path("build/sample-small-abc/prepared")
    assert (found / "file").read_text() == "x"
    assert prepare_sample(task) == found and task.make_sample.call_count == 1
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["sample-small-abc"]
    monkeypatch.setattr(sample, "code_digest", lambda: "def")
    assert prepare_sample(task) == pathlib.Path("build/sample-small-def/prepared")
    assert task.make_sample.call_count == 2


def test_of_two_that_make_it_at_once_the_first_stays(in_empty_directory, tmp_path):
    first = small()
    second = small("late", then=lambda: prepare_sample(first))  # another process is faster
    assert (prepare_sample(second) / "file").read_text() == "x"
    assert first.make_sample.call_count == second.make_sample.call_count == 1
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["sample-small-abc"]


def test_a_sample_is_made_anew_when_the_code_changes(monkeypatch, tmp_path):
    for folder in ("data", "tasks"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(sample, "ROOT", tmp_path)
    states = set()
    for words, code in ("a", ""), ("b", ""), ("b", "1"):
        (tmp_path / "data" / "words.txt").write_text(words)
        (tmp_path / "tasks" / "prepare.py").write_text(code)
        states.add(code_digest())
    assert len(states) == 3
