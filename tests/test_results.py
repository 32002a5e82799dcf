"""results/scores.jsonl: each row can be trained again by its command."""

import functools
import shlex

from helpers import run_script

from colloquy.base.config import parse_assignments
from colloquy.metrics.published import scores
from colloquy.models import MODELS
from colloquy.recipes import choose_recipe, merge_settings
from colloquy.tasks import RECIPES, TASKS

OUTSIDE = ("data", "workdir", "init_from", "save_minutes", "devices")
"""Flags of train.py that are no settings."""


@functools.cache
def flags_of_train():
    printed = run_script("train.py", "--helpfull").stdout
    return {line.split(":")[0].strip().removeprefix("--") for line in printed.splitlines()}


def parse(command):
    """The recipe and the settings of a call of train.py, and its other flags."""
    python, script, *words = shlex.split(command)
    assert (python, script) == ("python", "train.py"), command
    given = {}
    assignments = []
    while words:
        name, _, value = words.pop(0).removeprefix("--").partition("=")
        if name == "set":
            assignments.append(value or words.pop(0))
        else:
            given[name] = value
    recipe = given.pop("recipe", None)
    return recipe, given, parse_assignments(assignments)


def test_the_command_of_each_row_still_runs():
    commands = {row["command"] for row in scores() if row.get("command")}
    assert len(commands) > 300
    for command in commands:
        recipe, given, settings = parse(command)
        assert given.keys() <= flags_of_train() | {"resume"}, command
        for name, value in given.items():
            if name not in OUTSIDE:
                settings.setdefault(name, value)
        model, recipe = choose_recipe(given.get("model"), recipe, has_data=True)
        merged, _ = merge_settings(recipe, settings)
        merged.pop("model", None)
        spec = MODELS[model]
        TASKS[spec.task].split_settings(spec, merged)  # refuses unknown fields and wrong values


def test_a_row_without_a_recipe_has_a_title():
    for row in scores():
        name = row["recipe"].partition(" with ")[0]
        has_origin = name in RECIPES or "title" in row or "seed" not in row
        assert has_origin or row["recipe"].startswith("ensemble"), row["recipe"]


def test_recipes_are_few():
    assert len(RECIPES) <= 36
