"""The examples in docstrings of every module."""

import doctest

import keras
import numpy as np
import pytest
from helpers import import_script
from test_architecture import MODULES, floor_of

NAMES = {"keras": keras, "np": np}
IMPORTABLE = [name for name in MODULES if floor_of(name) < floor_of("colloquy.tools")]
EXAMPLES = []
for name in [*IMPORTABLE, "colloquy", "colloquy.tools.score_rows", "colloquy.tools.sweep"]:
    trains_or_loads_models = name == "colloquy" or name.startswith("colloquy.models.")
    EXAMPLES.append(pytest.param(name, marks=pytest.mark.slow if trains_or_loads_models else ()))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    try:
        module = import_script(name)
    except ImportError as error:
        pytest.skip(str(error))
    results = doctest.testmod(module, extraglobs=NAMES, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0
