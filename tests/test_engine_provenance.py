"""engine/provenance.py: commit, changes, hardware and versions."""

import runpy
import subprocess

import keras
import pytest

import colloquy
from colloquy.base.machine import available_cpus
from colloquy.engine import provenance


@pytest.fixture(autouse=True)
def no_cache():
    provenance.revision.cache_clear()
    yield
    provenance.revision.cache_clear()


def make_repository(directory):
    """Makes a git repository of a directory, with one commit of its files."""
    for arguments in (["init"], ["add", "."], ["commit", "-m", "one"]):
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(git, cwd=directory, check=True, capture_output=True)


def test_commit_and_changes_are_those_of_the_code_wherever_one_stands(tmp_path, monkeypatch):
    root = tmp_path / "code"
    root.mkdir()
    (root / "a.py").write_text("1")
    make_repository(root)
    monkeypatch.setattr(provenance, "ROOT", root)
    monkeypatch.chdir(tmp_path)
    (root / "untracked").write_text("")
    clean = provenance.revision()
    assert clean["dirty"] is False and len(clean["commit"]) >= 7
    (root / "a.py").write_text("2")
    assert provenance.revision() == clean  # of the process's beginning: what it imported
    provenance.revision.cache_clear()
    assert provenance.revision() == {"commit": clean["commit"], "dirty": True}


def test_an_installed_package_does_not_name_the_commit_of_the_repository_around_it(
    tmp_path, monkeypatch
):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("1")
    make_repository(tmp_path)
    monkeypatch.setattr(provenance, "ROOT", tmp_path / "lib")
    assert provenance.revision() == {"commit": None, "dirty": None}


def test_without_git_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert provenance.revision() == {"commit": None, "dirty": None}
    provenance.revision.cache_clear()
    monkeypatch.setenv("PATH", "")
    assert provenance.revision() == {"commit": None, "dirty": None}


def test_provenance_names_command_hardware_and_versions(monkeypatch):
    monkeypatch.setattr("sys.argv", ["train.py", "--workdir=my run"])
    found = provenance.provenance()
    assert found["command"] == "python train.py '--workdir=my run'"
    monkeypatch.setattr("sys.argv", ["colloquy train", "--workdir=my run"])
    assert provenance.command() == "colloquy train '--workdir=my run'"
    given = ["/home/ann/train.py", "--data", "/home/ann/d", "--workdir", "runs/a", "-run=/home/r"]
    monkeypatch.setattr("sys.argv", given)
    rows = provenance.portable(provenance.command())
    assert rows == "python train.py --data=d --run=RUN"
    monkeypatch.undo()
    assert found["hardware"].startswith(f"{available_cpus()} cores, ")
    assert found["versions"]["keras"] == keras.__version__
    assert found["versions"]["colloquy"] == colloquy.__version__
    assert found["versions"]["backend"] in found["versions"]
    assert set(found) == {"command", "hardware", "commit", "dirty", "versions"}


def test_a_module_is_called_by_its_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "kit").mkdir()
    program = "from colloquy.engine.provenance import command\n\nprint(command())\n"
    (tmp_path / "kit" / "say.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.argv", ["say", "a b"])
    runpy.run_module("kit.say", run_name="__main__", alter_sys=True)
    assert capsys.readouterr().out == "python -m kit.say 'a b'\n"
