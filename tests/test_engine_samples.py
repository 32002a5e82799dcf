"""engine/samples.py: a sample is made once for each state of the code that makes it."""

import pathlib

import pytest

from base.files import UserError
from engine import samples
from tasks import TASKS


class Small:
    name, sample_path = "small", "prepared/task1"

    def __init__(self):
        self.made = []

    def make_sample(self, directory):
        self.made.append(directory)
        (directory / "prepared" / "task1").mkdir(parents=True)
        (directory / "prepared" / "task1" / "file").write_text("x")


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(samples, "fingerprint", lambda task: "abc")


def test_a_sample_is_made_once(tmp_path):
    task = Small()
    found = samples.sample_of(task)
    assert found == pathlib.Path("build/sample-small-abc/prepared/task1") and (found / "file").read_text() == "x"
    assert samples.sample_of(task) == found and len(task.made) == 1
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["sample-small-abc"]


def test_after_a_change_of_code_it_is_made_again(monkeypatch):
    task = Small()
    samples.sample_of(task)
    monkeypatch.setattr(samples, "fingerprint", lambda task: "def")
    assert samples.sample_of(task) == pathlib.Path("build/sample-small-def/prepared/task1")
    assert len(task.made) == 2


def test_of_two_that_make_it_at_once_the_first_stays(tmp_path):
    first, second = Small(), Small()
    original = second.make_sample

    def slowly(directory):
        original(directory)
        (directory / "prepared" / "task1" / "file").write_text("late")
        samples.sample_of(first)  # another process is faster

    second.make_sample = slowly
    found = samples.sample_of(second)
    assert (found / "file").read_text() == "x" and len(first.made) == len(second.made) == 1
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["sample-small-abc"]


def test_a_sample_that_cannot_be_made_leaves_nothing(tmp_path):
    task = Small()

    def fails(directory):
        (directory / "raw").mkdir()
        raise UserError("no space")

    task.make_sample = fails
    with pytest.raises(UserError, match="no space"):
        samples.sample_of(task)
    assert list((tmp_path / "build").iterdir()) == []


def test_the_fingerprint_is_that_of_the_code(monkeypatch, tmp_path):
    monkeypatch.undo()
    found = {name: samples.fingerprint(task) for name, task in TASKS.items()}
    assert len(set(found.values())) == 4 and all(len(digits) == 10 for digits in found.values())
    assert found["dialog"] == samples.fingerprint(TASKS["dialog"])
    root = tmp_path / "root"
    for folder in ("data", "tasks"):
        (root / folder).mkdir(parents=True)
    (root / "data" / "words.txt").write_text("a")
    task_file = root / "tasks" / "task.py"
    (root / "tasks" / "prepare.py").write_text("")
    monkeypatch.setattr(samples, "ROOT", root)
    monkeypatch.setattr(samples.inspect, "getfile", lambda _: str(task_file))
    before = samples.fingerprint(TASKS["dialog"])
    (root / "data" / "words.txt").write_text("b")
    after = samples.fingerprint(TASKS["dialog"])
    (root / "tasks" / "prepare.py").write_text("1")
    assert len({before, after, samples.fingerprint(TASKS["dialog"])}) == 3
