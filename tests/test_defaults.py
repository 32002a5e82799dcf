"""Defaults of models and trainings: a changed one trains another network with the same command."""

import json

import pytest
from helpers import ROOT

from colloquy.models import MODELS
from colloquy.tasks import TASKS

DEFAULTS = json.loads((ROOT / "tests" / "defaults.json").read_text(encoding="utf-8"))
CONFIGS = {name: entry.config for name, entry in MODELS.items()}
for name, task in TASKS.items():
    CONFIGS[f"{name}.Training"] = task.Training
    CONFIGS[f"{name}.Options"] = task.Options


@pytest.mark.parametrize("name", CONFIGS)
def test_defaults_are_kept(name):
    defaults = {
        field: info.get_default(call_default_factory=True)
        for field, info in CONFIGS[name].model_fields.items()
        if not info.is_required()
    }
    assert json.loads(json.dumps(defaults)) == DEFAULTS[name]
