"""engine/train.py: the loop on a model of one layer, exact resumes, small runs, refusals."""

import dataclasses
import os
import pickle
import re
import shutil
import signal
import types
from unittest.mock import Mock

import keras
import numpy as np
import pytest
from helpers import (
    SMALL_RUNS,
    at_step,
    check_same_training,
    contents_of,
    evaluate,
    refusal,
    train_quickly,
    train_small,
    weights_of_run,
)

from colloquy.base import machine
from colloquy.base.files import seal
from colloquy.engine.data_parallel import Devices
from colloquy.engine.interrupts import LOCK, locked
from colloquy.engine.limits import Limit
from colloquy.engine.progress import Progress
from colloquy.engine.run import BEST, HISTORY, LAST, Run
from colloquy.engine.run_files import CURVES, WRITTEN
from colloquy.engine.train import resume, start
from colloquy.engine.trainer import LOG_INTERVAL, Trainer
from colloquy.engine.training_settings import Training
from colloquy.models import MODELS
from colloquy.tasks import TASKS

dialog, selection = TASKS["dialog"], TASKS["selection"]


# === The loop, on a model of one layer ===


class Numbers:
    """A task of lists of numbers; the model learns their product with a weight.

    `scores` are those of the validations; when they are used up, scores grow with the weight.
    """

    Training = Training
    max_score = 1.0

    def __init__(self, scores=(), dev_examples=100, optimizer=None):
        self.scores = scores
        self.scores_left = []  # until a training begins
        self.dev_examples = dev_examples
        self.own_optimizer = optimizer

    def initialise(self, model, dataset, training):
        self.scores_left = list(self.scores)

    def optimizer(self, training, steps):
        if self.own_optimizer is not None:
            return self.own_optimizer
        return keras.optimizers.Adam(training.learning_rate, use_ema=True, ema_momentum=0.5)

    def loss(self, training):
        return lambda y, x: keras.ops.mean(keras.ops.square(x - y), axis=-1)

    def loss_counts(self, targets):
        return np.ones(len(targets))

    def num_examples(self, split):
        return self.dev_examples

    def limits(self, split, config, training):
        return []

    def training_batches(self, split, config, training, rng):
        return [(step, rng.normal()) for step in range(len(split))]

    def collate(self, split, config, batch, length_multiple):
        step, noise = batch
        x = np.full((1 + step % 3, 1 + step % 5, 1), noise, "float32")
        return {"x": x}, np.full_like(x, split[step])

    def validate(self, model, split, length_multiple):
        assert (split, length_multiple) == ("dev", 4)
        score = float(model.weights[0][0, 0]) / 1e6
        if self.scores_left:
            score = self.scores_left.pop(0)
        return {"accuracy": score}, score


class NumbersRun(Run):
    dropout = 0.5

    def build_model(self):
        x = keras.Input((None, 1), name="x")
        weight = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = keras.Model({"x": x}, keras.layers.Dropout(self.dropout, seed=7)(weight(x)))
        model.config = None
        return model


def trained(path, targets, task=None, total=None, save_minutes=10.0, callbacks=(), **settings):
    """Trains one epoch of `targets`, or continues to `total` steps; returns the run."""
    settings.setdefault("learning_rate", 0.25)
    epochs = (total or len(targets)) / len(targets)
    training = Training(epochs=epochs, precision="float32", **settings)
    path.mkdir(exist_ok=True)
    run = NumbersRun(path, {"training": training.to_json()})
    dataset = types.SimpleNamespace(path="data", splits={"train": targets, "dev": "dev"})
    trainer = Trainer(task or Numbers(), run, dataset, Devices(), training, callbacks=callbacks)
    trainer.train(save_minutes)
    return run


STEPS = 2 * LOG_INTERVAL + 3


