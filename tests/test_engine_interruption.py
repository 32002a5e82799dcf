"""Nothing is lost: signals, saving by time, damaged and unfinished files, two processes on one run."""

import errno
import json
import multiprocessing
import os
import signal

import keras
import numpy as np
import pytest
from helpers import check_same_training

from base.files import UserError, atomic_directory, atomic_file
from engine.interruption import Interruption, locked
from engine.run import BEST, CHECKSUMS, HISTORY, LAST, Run
from engine.train import resume as resume_run
from engine.train import start
from engine.validation import Validation
from tasks import TASKS

dialog = TASKS["dialog"]
SETTINGS = {"epochs": 2.0, "batch_size": 5, "learning_rate": 0.01, "embedding_dim": "7", "validations_per_epoch": "1"}


def train_into(path, data, **options):
    """Two epochs of 6 steps."""
    return start(dialog, "supervised-embeddings", data, path, SETTINGS, **options)


def resume(path):
    keras.utils.clear_session()
    return resume_run(dialog, path)


def at_step(monkeypatch, number, action):
    """Calls `action` after a step of the training."""
    original, count = Validation.on_train_batch_end, [0]

    def counting(self, batch, logs=None):
        count[0] += 1
        if count[0] == number:
            action()
        original(self, batch, logs)

    monkeypatch.setattr(Validation, "on_train_batch_end", counting)


@pytest.fixture(scope="module")
def whole(prepared_dialog, tmp_path_factory):
    return train_into(tmp_path_factory.mktemp("runs") / "whole", prepared_dialog)


@pytest.mark.parametrize(("number", "step"), [(signal.SIGTERM, 2), (signal.SIGINT, 8)])
def test_a_signal_saves_and_resume_goes_on_exactly(prepared_dialog, whole, tmp_path, monkeypatch, number, step):
    with monkeypatch.context() as patch:
        at_step(patch, step, lambda: os.kill(os.getpid(), number))
        with pytest.raises(
            UserError, match=rf"^interrupted; train.py --resume --workdir=.*/run goes on from step {step}$"
        ):
            train_into(tmp_path / "run", prepared_dialog)
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    assert [row["step"] for row in whole.history()] == [6, 12]
    check_same_training(resume(tmp_path / "run"), whole, loss=0.1)  # a block of steps was cut in two


def test_a_killed_process_loses_no_more_than_was_not_saved(prepared_dialog, tmp_path, monkeypatch):
    def die():
        raise MemoryError

    monkeypatch.setattr("engine.validation.BLOCK", 2)
    whole = train_into(tmp_path / "whole", prepared_dialog)
    with monkeypatch.context() as patch:
        at_step(patch, 10, die)
        with pytest.raises(MemoryError):
            train_into(tmp_path / "run", prepared_dialog, save_minutes=0.0)
    with np.load(tmp_path / "run" / LAST) as state:
        assert json.loads(str(state["position"]))["begun"]["steps"] == 2  # of the second interval
    (tmp_path / "run" / f".{LAST}").write_bytes(b"half")
    with open(tmp_path / "run" / HISTORY, "a", encoding="utf-8") as file:
        file.write('{"step": 12, "los')
    run = resume(tmp_path / "run")
    check_same_training(run, whole)
    assert not (run.path / f".{LAST}").exists()


def test_a_process_killed_while_it_validates_loses_no_row(prepared_dialog, tmp_path, monkeypatch):
    whole = train_into(tmp_path / "whole", prepared_dialog)
    with monkeypatch.context() as patch:
        patch.setattr(type(dialog), "validate", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            train_into(tmp_path / "run", prepared_dialog, save_minutes=0.0)
    check_same_training(resume(tmp_path / "run"), whole)


def test_a_second_signal_ends_at_once():
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.requested == "SIGTERM"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def _hold(path, held, done):
    with locked(path):
        held.set()
        done.wait(60)


def test_two_processes_do_not_train_one_run(whole):
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(whole.path, held, done))
    process.start()
    assert held.wait(60)
    with pytest.raises(UserError, match="is being trained by another process"), locked(whole.path):
        pass
    done.set()
    process.join(60)
    with locked(whole.path):
        pass


@pytest.mark.parametrize("name", [BEST, LAST])
def test_any_damage_is_said(whole, tmp_path, name):
    size = (whole.path / name).stat().st_size
    content = bytearray((whole.path / name).read_bytes())
    run = Run(tmp_path, whole.record)
    (tmp_path / CHECKSUMS).write_bytes((whole.path / CHECKSUMS).read_bytes())
    model = run.build_model()
    for place in (0, size // 3, size // 2, size - 1):
        content[place] ^= 1
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=f"{name} is damaged: its SHA-256 is none that {CHECKSUMS} names"):
            run.load_model() if name == BEST else run.restore_state(model)
        content[place] ^= 1
    (tmp_path / name).write_bytes(content)
    if name == BEST:
        run.load_model()


def test_the_checksum_before_counts_until_the_new_file_stands(whole, tmp_path):
    run, model = Run(tmp_path, whole.record), whole.load_model()
    run.save_best(model)
    before = (tmp_path / BEST).read_bytes()
    model.set_weights([weight + 1 for weight in model.get_weights()])
    run.save_best(model)
    assert len(json.loads((tmp_path / CHECKSUMS).read_text())[BEST]) == 2
    (tmp_path / BEST).write_bytes(before)  # as if the process had been killed between the two writes
    run.load_model()


def test_history_is_that_of_the_saved_position(whole, tmp_path):
    run = Run(tmp_path, {})
    first, second = {"step": 6, "loss": 1.0}, {"step": 12, "loss": 0.5}
    run.log(first)
    run.complete_history({"step": 12, "row": second})  # killed before the row was written
    assert run.history() == [first, second]
    run.complete_history({"step": 6, "row": first})  # killed before the state was saved
    assert run.history() == [first]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_disk_is_one_sentence(tmp_path, monkeypatch, number):
    def refuse(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with (
        pytest.raises(UserError, match=f"a.txt cannot be written: {os.strerror(number)}"),
        atomic_file(tmp_path / "a.txt"),
    ):
        pass
    with pytest.raises(UserError, match="made cannot be written"), atomic_directory(tmp_path / "made"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_appears_meanwhile_is_kept(tmp_path):
    with (
        pytest.raises(UserError, match="out cannot be written: Directory not empty"),
        atomic_directory(tmp_path / "out"),
    ):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "theirs").write_text("x")
    assert [file.name for file in tmp_path.rglob("*")] == ["out", "theirs"]
