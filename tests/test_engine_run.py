"""engine/run.py: nothing is lost, damage is named, one process writes a run, signals end training
in order.
"""

import json
import os
import pathlib
import re
import shutil
import signal

import numpy as np
import pytest
from helpers import contents_of, flip_bit, full_disk, refusal, train_quickly

from colloquy.base.files import CHECKSUMS, UserError
from colloquy.engine import train
from colloquy.engine.interrupts import signals_received
from colloquy.engine.records import TrainState
from colloquy.engine.run import BEST, CONFIG, HISTORY, LAST, Run
from colloquy.engine.workdir import create_run
from colloquy.tasks import TASKS


@pytest.fixture
def copied(trained_dialog, tmp_path):
    """A run with the config of another, without files of its own."""
    return Run(tmp_path, trained_dialog.record)


@pytest.fixture
def own(trained_dialog, tmp_path):
    """A copy of a run."""
    return Run.open(shutil.copytree(trained_dialog.path, tmp_path / "run"))


# === Config ===


def test_wrong_values_in_the_config_are_named(copied):
    for part, values, message in (
        ("config", {}, "MEMMAConfig: the field vocabulary_size is missing"),
        ("training", {"seed": -1}, "seed: .*greater than or equal to 0"),
        ("training", {"learning_rate": float("nan")}, "learning_rate: .*finite"),
    ):
        run = Run(copied.path, {**copied.record, part: values})
        assert re.search(f"{CONFIG}: {message}", refusal(getattr, run, part))


def test_a_setting_that_is_gone_is_left_out_if_it_changed_nothing():
    record = {"model": "seq2seq", "config": {"vocabulary_size": 7, "shared_embedding": True}}
    assert Run(pathlib.Path("old"), record).config.vocabulary_size == 7
    record["config"]["shared_embedding"] = False
    message = refusal(getattr, Run(pathlib.Path("old"), record), "config")
    assert "Seq2SeqConfig has no field 'shared_embedding'" in message


def test_a_run_that_ended_before_anything_was_saved_is_replaced(copied):
    create_run(copied.path, copied.record)
    (copied.path / "candidates.txt").touch()
    create_run(copied.path, copied.record)
    assert not (copied.path / "candidates.txt").exists()
    (copied.path / CONFIG).write_text('{"name": "a program of the user"}')
    message = refusal(create_run, copied.path, copied.record)
    assert "config.json: the field model is missing" in message
    assert (copied.path / CONFIG).exists()


@pytest.mark.slow
def test_of_two_trainings_started_at_once_in_a_new_directory_one_is_refused(
    prepared_dialog, tmp_path, monkeypatch
):
    create, usual = create_run, (prepared_dialog, tmp_path / "run")

    def create_late(*arguments):
        monkeypatch.setattr(train, "create_run", create)
        assert "another process is training" in refusal(train_quickly, *usual, epochs=0.25)
        return create(*arguments)

    monkeypatch.setattr(train, "create_run", create_late)
    assert train_quickly(*usual, epochs=0.25).finished()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"step": 1, "epoch": 1.0}\n\xff\n', "line 2: expected UTF-8"),
        ('{"step": 1}\n', "the field 0.epoch is missing"),
    ],
)
def test_a_wrong_line_of_the_history_is_named(content, message, own):
    (own.path / HISTORY).write_text(content, encoding="latin-1")
    assert message in refusal(Run.open(own.path).history)


def test_scores_of_the_weights_before_are_not_those_of_new_ones(trained_dialog, copied):
    copied.save_metrics("dev", {"metrics": {"per_response": 0.5}})
    copied.save_best(trained_dialog.load_model())
    assert copied.metrics() == {}


def test_weights_with_nan_are_refused(trained_dialog, copied):
    model = trained_dialog.load_model()
    model.trainable_weights[-1].assign(np.full(model.trainable_weights[-1].shape, np.nan))
    copied.save_best(model)
    assert re.search("the weights of .* have NaN or infinity", refusal(copied.load_model))


def test_hashed_words_need_no_room(trained_selection, tmp_path):
    run = Run.open(shutil.copytree(trained_selection.path, tmp_path / "run"))
    run.update({"config": {**run.record["config"], "hashed_words": 2**24, "unknown_id": 2}})
    assert run.load_model().config.hashed_words > (run.path / BEST).stat().st_size


def test_a_sealed_run_is_refused_when_a_file_that_answers_depend_on_is_altered(own):
    own.seal()
    words = ("vocabulary.txt", "candidates.txt", "entities.txt", "knowledge.txt", "users.json")
    names = {CONFIG, BEST, *words}
    assert names <= json.loads((own.path / CHECKSUMS).read_text()).keys()
    Run.open(own.path).load_model()
    own.save_metrics("dev", {"metrics": {"per_response": 0.5}})
    Run.open(own.path)
    for name in names:
        flip_bit(own.path / name)
        message = f"({name} is damaged or was altered: {CHECKSUMS}|{name}: )"
        with pytest.raises(UserError, match=message):
            Run.open(own.path).load_model()
        flip_bit(own.path / name)
    (own.path / "knowledge.txt").unlink()
    assert "knowledge.txt is missing" in refusal(Run.open, own.path)


# === Damage and unfinished writes ===


def test_a_damaged_state_is_named(own):
    model = own.build_model()
    task = TASKS["dialog"]
    model.compile(task.optimizer(task.Training(), 7))
    for place in (0, 1 / 3, 1 / 2):
        flip_bit(own.path / LAST, place)
        message = f"{LAST}: the weights do not fit {CONFIG} or are damaged"
        assert message in refusal(own.restore, model)
        flip_bit(own.path / LAST, place)
    own.restore(model)


def test_the_checksum_before_counts_until_the_new_file_is_there(
    trained_dialog, copied, monkeypatch
):
    model = trained_dialog.load_model()
    copied.save_best(model)
    before = (copied.path / BEST).read_bytes()
    model.set_weights([weight + 1 for weight in model.get_weights()])
    copied.save_best(model)
    # as if the process had been killed between the two writes
    (copied.path / BEST).write_bytes(before)
    copied.load_model()


def test_weights_and_states_of_another_model_are_refused(trained_selection, copied):
    message = refusal(copied.load_model)
    assert "holds no weights: expected best.weights.h5, which train.py writes" in message
    for name in (BEST, LAST):
        (copied.path / name).write_bytes((trained_selection.path / name).read_bytes())
    assert "the weights do not fit" in refusal(copied.load_model)
    model = copied.build_model()
    task = TASKS["dialog"]
    model.compile(task.optimizer(task.Training(), 7))
    message = r"the weights do not fit config.json or are damaged. \d+ variables, not \d+"
    assert re.search(message, refusal(copied.restore, model))


@pytest.mark.parametrize("name", [BEST, LAST])
def test_a_full_disk_keeps_the_last_good_files(own, name):
    model, before = own.load_model(), contents_of(own.path)
    task = TASKS["dialog"]
    model.compile(task.optimizer(task.Training(), 7))
    message = f"{name} cannot be written: File too large"
    with full_disk(20_000), pytest.raises(UserError, match=message):
        own.save_best(model) if name == BEST else own.save(model, TrainState())
    assert contents_of(own.path) == before


def test_a_second_signal_ends_at_once():
    before = signal.getsignal(signal.SIGTERM)
    with signals_received() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals == ["SIGTERM"]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before