def test_history_has_the_mean_loss_of_each_interval(tmp_path, capsys):
    targets = np.random.default_rng(0).normal(size=2 * STEPS)
    task = Numbers(scores=[0.5, 0.25])
    run = trained(tmp_path / "run", targets, task, learning_rate=0.0, validations_per_epoch=2)
    first, second = run.history()
    assert (first["step"], first["epoch"], first["accuracy"]) == (STEPS, 0.5, 0.5)
    assert (second["step"], second["epoch"], second["accuracy"]) == (2 * STEPS, 1.0, 0.25)
    assert first["loss"] == pytest.approx(np.mean(targets[:STEPS] ** 2), rel=1e-4)
    assert second["loss"] == pytest.approx(np.mean(targets[STEPS:] ** 2), rel=1e-4)
    assert 0 < first["seconds"] < second["seconds"]

    begin, few_steps, *validations = capsys.readouterr().out.splitlines()
    assert "46 steps in all, " in few_steps and "--epochs=11 makes 506" in few_steps
    assert "1 parameters, steps per epoch: 46, steps between validations: 23" in begin
    assert validations[0].startswith("step 23  epoch 0.50  loss ")
    assert validations[0].endswith("dev: accuracy 0.5000  (best)")
    assert validations[1].endswith("dev: accuracy 0.2500")


def test_a_training_says_which_examples_its_limits_leave_out(tmp_path, capsys, monkeypatch):
    limit = Limit("examples", np.array([True, True, False]), "are cut", "--set size=N cuts less")
    monkeypatch.setattr(Numbers, "limits", lambda *_: [limit])
    trained(tmp_path / "run", np.ones(3))
    sentence = "2 of 3 examples are cut (--set size=N cuts less)"
    assert capsys.readouterr().out.splitlines()[0] == f"note: {sentence}"
    monkeypatch.setattr(Numbers, "training_batches", lambda *_, **__: [])
    message = refusal(trained, tmp_path / "none", np.ones(3))
    assert message == f"data: these settings leave no example of the split train; {sentence}"


