"""The wheel beside a project with its own `models/`, `data/` and `metrics.py`."""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib

import pytest
from helpers import ROOT, written

from colloquy.commands import COMMANDS

PROGRAM = """
import json
import pathlib

import metrics
from data import ROWS
from models import MODELS

import colloquy
from colloquy.layers.attentive_module import AttentiveModule

assert (metrics.NAME, ROWS, MODELS) == ("mine", [1, 2], {"mine": 1})
reader = colloquy.load("bidaf-squad")
[answer] = reader.predict(
    [{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}]
)
facts = {
    "answer": answer["answer"],
    "file": colloquy.__file__,
    "layer": AttentiveModule.__module__,
    "pretrained": sorted(colloquy.pretrained()),
    "typed": pathlib.Path(colloquy.__file__).with_name("py.typed").is_file(),
}
print(json.dumps(facts))
"""


def run_in(directory, *command, **environment):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment_with_wheel(tmp_path_factory):
    """A virtual environment with the wheel; other packages are those that run the tests."""
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "source"
    files = run_in(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard")
    for name in files.splitlines():
        if (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(ROOT / name)

    run_in(source, sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", "..", ".")
    [wheel] = directory.glob("*.whl")
    run_in(directory, sys.executable, "-m", "venv", "--without-pip", "environment")
    python = directory / "environment" / "bin" / "python"
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = run_in(directory, python, "-c", purelib).strip()
    install = ["-m", "pip", "--python", python, "install", "--no-deps"]
    run_in(directory, sys.executable, *install, wheel)
    written(directory / "others.pth", sysconfig.get_path("purelib") + "\n")
    (directory / "others.pth").rename(f"{packages}/others.pth")
    return python, packages


@pytest.mark.slow
def test_a_project_with_rooms_of_the_same_names_predicts(environment_with_wheel, tmp_path):
    python, packages = environment_with_wheel
    for name, text in {
        "models/__init__.py": "MODELS = {'mine': 1}\n",
        "data/__init__.py": "ROWS = [1, 2]\n",
        "metrics.py": "NAME = 'mine'\n",
        "program.py": PROGRAM,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        written(tmp_path / name, text)

    printed = run_in(tmp_path, python, "program.py", PYTHONPATH="")
    facts = json.loads(printed.splitlines()[-1])
    assert facts["answer"] == "Rome"
    assert facts["file"].startswith(packages)
    assert facts["layer"] == "colloquy.layers.attentive_module"
    names = {path.name for path in (ROOT / "pretrained").iterdir()}
    assert set(facts["pretrained"]) == names
    assert facts["typed"]

    # The program, in the same project.
    program = python.parent / "colloquy"
    listed = run_in(tmp_path, program, "--help", PYTHONPATH="")
    for command in COMMANDS:
        assert f"  {command} " in listed
        assert "flags:" in run_in(tmp_path, program, command, "--help", PYTHONPATH="")
    instance = {"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}
    lines = written(tmp_path / "lines.jsonl", json.dumps(instance) + "\n")
    predict = ("predict", "--run=bidaf-squad", f"--input={lines}")
    assert json.loads(run_in(tmp_path, program, *predict, PYTHONPATH=""))["answer"] == "Rome"


def test_the_wheel_and_its_extra_dev_require_what_the_clone_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    clone = (ROOT / "requirements.txt").read_text(encoding="utf-8").split()
    parts = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    assert sorted(parts) == sorted(clone)
    assert not any("pytest" in requirement for requirement in project["dependencies"])


def test_every_requirement_has_an_upper_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        requirements += extra
    assert [text for text in requirements if "<" not in text] == []
