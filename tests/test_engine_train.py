"""`engine.train`, `engine.evaluate` and `engine.run` together, on a small simulated corpus."""

import dataclasses
import json
import pickle
import shutil

import keras
import numpy as np
import pytest
from helpers import SMALL_RUNS, copy_of, train_small, weights_of_run

from base import runtime
from base.config import make_config
from base.files import UserError
from engine.evaluate import evaluate
from engine.run import Run
from engine.train import resume, start
from models import MODELS
from tasks import TASKS
from tasks.selection.task import Training

selection, dialog = TASKS["selection"], TASKS["dialog"]
_, SETTINGS = SMALL_RUNS["selection"]


@pytest.fixture(scope="module")
def run(trained_selection, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return copy_of(trained_selection, tmp_path_factory)


def train_quickly(data, workdir, **settings):
    """Trains the model that is compiled soonest, for what holds for all."""
    usual = {"batch_size": 4, "embedding_dim": 5, "validations_per_epoch": 1}
    return start(dialog, "supervised-embeddings", data, workdir, {**usual, **settings})


def test_a_run_holds_all_that_is_needed(run):
    assert {"config.json", "vocabulary.txt", "best.weights.h5", "last.npz", "history.jsonl"} <= {
        file.name for file in run.path.iterdir()
    }
    rows = run.history()
    assert len(rows) == 2  # two validations per epoch, one epoch
    assert rows[1]["epoch"] == 1.0
    assert rows[0]["step"] == -(-rows[1]["step"] // 2)
    assert {"loss", "R10@1", "R10@2", "MAP", "steps_per_second", "seconds"} <= rows[0].keys()
    config = json.loads((run.path / "config.json").read_text())
    assert config["config"]["levels"] == 1
    assert config["training"]["loss"] == "softmax"
    assert config["training"]["learning_rate"] == 0.01
    assert {"command", "hardware", "commit", "dirty", "versions"} <= config.keys()
    assert list((run.path / "tensorboard").rglob("events*"))


def test_a_finished_run_says_so_when_it_is_resumed(run, capsys):
    before = (run.path / "config.json").read_text()
    resume(selection, run.path)
    assert "run is finished, after 1 epochs; --epochs=N with more continues it" in capsys.readouterr().out
    assert len(run.history()) == 2 and (run.path / "config.json").read_text() == before


def test_a_moved_dataset_is_asked_for(run, tmp_path):
    config = {**run.record, "dataset": {**run.dataset, "path": str(tmp_path / "gone")}}
    with pytest.raises(UserError, match=r"run was trained on .*/gone, which is gone: give --data$"):
        selection.dataset_of(Run(run.path, config))


def test_a_dataset_of_another_task_is_refused(prepared_dialog, run, tmp_path):
    message = r"task1 was prepared for models of dialog; expected a dataset for selection$"
    with pytest.raises(UserError, match=message):
        start(selection, "dam", prepared_dialog, tmp_path / "run", SETTINGS)
    with pytest.raises(UserError, match=message):
        evaluate(selection, run.path, data=prepared_dialog)


def test_a_used_workdir_is_refused(run, prepared):
    before = (run.path / "config.json").read_text()
    with pytest.raises(UserError, match="is in use"):
        start(selection, "dam", prepared, run.path, SETTINGS)
    assert (run.path / "config.json").read_text() == before


@pytest.mark.parametrize(("epochs", "validated"), [(0.25, [2]), (1.25, [7, 9])])
def test_trains_as_many_epochs_as_are_asked_for(prepared_dialog, tmp_path, epochs, validated):
    run = train_quickly(prepared_dialog, tmp_path / "run", epochs=epochs)  # of 7 steps
    assert [row["step"] for row in run.history()] == validated
    assert run.finished()


def test_a_workdir_without_a_state_is_not_resumed(run, prepared, tmp_path):
    Run.create(tmp_path / "killed", run.record)
    with pytest.raises(UserError, match="is in use: give another --workdir, or delete it: there is nothing to go on"):
        start(selection, "dam", prepared, tmp_path / "killed", SETTINGS)


def test_a_dev_that_cannot_be_scored_leaves_nothing(prepared, tmp_path):
    broken = shutil.copytree(prepared, tmp_path / "broken")
    with open(broken / "data.pkl", "rb") as file:
        train_split, dev, test = pickle.load(file)
    right = [i for i, label in enumerate(dev["y"]) if label]
    dev = {name: [rows[i] for i in right] for name, rows in dev.items()}
    with open(broken / "data.pkl", "wb") as file:
        pickle.dump((train_split, dev, test), file, protocol=2)
    with pytest.raises(UserError, match=r"dev cannot be scored: .*negative"):
        start(selection, "dam", broken, tmp_path / "run", SETTINGS)
    assert not (tmp_path / "run").exists()


def test_patience_stops_early_and_a_step_is_traced_once(prepared_dialog, tmp_path, monkeypatch):
    traced, original = [], keras.Model.train_step
    monkeypatch.setattr(keras.Model, "train_step", lambda self, data: traced.append(data) or original(self, data))
    settings = {"patience": 1, "validations_per_epoch": 3, "epochs": 3.0, "learning_rate": 0.0}
    run = train_quickly(prepared_dialog, tmp_path / "run", **settings)
    assert len(run.history()) == 2  # never better than the first time
    assert len(traced) == 1  # tracing takes longer than all steps of a small run


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_trains_in_half_precision(prepared, tmp_path, precision):
    run = train_small("selection", prepared, tmp_path / "run", epochs=0.5, precision=precision)
    assert 0.5 < run.history()[0]["loss"] < 0.9
    assert all(value.dtype != np.float16 for value in weights_of_run(run).values())


def test_auto_precision_is_chosen_once_and_kept(prepared_dialog, tmp_path, monkeypatch):
    entry = dataclasses.replace(MODELS["supervised-embeddings"], gains_in_bfloat16=True)
    monkeypatch.setitem(MODELS, "supervised-embeddings", entry)
    monkeypatch.setattr(runtime, "bfloat16_instructions", lambda *_: "AMX")
    run = train_quickly(prepared_dialog, tmp_path / "run", epochs=0.25, precision="auto")
    assert run.training.precision == "bfloat16"
    assert evaluate(dialog, run.path, baselines=False)["precision"] == "bfloat16"
    monkeypatch.setattr(runtime, "bfloat16_instructions", lambda *_: None)  # moved to another machine
    resume(dialog, run.path, epochs=0.5)
    assert Run.open(run.path).training.precision == "bfloat16"
    assert evaluate(dialog, run.path, baselines=False)["precision"] == "float32"
    other = train_quickly(prepared_dialog, tmp_path / "other", epochs=0.25, precision="auto")
    assert other.training.precision == "float32"


def test_compatibility_release_trains_what_the_release_is(prepared, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.Model, "fit", lambda self, *args, **kwargs: None)
    settings = {"compatibility": "release", "max_turns": "3", "max_words": "5", "levels": "1", "variant": "last"}
    run = start(selection, "dam", prepared, tmp_path / "run", {**SETTINGS, **settings})
    assert run.config.masking == "release"
    assert run.config.scalar_bias is True
    assert run.config.response_rows is True
    assert run.training.loss_clip == 10.0


@pytest.mark.slow
def test_what_the_release_is_can_be_trained(prepared, tmp_path):
    settings = {"compatibility": "release", "max_turns": "3", "max_words": "5", "levels": "1", "variant": "last"}
    run = start(selection, "dam", prepared, tmp_path / "run", {"epochs": 0.2, "batch_size": 32, **settings})
    assert len(run.history()) >= 1


def test_evaluate_shows_examples_below_the_table(run, capsys):
    record = evaluate(selection, run.path, "test", baselines=False, examples=2)
    assert [example["context"] for example in record["examples"]] == [3, 9]
    printed = capsys.readouterr().out.split("\n\n")
    assert printed[-2].startswith("Context 3 of 11, correct: ")
    assert len(printed[-1].splitlines()) == 1 + len(record["examples"][1]["turns"]) + 10


def test_resume_refuses_a_run_without_state(run, tmp_path):
    Run.create(tmp_path / "bare", run.record)
    with pytest.raises(UserError, match=r"cannot be resumed: it has no last\.npz"):
        resume(selection, tmp_path / "bare")


def test_a_run_without_a_dataset_asks_for_one(run, tmp_path):
    config = {**run.record, "dataset": {**run.dataset, "path": None}}
    Run.create(tmp_path / "bare", config)
    with pytest.raises(UserError, match="remembers no dataset: give --data"):
        evaluate(selection, tmp_path / "bare", "dev")
    with pytest.raises(UserError, match="remembers no dataset: give --data"):
        resume(selection, tmp_path / "bare")


def test_a_dataset_of_another_preparation_is_refused(run, prepared, tmp_path):
    other = shutil.copytree(prepared, tmp_path / "other")
    (other / "vocabulary.txt").unlink()
    with open(other / "word_embedding.pkl", "wb") as file:
        pickle.dump(np.zeros((900, 7), "float32").tolist(), file, protocol=2)
    with pytest.raises(UserError, match="they come from different preparations"):
        evaluate(selection, run.path, "dev", data=other)
    with pytest.raises(UserError, match="they come from different preparations"):
        resume(selection, run.path, data=other, epochs=2.0)


def test_settings_that_do_not_exist_are_listed(prepared, tmp_path):
    with pytest.raises(UserError, match=r"no field 'layers'.*has vocabulary_size, .*levels.*negatives"):
        start(selection, "dam", prepared, tmp_path / "run", {**SETTINGS, **{"layers": "3"}})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"levels": "many"}, "levels: .* integer"),
        ({"positional": "1"}, "positional: .* boolean"),
        ({"variant": "both"}, "variant: .* 'full', "),
        ({"embedding_dim": "9"}, r"decides embedding_dim, it is 7$"),
        ({"compatibility": "tf2"}, "expects paper or release"),
        ({"negatives": "none"}, "negatives: .* 'file' or 'fresh'"),
        ({"embedding_dim": "many"}, "embedding_dim=many: .* decides embedding_dim"),
        ({"masking": "paper"}, "masking: .*'exact' or 'release'"),
        ({"embedding_dropout": "1.5"}, "embedding_dropout: .*less than 1"),
        ({"conv_filters": "16"}, "conv_filters: .* array"),
        ({"conv_filters": "[16]"}, r"conv_filters\.1 is missing"),
        ({"conv_filters": "[16, 0]"}, r"conv_filters\.1: .*greater than or equal to 1"),
    ],
)
def test_wrong_settings_are_refused_and_leave_nothing(prepared, tmp_path, setting, message):
    with pytest.raises(UserError, match=message):
        start(selection, "dam", prepared, tmp_path / "run", {**SETTINGS, **setting})
    assert not (tmp_path / "run").exists()


def test_make_config_parses_tuples_and_floats():
    Config = Training
    assert make_config(Config, {"decay_rate": "1"}).decay_rate == 1.0
    assert make_config(Config, {"decay_rate": ".5"}).decay_rate == 0.5
    from models.dam import DAMConfig

    assert make_config(DAMConfig, {"vocabulary_size": 3, "conv_filters": "[16, 16]"}).conv_filters == (16, 16)


def test_other_policies_do_not_leak():
    assert keras.config.dtype_policy().name == "float32"
