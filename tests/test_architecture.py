"""The house as drawn: imports run downwards, never in a circle, and no file is too long to read."""

import ast
import functools
import graphlib
import json

import pytest
from helpers import ROOT

from colloquy.base.files import CHECKSUMS, checksums_of
from colloquy.engine.run import UNSEALED

FLOORS = (
    ("base",),
    ("layers", "metrics"),
    ("models",),
    ("data",),
    ("engine",),
    ("tasks",),
    ("serving",),
    (
        *("prepare", "train", "evaluate", "predict", "export", "chat", "serve"),
        *("colloquy", "commands", "recipes", "tools", "benchmarks"),
    ),
)
"""Folders and scripts, from the cellar to the roof; each may import what stands on its own floor
and below.
"""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
FILES = sorted(
    path for room in FLOOR for path in [*ROOT.glob(f"{room}.py"), *(ROOT / room).rglob("*.py")]
)


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return name if parts[0] == "colloquy" else f"colloquy.{name}"


MODULES = {module_of(path): path for path in FILES}


def floor_of(module):
    """The floor of a module of ours; 0 of other packages."""
    package, _, rest = module.partition(".")
    return FLOOR.get(rest.split(".")[0] or package, 0) if package == "colloquy" else 0


@functools.cache
def imported(path):
    """The modules that a file imports, at its head or in a function; `from colloquy.data import
    pickles` is `data.pickles`.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in names}
    return found


def test_imports_run_downwards():
    for name, path in MODULES.items():
        floor = floor_of(name)
        assert not {other for other in imported(path) if floor_of(other) > floor}, name


def test_no_circle_of_imports():
    graph = {name: imported(path) & MODULES.keys() - {name} for name, path in MODULES.items()}
    assert (
        sum(map(len, graph.values())) > 300
        and "colloquy.engine.run" in graph["colloquy.engine.trainer"]
    )
    graphlib.TopologicalSorter(graph).prepare()  # raises with the circle


def test_tasks_know_nothing_of_each_other():
    for name, path in MODULES.items():
        if name.startswith("colloquy.tasks."):
            others = [other for other in imported(path) if other.startswith("colloquy.tasks.")]
            assert {other.split(".")[2] for other in others} <= {name.split(".")[2]}, path


def test_layers_models_and_metrics_know_no_framework():
    """But one file, for what TensorFlow does in one pass and `keras.ops` has no name for; metrics
    know no Keras.
    """
    backends = frozenset(["tensorflow", "jax", "torch"])
    unknown = {
        "layers": backends,
        "models": backends,
        "metrics": backends | {"keras", "colloquy.layers"},
    }
    for path in FILES:
        if path.name != "tensorflow_kernels.py":
            names = imported(path)
            packages = {name.split(".")[0] for name in names}
            rooms = {".".join(name.split(".")[:2]) for name in names}
            room = module_of(path).partition(".")[2].split(".")[0]
            assert not (packages | rooms) & unknown.get(room, set()), path


def test_a_file_can_be_read_at_once():
    lines = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()
    }
    assert {name: count for name, count in lines.items() if count > 500} == {}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "pretrained").iterdir()), ids=lambda path: path.name
)
def test_published_runs_are_sealed(path):
    """After a change on purpose: `Run(pathlib.Path(PATH), {}).seal()`."""
    assert json.loads((path / CHECKSUMS).read_text()) == checksums_of(path, UNSEALED)