def test_tensorboard_draws_loss_learning_rate_and_scores(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    run = trained(tmp_path / "run", np.ones(STEPS), Numbers(scores=[0.5]))
    [curves] = run.path.glob(f"{CURVES}*")
    events = EventAccumulator(str(curves)).Reload()
    points = {}
    for name in ("loss", "learning_rate", "dev/accuracy"):
        tensors = events.Tensors(name)
        points[name] = {e.step: float(make_ndarray(e.tensor_proto)) for e in tensors}
    ends = [LOG_INTERVAL, 2 * LOG_INTERVAL, STEPS]
    assert list(points["loss"]) == list(points["learning_rate"]) == ends
    assert points["dev/accuracy"] == {STEPS: 0.5}


@pytest.mark.parametrize(
    ("scores", "patience", "reason"),
    [
        ([0.5, 0.25, 0.25], 2, "no improvement for 2 validations: training stopped"),
        ([0.5, 0.5], 1, "no improvement for 1 validation: training stopped"),
        ([1.0, 0.5, 1.0], 0, "the best possible score was reached: training stopped"),
    ],
)
def test_early_stopping_says_why_and_can_be_extended(tmp_path, capsys, scores, patience, reason):
    targets, settings = np.ones(5), {"patience": patience}
    run = trained(tmp_path / "run", targets, Numbers(scores=scores), total=50, **settings)
    assert [row["step"] for row in run.history()] == [5 * (1 + n) for n in range(len(scores))]
    assert capsys.readouterr().out.splitlines()[-1] == reason
    assert run.saved_state().stopped and run.finished()
    trained(run.path, targets, Numbers(), total=60, **settings)
    assert len(run.history()) > len(scores)


class Penalised(Numbers):
    """A task with a second metric, which falls where the task's own rises; both below -1."""

    def validate(self, model, split, length_multiple):
        metrics, score = super().validate(model, split, length_multiple)
        return {**metrics, "penalty": -score - 2, "perplexity": score + 1}, score


@pytest.mark.parametrize("name", ["penalty", "perplexity"])
def test_early_stopping_follows_the_metric_asked_for(tmp_path, name):
    task = Penalised(scores=[0.25, 0.5, 0.75])
    run = trained(tmp_path / "run", np.ones(5), task, total=50, patience=2, best_by=name)
    assert len(run.history()) == 3
    first, *_ = run.history()
    assert abs(run.saved_state().best_score) == pytest.approx(abs(first[name]))
    message = refusal(trained, tmp_path / "none", np.ones(5), best_by="MAP")
    assert message == "best_by: expected one of accuracy. Received: MAP"


def test_a_dataset_with_other_examples_is_refused_where_it_has_as_many(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    examples = tmp_path / "data" / "data.pkl"
    examples.write_text("one")
    run = trained(tmp_path / "run", np.ones(5))
    trained(run.path, np.ones(5), total=10)
    examples.write_text("two")
    message = refusal(trained, run.path, np.ones(5), total=15)
    assert "data has other examples or words than the dataset that the run was trained" in message


@pytest.mark.parametrize(
    ("dev", "per_epoch", "validations"), [(100, 1, 3), (100, 5, 5), (99, 1, 8)]
)
def test_the_best_score_ends_training_only_where_it_is_no_chance(
    tmp_path, dev, per_epoch, validations
):
    """After three validations and one epoch; never on a small dev."""
    task = Numbers(scores=[1.0] * 40, dev_examples=dev)
    run = trained(tmp_path / "run", np.ones(5), task, total=40, validations_per_epoch=per_epoch)
    assert len(run.history()) == validations


def test_a_loss_that_is_not_finite_keeps_the_last_good_state(tmp_path):
    targets = np.ones(3 * STEPS)
    targets[STEPS + 4] = np.nan
    message = refusal(trained, tmp_path / "run", targets, validations_per_epoch=3, save_minutes=0.0)
    assert "run: the loss of step 28 is nan, so training stopped" in message
    assert re.search("train.py --resume --workdir=.*run continues from step 23$", message)
    run = Run(tmp_path / "run", {})
    assert run.saved_state().step == STEPS and [row["step"] for row in run.history()] == [STEPS]
    assert (run.path / BEST).is_file()


# The loss before the step of an endless optimizer is finite.
@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("endless", {"validations_per_epoch": 5}, "the weights after step 1 are not finite, so"),
        ("endless", {"save_minutes": 0.0}, "the weights after step 1 are not finite, so"),
        ("nan", {}, "the metrics after step 5 are not finite, so"),
    ],
)
def test_what_is_not_finite_is_neither_scored_nor_saved(
    tmp_path, monkeypatch, task, settings, message
):
    monkeypatch.setattr("colloquy.engine.trainer.LOG_INTERVAL", 1)
    tasks = {
        "endless": Numbers(optimizer=keras.optimizers.SGD(1e39)),
        "nan": Numbers(scores=[np.nan]),
    }
    found = refusal(trained, tmp_path / "run", np.ones(5), tasks[task], **settings)
    assert message in found and "nothing was saved before" in found
    assert not Run(tmp_path / "run", {}).saved()


def test_a_training_is_traced_once_whatever_the_shapes(tmp_path, monkeypatch):
    traced, original = [], keras.Model.compute_loss
    monkeypatch.setattr(
        keras.Model, "compute_loss", lambda self, *batch: traced.append(1) or original(self, *batch)
    )
    run = trained(tmp_path / "run", np.ones(31), validations_per_epoch=4)
    # tracing takes longer than all steps of a small run
    assert len(run.history()) == 4 and len(traced) == 1


def test_resume_is_exact_after_any_step_into_any_shape(tmp_path):
    """Dropout, Adam, moving averages and the order of batches and validations continue exactly."""
    targets, settings = np.linspace(-1, 1, 7), {"total": 17, "validations_per_epoch": 2}
    whole = trained(tmp_path / "whole", targets, **settings)
    assert [row["step"] for row in whole.history()] == [4, 8, 12, 16, 17]
    for step in (4, 6, 7):  # a validation, between, the end of an epoch
        path = tmp_path / str(step)
        with (
            at_step(step, lambda: os.kill(os.getpid(), signal.SIGTERM)),
            pytest.raises(KeyboardInterrupt),
        ):
            trained(path, targets, **settings)
        assert Run(path, {}).saved_state().step == step
        check_same_training(trained(path, targets, **settings), whole)


