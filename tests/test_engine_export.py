"""`engine.export`: versions, and what is refused."""

import contextlib
import io
import pathlib
import shutil
import types

import keras
import pytest
from exported import WORDS, make_run

from base.files import UserError
from data.vocabulary import Vocabulary
from engine import export as exporting
from engine.run import BEST, VOCABULARY, Run
from tasks import TASKS


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run")[0]


class Archive:
    """Stands in for an `ExportArchive`: writes one file."""

    def __init__(self, *_):
        pass

    def write_out(self, path, verbose):
        (pathlib.Path(path) / "saved_model.pb").write_text("x")


class BrokenArchive(Archive):
    def write_out(self, path, verbose):
        super().write_out(path, verbose)
        raise OSError("disk full")


def test_export_writes_the_version_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.selection.export.selection_archive", Archive)
    assert exporting.export(TASKS["selection"], run, tmp_path, version=7) == tmp_path / "7"
    assert [p.name for p in (tmp_path / "7").iterdir()] == ["saved_model.pb"]


def test_export_refuses_a_used_version_and_names_a_free_one(run, tmp_path):
    for name in ("1", "9", "notes"):
        (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(UserError, match=r"out/1 exists: --version=10 is free$"):
        exporting.export(TASKS["selection"], run, tmp_path / "out")


def test_export_refuses_a_file_as_directory(run, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UserError, match=r"out is no directory$"):
        exporting.export(TASKS["selection"], run, tmp_path / "out")


def test_export_leaves_nothing_half_written(run, tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.selection.export.selection_archive", BrokenArchive)
    with pytest.raises(OSError, match="disk full"):
        exporting.export(TASKS["selection"], run, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_export_refuses_a_run_without_vocabulary(run, tmp_path):
    other = Run.create(tmp_path / "run", run.config)
    with pytest.raises(UserError, match=r"strings need a vocabulary\.txt in the run"):
        exporting.export(TASKS["selection"], other, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_export_refuses_a_vocabulary_of_another_size(run, tmp_path):
    other = Run.create(tmp_path / "run", run.config, Vocabulary(WORDS[:-1]))
    shutil.copy(run.path / BEST, other.path)
    with pytest.raises(UserError, match=rf"{VOCABULARY}: expected 11 words, .* Received: 10$"):
        exporting.export(TASKS["selection"], other, tmp_path / "out")


def test_export_refuses_other_backends(run, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(UserError, match=r"needs KERAS_BACKEND=tensorflow\. Received: jax$"):
        exporting.export(TASKS["selection"], run, tmp_path / "out")


def test_the_printed_example_is_the_first_of_the_run(run, tmp_path):
    other = Run.create(tmp_path / "run", run.config, Vocabulary(WORDS))
    candidates = ["it's a long answer, longer than a line has room for, and then some", '"yes"', "no"]
    other.save_examples([{"title": "dev, context 1", "instance": {"turns": ["a b", "c"], "candidates": candidates}}])
    printed, called = exporting.example(TASKS["selection"], other), {}

    class Model:
        def rank(self, **inputs):
            called.update(inputs)
            return {"order": "best first", "scores": "high"}

    constant = types.SimpleNamespace(constant=lambda value: value)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(printed, {"model": Model(), "tf": constant})
    assert called == {"turns": [["a b", "c"]], "candidates": [candidates]} and out.getvalue() == "best first high\n"
    assert max(map(len, printed.splitlines())) <= 120
    assert "how do i mount a usb stick?" in exporting.example(TASKS["selection"], run)  # which has none
