"""What training does beside its steps: it watches the loss, scores dev, keeps the best weights and the last state."""

import contextlib
import math
import time
from typing import NamedTuple

import keras
import numpy as np

from base.files import UserError
from engine.interruption import Interruption
from engine.progress import Display

BLOCK = 10  # steps whose mean loss is shown and logged


class Outside(NamedTuple):
    """What connects a training with the world around it."""

    display: Display
    interruption: Interruption
    save_seconds: float
    """Seconds after which the state is saved between two validations."""


def begin_of(position):
    """The step that training begins or goes on at, from a position that was saved."""
    return position["step"] + position.get("begun", {"steps": 0})["steps"]


class Validation(keras.callbacks.Callback):
    """After each interval: scores dev, logs, keeps the best weights and the state to resume from.

    Args:
        run: The `engine.run.Run` to write into.
        task: The `engine.task.Task`, of which `validate` is called.
        split: What to validate on.
        training: The task's `Training`; its `patience` stops early, as does the best score that there is.
        position: Where training stands: `step`, `seconds`, `best` (score) and `waited` (validations without
            improvement).
        steps_per_epoch: Steps in a pass over the training examples.
        total: Steps after which training ends, also in the middle of an interval.
        length_multiple: As of `engine.task.Task.collate`.
        outside: An `Outside`.
        scorer: As of `averaged_weights`.
    """

    def __init__(
        self, run, task, split, training, position, steps_per_epoch, total, length_multiple, *, outside, scorer=None
    ):
        super().__init__()
        self.display, self.interruption, self.save_seconds = outside.display, outside.interruption, outside.save_seconds
        self.run, self.task, self.split, self.training = run, task, split, training
        self.position, self.steps_per_epoch, self.total = dict(position), steps_per_epoch, total
        self.length_multiple, self.scorer = length_multiple, scorer
        self.saved = begin_of(position)
        self.saved_at, self.weights = time.monotonic(), None
        self.scalars = _scalar_writer(run.path / "tensorboard")

    def on_epoch_begin(self, epoch, logs=None):
        """A Keras epoch is an interval between two validations."""
        begun = self.position.pop("begun", {"seconds": 0.0, "steps": 0, "losses": 0.0})  # of an interval resumed within
        self.started = time.perf_counter() - begun["seconds"]
        self.steps, self.losses, self.in_block = begun["steps"], begun["losses"], 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        self.in_block += 1
        step = self.position["step"] + self.steps
        self.loss = loss = float(logs["loss"])  # the mean over the block so far
        if not math.isfinite(loss):
            raise UserError(
                f"{self.run.path}: the loss of step {step:,} is {loss}, so training stopped; try a lower "
                f"--learning_rate, a smaller --set gradient_clip, or --precision=float32. {self._kept()}"
            )
        self.display.update(step, loss)
        if self.in_block == BLOCK:
            self._end_block(step)
            if time.monotonic() - self.saved_at > self.save_seconds:
                self._save_within()
        if self.interruption.requested:
            if self.in_block:
                self._end_block(step)  # its steps weigh otherwise in the mean loss than those of a whole block
            self._save_within()
            raise KeyboardInterrupt

    def on_epoch_end(self, epoch, logs=None):
        if self.in_block:
            self._end_block(self.position["step"] + self.steps)
        if time.monotonic() - self.saved_at > self.save_seconds:
            self._save_within()  # a validation takes time too
        seconds = time.perf_counter() - self.started
        p = self.position
        p["step"] += self.steps
        p["seconds"] += seconds
        with averaged_weights(self.model, self.scorer) as model:
            metrics, score = self.task.validate(model, self.split, self.length_multiple)
            improved = score > p["best"]
            if improved:
                self.run.save_best(model)
        p["best"], p["waited"] = (score, 0) if improved else (p["best"], p["waited"] + 1)
        reason = self._reason_to_stop(score)
        p["stopped"] = bool(reason)
        row = {
            "step": p["step"],
            "epoch": round(p["step"] / self.steps_per_epoch, 3),
            "loss": self.losses / self.steps,
            "steps_per_second": round(self.steps / seconds, 3),
            "seconds": round(p["seconds"], 1),
            **{name: round(value, 5) for name, value in metrics.items()},
        }
        self.weights = [np.array(v) for v in self.model.trainable_variables] if has_averages(self.model) else None
        p["row"] = row
        self._save(p)
        self.run.log(row)
        self._tell(row, metrics, improved)
        if reason:
            self.display.line(f"{reason}: training stopped")
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        """`fit` has put the averages into the model, and may be called again: training goes on from the weights."""
        if self.weights is not None:
            for variable, value in zip(self.model.trainable_variables, self.weights, strict=True):
                variable.assign(value)

    def _save_within(self):
        """Saves the state between two validations."""
        begun = {"seconds": time.perf_counter() - self.started, "steps": self.steps, "losses": self.losses}
        self._save({**self.position, "begun": begun})

    def _save(self, position):
        self.run.save_state(self.model, position)
        self.saved, self.saved_at = begin_of(position), time.monotonic()

    def _end_block(self, step):
        self.losses += self.loss * self.in_block
        self.in_block = 0
        self.scalars(step, {"loss": self.loss})
        self.model.reset_metrics()

    def _reason_to_stop(self, score):
        patience = self.training.patience
        if score >= self.task.best_score:
            return "the best score that there is"
        if patience and self.position["waited"] >= patience:
            return f"no improvement for {patience} validation{'s' * (patience > 1)}"
        return None

    def _tell(self, row, metrics, improved):
        self.scalars(row["step"], {f"dev/{name}": value for name, value in metrics.items()})
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        where = f"step {row['step']:,}  epoch {row['epoch']:.2f}"
        speed = f"loss {row['loss']:.4f}  {row['steps_per_second']:.2f} steps/s"
        self.display.line(f"{where}  {speed}  dev: {shown}{'  (best)' if improved else ''}")

    def _kept(self):
        if self.saved:
            return f"The best weights and the state of step {self.saved:,} are kept"
        return "Nothing was saved before, so nothing is kept"