def test_ctrl_c_saves_where_it_has_ended_the_reader_of_the_output_too(tmp_path, monkeypatch):
    monkeypatch.setattr("colloquy.engine.progress.LINE_SECONDS", 0)
    gone = Mock(side_effect=BrokenPipeError)

    def ctrl_c():
        monkeypatch.setattr(Progress, "print_line", gone)
        monkeypatch.setattr("sys.stderr", Mock(write=gone))
        os.kill(os.getpid(), signal.SIGINT)

    with at_step(4, ctrl_c), pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "run", np.ones(9))
    assert Run(tmp_path / "run", {}).saved_state().step == 4


def test_an_extended_run_keeps_its_validation_steps_and_continues_exactly(tmp_path):
    targets = np.linspace(-1, 1, 7)
    run = trained(tmp_path / "run", targets, total=9)
    assert [row["step"] for row in run.history()] == [7, 9]
    trained(run.path, targets, total=21)
    assert [row["step"] for row in run.history()] == [7, 9, 14, 21]
    trained(run.path, targets, total=7)  # fewer than were done
    assert run.saved_state().step == 21
    whole = trained(tmp_path / "whole", targets, total=14)
    trained(tmp_path / "extended", targets, total=7)
    check_same_training(trained(tmp_path / "extended", targets, total=14), whole)


def test_a_killed_process_loses_no_more_than_was_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("colloquy.engine.trainer.LOG_INTERVAL", 2)
    targets, die = np.linspace(-1, 1, 7), Mock(side_effect=MemoryError)
    whole = trained(tmp_path / "whole", targets, total=14)
    with at_step(10, die), pytest.raises(MemoryError):
        trained(tmp_path / "step", targets, total=14, save_minutes=0.0)
    assert Run(tmp_path / "step", {}).saved_state().step == 9
    with open(tmp_path / "step" / HISTORY, "a", encoding="utf-8") as file:
        file.write('{"step": 14, "los')
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(Numbers, "validate", die)
        trained(tmp_path / "validation", targets, total=14, save_minutes=0.0)
    for name in ("step", "validation"):
        check_same_training(trained(tmp_path / name, targets, total=14), whole)


class Recorder(keras.callbacks.Callback):
    """Notes its calls, and stops after some validations."""

    def __init__(self, stop_after=99):
        super().__init__()
        self.calls = []
        self.stop_after = stop_after

    def on_train_begin(self, logs=None):
        self.calls.append("begin")

    def on_epoch_begin(self, epoch, logs=None):
        self.calls.append(f"epoch {epoch}")

    def on_train_batch_end(self, batch, logs=None):
        self.calls.append((batch, sorted(logs)))

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append((epoch, logs["val_accuracy"] == logs["accuracy"]))
        self.model.stop_training = epoch + 1 >= self.stop_after

    def on_train_end(self, logs=None):
        self.calls.append("end")


def test_callbacks_of_keras_see_batches_and_validations_and_may_stop(tmp_path, capsys):
    targets = np.linspace(-1, 1, 6)
    whole = trained(tmp_path / "whole", targets, validations_per_epoch=2)
    recorder = Recorder()
    run = trained(tmp_path / "run", targets, validations_per_epoch=2, callbacks=[recorder])
    first = [(step, ["loss"]) for step in range(3)]
    second = [(step, ["loss"]) for step in range(3, 6)]
    epochs = ["epoch 0", *first, (0, True)], ["epoch 1", *second, (1, True)]
    assert recorder.calls == ["begin", *epochs[0], *epochs[1], "end"]
    check_same_training(run, whole)

    options = {"validations_per_epoch": 2, "callbacks": [Recorder(stop_after=1)]}
    capsys.readouterr()
    stopped = trained(tmp_path / "stopped", targets, **options)
    shown = capsys.readouterr().out
    assert "a callback asked for the end: training stopped" in shown and "the best" not in shown
    assert [row["step"] for row in stopped.history()] == [3]
    check_same_training(trained(stopped.path, targets, validations_per_epoch=2), whole)


