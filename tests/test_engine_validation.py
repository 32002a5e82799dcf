"""engine/validation.py: losses, early stopping, and a loss that is not finite; on a model of one weight."""

import io
import json
import types

import keras
import numpy as np
import pytest

from base.files import UserError
from engine.interruption import Interruption
from engine.progress import Display
from engine.run import BEST, LAST, Run
from engine.validation import BLOCK, Outside, Validation

INTERVAL = 23  # steps: two blocks and three steps


class OneWeight:
    """A task whose validation finds these scores in turn."""

    best_score = 1.0

    def __init__(self, scores):
        self.left = list(scores)

    def validate(self, model, split, length_multiple):
        assert (split, length_multiple) == ("dev", 16)
        return {"accuracy": self.left[0]}, self.left.pop(0)


def fitted(path, targets, scores, patience=0):
    """Trains `w` by these targets of one example per step, `(w - target)^2`; returns the run and what it showed."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), loss=lambda y, x: keras.ops.mean(keras.ops.square(x - y)))
    run, file = Run(path, {}), io.StringIO()
    path.mkdir(exist_ok=True)
    position = {"step": 0, "seconds": 0.0, "best": -1.0, "waited": 0}
    total = len(targets)
    training = types.SimpleNamespace(patience=patience)
    outside = Outside(Display(0, total, file), Interruption(), save_seconds=600.0)
    validation = Validation(run, OneWeight(scores), "dev", training, position, INTERVAL, total, 16, outside=outside)
    batches = ((np.ones((1, 1), "float32"), np.full((1, 1), target, "float32")) for target in targets)
    epochs = -(-total // INTERVAL)
    model.fit(batches, epochs=epochs, steps_per_epoch=INTERVAL, callbacks=[validation], shuffle=False, verbose=0)
    return run, file.getvalue()


def test_history_has_the_mean_loss_of_each_interval(tmp_path):
    targets = np.random.default_rng(0).normal(size=2 * INTERVAL).astype("float32")
    run, printed = fitted(tmp_path / "run", targets, [0.5, 0.25])
    rows = run.history()
    assert [row["step"] for row in rows] == [23, 46] and [row["epoch"] for row in rows] == [1.0, 2.0]
    for row, part in zip(rows, np.split(targets, 2), strict=True):
        assert row["loss"] == pytest.approx(np.mean(part**2), rel=1e-4)
    lines = printed.splitlines()
    assert lines[0].startswith("step 23  epoch 1.00  loss ") and lines[0].endswith("dev: accuracy 0.5000  (best)")
    assert lines[1].startswith("step 46  epoch 2.00  loss ") and lines[1].endswith("dev: accuracy 0.2500")


def test_tensorboard_has_the_loss_of_each_block_by_step(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    targets = np.random.default_rng(0).normal(size=INTERVAL).astype("float32")
    fitted(tmp_path / "run", targets, [0.5])
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    found = {event.step: float(make_ndarray(event.tensor_proto)) for event in events.Tensors("loss")}
    assert list(found) == [BLOCK, 2 * BLOCK, INTERVAL]
    for end, begin in ((BLOCK, 0), (2 * BLOCK, BLOCK), (INTERVAL, 2 * BLOCK)):
        assert found[end] == pytest.approx(np.mean(targets[begin:end] ** 2), rel=1e-4)
    [score] = events.Tensors("dev/accuracy")
    assert score.step == INTERVAL and float(make_ndarray(score.tensor_proto)) == 0.5


@pytest.mark.parametrize(
    ("scores", "patience", "reason"),
    [
        ([0.5, 0.25, 0.25], 2, "no improvement for 2 validations: training stopped"),
        ([0.5, 0.5], 1, "no improvement for 1 validation: training stopped"),
        ([0.5, 1.0], 0, "the best score that there is: training stopped"),
    ],
)
def test_early_stopping_says_why(tmp_path, scores, patience, reason):
    run, printed = fitted(tmp_path / "run", np.ones(5 * INTERVAL), scores, patience)
    assert len(run.history()) == len(scores)
    assert printed.splitlines()[-1] == reason
    with np.load(run.path / LAST) as state:
        assert json.loads(str(state["position"]))["stopped"] is True


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_loss_that_is_not_finite_stops_at_its_step(tmp_path, wrong):
    targets = np.ones(3 * INTERVAL)
    targets[INTERVAL + 4] = wrong
    with pytest.raises(
        UserError,
        match=r"run: the loss of step 28 is (nan|inf), so training stopped; try a lower --learning_rate.* "
        r"The best weights and the state of step 23 are kept$",
    ):
        fitted(tmp_path / "run", targets, [0.5])
    assert (tmp_path / "run" / BEST).is_file()
    with np.load(tmp_path / "run" / LAST) as state:
        assert json.loads(str(state["position"]))["step"] == INTERVAL
    assert [row["step"] for row in Run(tmp_path / "run", {}).history()] == [INTERVAL]


def test_a_loss_that_is_not_finite_at_first_leaves_nothing(tmp_path):
    with pytest.raises(UserError, match=r"the loss of step 1 is nan.* Nothing was saved before, so nothing is kept$"):
        fitted(tmp_path / "run", [np.nan] * INTERVAL, [])
    assert not (tmp_path / "run" / LAST).exists()