def has_averages(model):
    """Whether a compiled model's optimizer keeps moving averages of the weights."""
    return _inner(model.optimizer).use_ema


def _inner(optimizer):
    return getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer


@contextlib.contextmanager
def averaged_weights(model, scorer=None):
    """For the block, puts the moving averages that the optimizer keeps, or else the weights, into the model to score.

    Afterwards the weights are bit by bit what they were, which `keras.callbacks.SwapEMAWeights` (it adds and subtracts)
    does not promise and an exact resume needs.

    Args:
        model: A compiled model.
        scorer: A copy of it on one device; `None`: the model itself.

    Yields:
        The model to score.
    """
    if scorer is None and not has_averages(model):
        yield model
        return
    trained = model.trainable_variables
    averages = _inner(model.optimizer)._model_variables_moving_average if has_averages(model) else trained
    scorer = scorer or model
    kept = [np.array(weight) for weight in scorer.weights]
    _copy(model.weights, scorer.weights)
    _copy(averages, scorer.trainable_variables)
    try:
        yield scorer
    finally:
        _copy(kept, scorer.weights)


def _copy(values, variables):
    for variable, value in zip(variables, values, strict=True):
        variable.assign(np.array(value))  # JAX deletes what a step was given, so no two variables may share an array


def _scalar_writer(path):
    """A function of a step and `{name: value}` that writes them for TensorBoard; on other backends it does nothing."""
    if keras.config.backend() != "tensorflow":
        return lambda step, values: None
    import tensorflow as tf

    writer = tf.summary.create_file_writer(str(path))

    def write(step, values):
        with writer.as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        writer.flush()

    return write
