"""Defaults of models, trainings and layers, which are kept in `tests/defaults.json`.

A changed default trains another network with the same command, or computes something else in a
model of a user.
"""

import inspect
import json

import pytest
from helpers import ROOT

from colloquy import layers
from colloquy.models import MODELS
from colloquy.tasks import TASKS

DEFAULTS = json.loads((ROOT / "tests" / "defaults.json").read_text(encoding="utf-8"))
CONFIGS = {name: entry.config for name, entry in MODELS.items()}
for name, task in TASKS.items():
    CONFIGS[f"{name}.Training"] = task.Training
    CONFIGS[f"{name}.Options"] = task.Options


def defaults_of(name):
    if name in CONFIGS:
        return {
            field: info.get_default(call_default_factory=True)
            for field, info in CONFIGS[name].model_fields.items()
            if not info.is_required()
        }
    constructor = getattr(layers, name).__init__
    if constructor.__module__.startswith("keras."):  # Keras decides the defaults of such a layer
        return {}
    parameters = inspect.signature(constructor).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


@pytest.mark.parametrize("name", [*CONFIGS, *layers.FILES])
def test_defaults_are_kept(name):
    assert json.loads(json.dumps(defaults_of(name))) == DEFAULTS[name]
