"""Training and runs together, on a small simulated corpus of dialogs."""

import numpy as np
import pytest

from engine.run import Run
from engine.train import start
from tasks import TASKS
from tasks.dialog.data import World

dialog = TASKS["dialog"]


@pytest.fixture(scope="module")
def run(swept):
    return Run.open(swept / "runs" / "tiny-task1-1")


# === Training ===


def test_a_run_holds_all_that_a_bot_needs(run, prepared_dialog):
    names = {"config.json", "best.weights.h5", "last.npz", "history.jsonl"}
    names |= {"vocabulary.txt", "candidates.txt", "knowledge.txt", "entities.txt"}
    assert names <= {file.name for file in run.path.iterdir()}
    assert World.load(run.path) == World.load(prepared_dialog)
    rows = run.history()
    # 26 dialogs, 4 per step, and a validation every other epoch
    assert [(row["epoch"], row["step"]) for row in rows] == [(2.0, 14), (4.0, 28), (6.0, 42), (8.0, 56)]
    assert {"loss", "per_response", "per_dialog", "steps_per_second", "seconds"} <= rows[0].keys()
    guess = np.log(477)  # what a guess among all candidates costs
    assert rows[3]["loss"] < rows[1]["loss"] < rows[0]["loss"] < guess
    assert rows[3]["loss"] < 0.5 * guess
    assert run.config.embedding_dim == 8
    assert run.training.validations_per_epoch == 0.5
    assert (run.training.epochs, run.training.batch_size, run.training.seed) == (8.0, 4, 1)
    assert run.finished()


def test_the_margin_loss_trains(prepared_dialog, tmp_path):
    settings = {"loss": "margin", "embedding_dim": "7", "validations_per_epoch": "1", "patience": "1"}
    settings |= {"epochs": 2.0, "batch_size": 13, "learning_rate": 0.02}
    rows = start(dialog, "supervised-embeddings", prepared_dialog, tmp_path / "run", settings).history()
    assert rows[-1]["loss"] < rows[0]["loss"]
