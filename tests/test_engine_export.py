"""`engine.export`: versions, and what is refused."""

import hashlib
import json
import pathlib
import shutil
import time
from unittest.mock import Mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from exported import WORDS, make_run
from helpers import refusal

from colloquy.base.files import UserError
from colloquy.data.json_files import write_json
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import endpoints
from colloquy.engine import export as exporting
from colloquy.engine.run import BEST, EXAMPLES, VOCABULARY, Run
from colloquy.engine.workdir import create_run
from colloquy.tasks import TASKS


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run")[0]


def archive(error=None):
    """Stands in for an `ExportArchive`: writes one file, and raises an error if it is given one."""

    def write_out(path, verbose):
        (pathlib.Path(path) / "saved_model.pb").write_text("x")
        if error:
            raise error

    return lambda *_: Mock(write_out=write_out)


def test_export_writes_the_version_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.setattr("colloquy.tasks.selection.export.selection_archive", archive())
    assert exporting.export(TASKS["selection"], run, tmp_path, version=7) == tmp_path / "7"
    assert {p.name for p in (tmp_path / "7").iterdir()} == {"saved_model.pb", "checksums.json"}
    sums = json.loads((tmp_path / "7" / "checksums.json").read_text())
    assert sums == {"saved_model.pb": [hashlib.sha256(b"x").hexdigest()]}


def test_a_full_disk_ends_an_export_with_a_sentence(run, tmp_path, monkeypatch):
    full = tf.errors.ResourceExhaustedError(None, None, "No space left on device")
    monkeypatch.setattr("colloquy.tasks.selection.export.selection_archive", archive(full))
    message = refusal(exporting.export, TASKS["selection"], run, tmp_path / "out")
    assert message.endswith("out/1 cannot be written: No space left on device")
    assert list((tmp_path / "out").iterdir()) == []


def small_vocabulary(run, path):
    other = create_run(path / "run", run.record, Vocabulary(WORDS[:-1]))
    shutil.copy(run.path / BEST, other.path)
    return other


@pytest.mark.parametrize(
    ("spoil", "backend", "message"),
    [
        (
            lambda _, path: [
                (path / "out" / name).mkdir(parents=True) for name in ("1", "9", "notes")
            ],
            "tensorflow",
            "out/1 exists: --version=10 is free",
        ),
        (lambda _, path: (path / "out").write_text("mine"), "tensorflow", "out is not a directory"),
        (
            lambda run, path: create_run(path / "run", run.record),
            "tensorflow",
            "lacks vocabulary.txt",
        ),
        (small_vocabulary, "tensorflow", f"{VOCABULARY}: expected 11 words.* Received: 10"),
        (lambda *_: None, "jax", "KERAS_BACKEND=tensorflow.* Received: jax"),
    ],
)
def test_export_refuses(spoil, backend, message, run, tmp_path, monkeypatch):
    spoilt = spoil(run, tmp_path)
    given = spoilt if isinstance(spoilt, Run) else run
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=message):
        exporting.export(TASKS["selection"], given, tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == before


def test_the_printed_call_has_the_first_example_of_the_run(run, tmp_path):
    other = create_run(tmp_path / "run", run.record, Vocabulary(WORDS))
    candidates = ["yes", '"no"', "it's longer than a line has room for, " * 3]
    examples = []
    for word in ("first", "second"):
        instance = {"turns": [word], "candidates": candidates}
        examples.append({"title": word, "instance": instance, "expected": ["yes"]})
    write_json(other.path / EXAMPLES, examples)
    printed = exporting.call_lines(TASKS["selection"], other)
    assert max(map(len, printed.splitlines())) <= 120
    rank = Mock(return_value={"order": "best", "scores": "high"})
    exec(printed, {"model": Mock(rank=rank), "tf": Mock(constant=lambda value: value)})
    assert rank.call_args.kwargs == {"turns": [["first"]], "candidates": [candidates]}


def test_a_check_comes_before_what_fails_without_it():
    def late(x):
        time.sleep(0.2)
        return x

    @tf.function(input_signature=[tf.TensorSpec([None])] * 2)
    def added(x, y):
        rows = tf.numpy_function(late, [tf.shape(x)], tf.int32)
        x, y = endpoints.require(
            [tf.debugging.assert_equal(rows, tf.shape(y), "equally many")], x, y
        )
        return x + y

    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        added(tf.ones(2), tf.ones(3))
    np.testing.assert_array_equal(added(tf.ones(2), tf.ones(2)), [2, 2])
