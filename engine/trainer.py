"""The loop of a training: steps, validations and saves."""

import functools
import itertools
import math
import time
from collections.abc import Sequence

import keras
import numpy as np

from colloquy.base.files import PathLike, UserError
from colloquy.data.batching import Epochs
from colloquy.data.prepared import Dataset, fingerprint
from colloquy.data.streaming import stream_batches
from colloquy.engine.callbacks import Callbacks
from colloquy.engine.data_parallel import Devices
from colloquy.engine.devices import choose_xla, set_precision, set_seed
from colloquy.engine.interrupts import signals_received
from colloquy.engine.limits import describe_exceeded
from colloquy.engine.optimizers import averaged_weights
from colloquy.engine.progress import (
    Progress,
    describe_validation,
    open_curves,
    recommend_epochs,
)
from colloquy.engine.records import TrainState
from colloquy.engine.run import LAST, Run
from colloquy.engine.run_weights import find_not_finite
from colloquy.engine.task import Task
from colloquy.engine.training_settings import Training
from colloquy.engine.vocabularies import start_from
from colloquy.engine.workdir import how_to_resume
from colloquy.metrics.tables import LOWER_IS_BETTER

LOG_INTERVAL = 10
"""Steps between two log lines. Reading the loss makes the program wait for the device, so it is not
read at every step."""
FEW_STEPS = 200
"""With fewer steps in all, a model may have learned next to nothing."""
MIN_EXAMPLES = 100
"""Examples of dev; on fewer the best possible score may be chance."""


