"""engine/settings.py: limits of fields, what a dataset decides, and what `--show_settings` prints."""

import dataclasses
import math

import pytest
from helpers import run_script

from base.files import UserError
from engine.settings import check_sizes, describe_fields, make_config, with_decided
from engine.train import Fit
from models import MODELS
from tasks import TASKS


@pytest.mark.parametrize("config_class", [Fit, *(task.Training for task in TASKS.values())])
def test_every_field_has_limits_within_which_its_default_is(config_class):
    config = config_class()
    for field in dataclasses.fields(config_class):
        if field.type is bool:
            continue
        with pytest.raises(ValueError, match=rf"^{field.name} must be .* Received: {field.name}="):
            dataclasses.replace(config, **{field.name: "no such" if field.type is str else -1})
        if field.type is float:
            with pytest.raises(ValueError, match=rf"{field.name} must be .* Received: {field.name}=nan"):
                dataclasses.replace(config, **{field.name: math.nan})


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": "-1"}, r"^patience must be at least 0\. Received: patience=-1$"),
        ({"validations_per_epoch": "0"}, r"^validations_per_epoch must be above 0\. Received: "),
        ({"gradient_clip": "-2"}, r"^gradient_clip must be at least 0\. Received: gradient_clip=-2\.0$"),
    ],
)
def test_what_holds_for_every_training_is_checked_for_every_task(name, settings, message):
    with pytest.raises(UserError, match=message):
        make_config(TASKS[name].Training, settings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epochs": 0.0}, "epochs must be above 0"),
        ({"epochs": math.inf}, "epochs must be above 0"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"precision": "float64"}, r"precision must be one of \('auto', 'float32', 'bfloat16', 'float16'\)"),
        ({"jit": "yes"}, r"jit must be one of \('auto', 'on', 'off'\)"),
        ({"seed": 2**32}, r"seed must be in \[0, 4294967296\)"),
    ],
)
def test_fit_rejects(given, message):
    with pytest.raises(ValueError, match=message):
        Fit(**given)


def test_a_setting_may_say_what_the_dataset_decides_and_nothing_else():
    decided = {"words": 7, "shape": (2, 3)}
    assert with_decided({"words": "7", "hops": "5"}, decided, "d") == {"words": 7, "shape": (2, 3), "hops": "5"}
    with pytest.raises(UserError, match=r"^--set shape=\[2, 5\]: d decides shape, it is \(2, 3\)$"):
        with_decided({"shape": "[2, 5]"}, decided, "d")


def test_sizes_that_differ_are_named():
    config = Fit(batch_size=7)
    check_sizes(config, {"batch_size": 7, "seed": 1}, "d")
    with pytest.raises(UserError, match=r"^d: the run has batch_size 7, here it is 5: they come from different prep"):
        check_sizes(config, {"batch_size": 5}, "d")


def test_fields_are_described_with_inherited_ones():
    found = {name: rest for name, *rest in describe_fields(TASKS["dialog"].Training)}
    kind, default, meaning = found["decay"]
    assert (kind, default) == ("float", "0.1") and meaning.startswith("The learning rate decays linearly to")
    assert found["patience"] == ["int", "0", found["patience"][2]] and "Early stopping" in found["patience"][2]
    assert "every other epoch" in found["validations_per_epoch"][2] and found["validations_per_epoch"][1] == "0.5"


@pytest.mark.parametrize("name", MODELS)
def test_train_shows_what_set_reaches(name):
    """Every field, with its default or that the dataset decides, and what it means."""
    entry = MODELS[name]
    printed = run_script("train.py", f"--model={name}", "--show_settings").stdout
    configs = entry.config, TASKS[entry.task].Training
    titles = [f"{config.__module__}.{config.__qualname__}\n" for config in configs]
    assert printed.startswith(f"The model, {titles[0]}") and f"\nIts training, {titles[1]}" in printed
    for config in configs:
        for name, _, default, meaning in describe_fields(config):
            shown = f"  {name}  (" if default == "" else f"  --set {name}={default}  ("
            assert meaning and shown in printed and f")\n      {meaning}\n" in printed, name