# === Runs ===


@pytest.mark.slow
def test_a_signal_saves_and_resume_continues_exactly(prepared_dialog, tmp_path):
    step = 8
    whole = train_quickly(prepared_dialog, tmp_path / "whole", epochs=1.5714)
    message = rf"^interrupted; train.py --resume --workdir=.*/run continues from step {step}$"
    with (
        at_step(step, lambda: os.kill(os.getpid(), signal.SIGINT)),
        pytest.raises(KeyboardInterrupt, match=message),
    ):
        train_quickly(prepared_dialog, tmp_path / "run", epochs=1.5714)
    unfinished = tmp_path / "run" / f".{HISTORY}.{'7' * 16}"
    unfinished.touch()  # what a killed process was writing
    (tmp_path / "run" / ".env.local").touch()
    seal(tmp_path / "run")  # as older versions, which named the weights
    keras.utils.clear_session()
    run = resume(dialog, tmp_path / "run")
    check_same_training(run, whole)
    run.load_model()
    assert [row["step"] for row in run.history()] == [7, 11] and run.finished()
    assert len(run.record["resumed"]) == 1
    assert (run.path / ".env.local").exists() and not unfinished.exists()


@pytest.mark.parametrize("task", SMALL_RUNS)
def test_a_run_holds_all_that_is_needed(task, request):
    run = request.getfixturevalue(f"trained_{task}")
    for name in ("vocabulary.txt", BEST, LAST, HISTORY, "examples.json"):
        assert (run.path / name).is_file(), name
    names = {file.name for file in run.path.iterdir() if not file.name.startswith(CURVES)}
    assert names <= {*WRITTEN, LOCK}
    for name in ("command", "hardware", "commit", "dirty", "versions", "devices", "before"):
        assert name in run.record
    assert run.finished() and run.training.seed == 1


SCORES = {
    "selection": lambda row: row["R10@1"] + row["R10@2"],
    "dialog": lambda row: row["per_response"],
    "generation": lambda row: 1 / row["perplexity"],
    "reading_comprehension": lambda row: row["F1"],  # of the averages of the weights
}


@pytest.mark.parametrize(
    "task",
    [
        "dialog",
        "reading_comprehension",
        pytest.param("selection", marks=pytest.mark.slow),
        pytest.param("generation", marks=pytest.mark.slow),
    ],
)
def test_the_best_weights_are_those_of_the_best_validation(task, request):
    run = request.getfixturevalue(f"trained_{task}")
    best = max(run.history(), key=SCORES[task])
    dev = TASKS[task].dataset_of(run).splits["dev"]
    metrics, score = TASKS[task].validate(run.load_model(), dev)
    assert score == pytest.approx(SCORES[task](best), rel=1e-4)
    expected = {metric: best[metric] for metric in metrics}
    assert metrics == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.slow
def test_trains_in_float16(prepared, tmp_path):
    run = train_small("selection", prepared, tmp_path / "run", epochs=0.5, precision="float16")
    assert 0.5 < run.history()[0]["loss"] < 0.9
    assert all(value.dtype != np.float16 for value in weights_of_run(run).values())