class Trainer:
    """The model of a run, its batches, and the state that both are at.

    A run with a saved state continues from there, with the steps that it would have had without the
    break.

    Args:
        training: Its settings, of the task's class.
        init_from: A run whose weights a fresh model starts with.
        callbacks: See `engine.callbacks.Callbacks`.
    """

    def __init__(
        self,
        task: Task,
        run: Run,
        dataset: Dataset,
        devices: Devices,
        training: Training,
        init_from: PathLike | Run | None = None,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        self.task = task
        self.run = run
        self.dataset = dataset
        self.devices = devices
        self.training = training
        self.split = dataset.splits["train"]
        self.dev = dataset.splits["dev"]

        set_precision(self.training.precision)
        self.evaluation_model = devices.evaluation_model(run.build_model, self.training.jit)
        set_seed(self.training.seed)
        with devices.scope():
            self.model = run.build_model()
            self.length_multiple = choose_xla(self.model, self.training.jit)
            self._plan_steps()
            self.state = self._compile(init_from)
        self._check_dataset()

        batches = stream_batches(self.make_batch, self.state.step, self.total_steps)
        self.batches = iter(batches)
        with devices.scope():
            self.learn_batch = devices.train_step(self.model, batches)
        self.add_points = open_curves(run.path)
        self.callbacks = Callbacks(callbacks, self.model, self.epochs.steps)
        self.progress = Progress(self.state.step, self.total_steps)

    def _plan_steps(self):
        """Sets the batch of each step, the number of steps and the interval of validations."""
        training = self.training
        make_epoch = functools.partial(
            self.task.training_batches, self.split, self.model.config, training
        )
        self.epochs = Epochs(make_epoch, training.seed)
        limits = self.task.limits(self.split, self.model.config, training)
        sentences = describe_exceeded(limits)
        if not self.epochs.steps:
            reasons = "; ".join(["these settings leave no example of the split train", *sentences])
            raise UserError(f"{self.dataset.path}: {reasons}")
        for sentence in sentences:
            print(f"note: {sentence}")
        self.total_steps = math.ceil(training.epochs * self.epochs.steps)
        self.validation_interval = math.ceil(self.epochs.steps / training.validations_per_epoch)

    def _compile(self, init_from):
        """Compiles the model and sets its weights; returns the `TrainState` to start from."""
        task, model = self.task, self.model
        optimizer = task.optimizer(self.training, self.total_steps)
        loss = task.loss(self.training)
        model.compile(optimizer=optimizer, loss=loss, jit_compile=model.jit_compile)
        model.optimizer.build(model.trainable_variables)
        if (self.run.path / LAST).exists():
            # Without this, more epochs would do nothing after early stopping.
            return self.run.restore(model).replace(stopped=False)
        task.initialise(model, self.dataset, self.training)
        if init_from:
            start_from(init_from, model, self.dataset, task.name)
        return TrainState()

    def _check_dataset(self):
        """Refuses to resume with a changed dataset."""
        stored = self.state.fingerprint
        self.state = self.state.replace(fingerprint=fingerprint(self.dataset.path))
        if stored and stored != self.state.fingerprint:
            raise UserError(
                f"{self.dataset.path} has other examples or words than the dataset that the run "
                "was trained on; train.py --init_from=RUN starts a new training from the run's "
                "weights"
            )

    def make_batch(self, step: int) -> tuple:
        """Makes the arrays of a step that this process computes."""
        batch = self.task.collate(
            self.split, self.model.config, self.epochs.batch(step), self.length_multiple
        )
        return self.devices.part_of(batch, self.task.loss_counts, self.training.batch_size)

    def train(self, save_minutes: float = 10.0) -> None:
        """Trains until the epochs are over, early stopping ends it or a signal arrives.

        Args:
            save_minutes: Minutes after which the state is saved between two validations.

        Raises:
            UserError: A loss, a weight or a metric is not finite.
            KeyboardInterrupt: A signal arrived; the state is saved.
        """
        with self.devices.scope(), signals_received() as signals, self.progress:
            training = (
                f"{self.run.path}: {self.model.count_params():,} parameters, "
                f"steps per epoch: {self.epochs.steps:,}, "
                f"steps between validations: {self.validation_interval:,}"
            )
            if self.devices.count > 1:
                training += f", {self.devices.count} devices"
            self.progress.print_line(training)
            if self.total_steps < FEW_STEPS:
                self.progress.print_line(recommend_epochs(self.total_steps, self.epochs.steps))
            self.callbacks.begin()
            self._loop(signals, save_minutes)
            self.callbacks.end()

    def _loop(self, signals, save_minutes):
        """Takes all steps; validates and saves on the way."""
        self.saved_at = time.monotonic()
        # The last step is validated, too, so the training ends after a validation.
        while self.state.validated_step < self.total_steps and not self.state.stopped:
            next_validation = self.state.next_validation(self.validation_interval, self.total_steps)
            self._advance(min(LOG_INTERVAL, next_validation - self.state.step), signals)

            # Read once: a signal that arrives between two checks would skip the save.
            interrupted = bool(signals)
            minutes = (time.monotonic() - self.saved_at) / 60
            if interrupted or minutes > save_minutes:
                self._check_weights()
                self._save()
            if interrupted:
                raise KeyboardInterrupt
            if self.state.step == next_validation:
                self._validate()

    def _save(self):
        self.run.save(self.model, self.state)
        self.saved_at = time.monotonic()

    def _advance(self, steps, signals):
        """Takes a few steps, fewer if a signal arrives, and shows their loss."""
        started = time.perf_counter()
        losses_on_device = []
        for batch in itertools.islice(self.batches, steps):
            losses_on_device.append(self.learn_batch(batch))
            if signals:
                break
        if not losses_on_device:
            return

        losses = self._read_losses(losses_on_device)
        seconds = time.perf_counter() - started
        self.state = self.state.after(losses, seconds)
        mean_loss = sum(losses) / len(losses)
        # Ctrl-C may have ended the reader of the output, too: printing would fail before the save.
        if not signals:
            self.progress.update(self.state.step, mean_loss)
        self.callbacks.after_steps(self.state.step, losses)
        rate = self.model.optimizer.learning_rate
        self.add_points(self.state.step, {"loss": mean_loss, "learning_rate": rate})

    def _validate(self):
        """Scores dev, keeps the weights if they are the best so far, and saves the state."""
        self._check_weights()
        with averaged_weights(self.model, self.evaluation_model) as averaged:
            metrics, score = self.task.validate(averaged, self.dev, self.length_multiple)
            row = self._make_row(metrics)
            is_perfect = score >= self.task.max_score
            if self.training.best_by:
                score = self._score_by(metrics, self.training.best_by)
                is_perfect = False
            # Of several validations with the best possible score, the weights of the last are kept.
            is_first = not self.state.validations
            improved = is_first or is_perfect or score > self.state.best_score
            if improved:
                self.run.save_best(averaged)

        self.state = self.state.validated(
            row,
            score,
            improved=improved,
            patience=self.training.patience,
            done=is_perfect and self._is_conclusive(),
        )
        self._save()
        self.run.log(row)
        self.add_points(self.state.step, {f"dev/{name}": value for name, value in metrics.items()})
        lines = describe_validation(row, metrics, self.state)
        ends = self.state.stopped or self.state.step >= self.total_steps
        if self.callbacks.after_validation(row, metrics, ends):
            self.state = self.state.replace(stopped=True)
            self._save()
            lines += "\na callback asked for the end: training stopped"
        self.progress.print_line(lines)

    def _score_by(self, metrics, name):
        if name not in metrics:
            raise UserError(f"best_by: expected one of {', '.join(metrics)}. Received: {name}")
        return -metrics[name] if name in LOWER_IS_BETTER else metrics[name]

    def _is_conclusive(self):
        """True if the best possible score is no chance.

        It counts after an epoch, from the third validation, on enough examples of dev.
        """
        return (
            self.state.step >= self.epochs.steps
            and self.state.validations >= 2
            and self.task.num_examples(self.dev) >= MIN_EXAMPLES
        )

    def _make_row(self, metrics):
        """Returns a row of the history; metrics that are not finite end the training."""
        state = self.state
        if not np.isfinite(list(metrics.values())).all():
            raise self._diverged(f"the metrics after step {state.step:,} are not finite")
        steps = state.step - state.validated_step
        seconds_before = state.row["seconds"] if state.row else 0.0
        seconds = max(state.seconds - seconds_before, 1e-3)
        return {
            "step": state.step,
            "epoch": round(state.step / self.epochs.steps, 3),
            "loss": state.losses / steps,
            "steps_per_second": round(steps / seconds, 3),
            "seconds": round(state.seconds, 3),
            **{name: round(float(value), 5) for name, value in metrics.items()},
        }

    def _read_losses(self, losses_on_device):
        """Returns the losses as numbers, which waits for the device; they must be finite."""
        losses = [float(loss) for loss in losses_on_device]
        for step, loss in enumerate(losses, self.state.step + 1):
            if not math.isfinite(loss):
                raise self._diverged(f"the loss of step {step:,} is {loss}")
        return losses

    def _check_weights(self):
        """Refuses weights to save: after a finite loss, a gradient may not have been finite."""
        if find_not_finite(self.model) is not None:
            raise self._diverged(f"the weights after step {self.state.step:,} are not finite")

    def _diverged(self, reason):
        return UserError(
            f"{self.run.path}: {reason}, so training stopped; try a lower --learning_rate, a "
            "smaller --set gradient_clip, or --precision=float32; " + how_to_resume(self.run)
        )