@pytest.mark.slow
def test_auto_precision_is_chosen_once_and_kept(prepared_dialog, tmp_path, monkeypatch):
    entry = dataclasses.replace(MODELS["supervised-embeddings"], gains_in_bfloat16=True)
    monkeypatch.setitem(MODELS, "supervised-embeddings", entry)
    monkeypatch.setattr(machine, "has_amx", lambda: True)
    run = train_quickly(prepared_dialog, tmp_path / "run", epochs=0.25, precision="auto")
    assert run.training.precision == "bfloat16"
    assert evaluate(dialog, run.path, baselines=False)["precision"] == "bfloat16"
    # moved to another machine
    monkeypatch.setattr(machine, "has_amx", lambda: False)
    resume(dialog, run.path, epochs=0.5)
    assert Run.open(run.path).training.precision == "bfloat16"
    assert evaluate(dialog, run.path, baselines=False)["precision"] == "float32"
    other = train_quickly(prepared_dialog, tmp_path / "other", epochs=0.25, precision="auto")
    assert other.training.precision == "float32"


# === Refusals ===


def with_path(path):
    return lambda run: run.update({"dataset": {**run.dataset, "path": path}})


def with_another_dataset(run):
    data = shutil.copytree(run.dataset["path"], run.path / "other")
    (data / "vocabulary.txt").unlink()
    vectors = np.zeros((900, 7), "float32").tolist()
    (data / "word_embedding.pkl").write_bytes(pickle.dumps(vectors, protocol=2))
    return {"data": data}


def with_other_examples(run):
    data = shutil.copytree(run.dataset["path"], run.path / "other")
    labels = data / "arrays" / "train.label.npy"
    np.save(labels, 1 - np.load(labels))
    return {"data": data}


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (lambda run: (run.path / LAST).unlink(), "cannot be resumed: it has no last.npz"),
        (lambda run: {"epochs": 0.0}, "epochs"),
        (with_path(None), "names no dataset"),
        (with_path("/gone"), "was trained on /gone, which is gone"),
        (with_another_dataset, "here it is .*: they come from different preparations"),
        (with_other_examples, "has other examples or words than the dataset that the run was"),
    ],
)
def test_resume_refuses(spoilt, message, trained_selection, tmp_path, capsys):
    run = Run.open(shutil.copytree(trained_selection.path, tmp_path / "run"))
    resume(selection, run.path)
    assert "is finished, after 1 of 1 epochs; --epochs=N continues" in capsys.readouterr().out
    with locked(run.path):
        refused = refusal(resume, selection, run.path, epochs=2.0)
        assert "another process is training" in refused
    options = spoilt(run) or {}
    before = contents_of(run.path)
    options = {"epochs": 2.0, **options}
    assert re.search(message, refusal(resume, selection, run.path, **options))
    assert contents_of(run.path) == before


@pytest.mark.slow
def test_start_refuses_datasets_that_do_not_suit(prepared, prepared_dialog, tmp_path):
    message = refusal(start, selection, "dam", prepared_dialog, tmp_path / "run", {})
    assert "expected a dataset for models of selection" in message
    broken = shutil.copytree(prepared, tmp_path / "broken")
    arrays = {file: np.load(file) for file in (broken / "arrays").glob("dev.*.npy")}

    def spoil(file, array):
        return np.ones_like(array) if file.name == "dev.label.npy" else array

    for change, message in (
        (spoil, "dev cannot be scored: .*neg"),
        (lambda file, array: array[:0], "training needs examples in the split dev"),
    ):
        for file, array in arrays.items():
            np.save(file, change(file, array))
        assert re.search(message, refusal(train_small, "selection", broken, tmp_path / "run"))
        assert not (tmp_path / "run").exists()


def test_a_file_gets_a_line_now_and_then(capsys, monkeypatch):
    now = 100.0
    clock = types.SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("colloquy.engine.progress.time", clock)
    with Progress(20, 120) as progress:
        progress.print_line("begins")
        for step in range(21, 121):
            now += 2.0
            progress.update(step, 1.0 / step)
            if step == 27:
                progress.print_line("validated")  # begins the wait anew
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["begins", "validated"]
    assert lines[2] == "step 42 of 120  loss 0.0238  0.50 steps/s  0:02:36 left"
    assert [line.split()[1] for line in lines[2:]] == ["42", "57", "72", "87", "102", "117"]
