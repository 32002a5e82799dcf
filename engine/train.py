"""The training that train.py starts or resumes."""

import contextlib
import functools
import itertools
import math
import time

import numpy as np

from colloquy.base.files import UserError
from colloquy.base.runtime import choose_precision
from colloquy.data.batching import Epochs, stream_batches
from colloquy.data.prepared import fingerprint
from colloquy.engine.devices import choose_xla, has_gpu, open_devices, set_precision, set_seed
from colloquy.engine.interrupts import locked, signals_received
from colloquy.engine.optimizers import averaged_weights
from colloquy.engine.progress import Progress, open_scalars
from colloquy.engine.provenance import provenance
from colloquy.engine.records import TrainState
from colloquy.engine.run import LAST, Run
from colloquy.engine.run_files import SCALARS, check_sizes
from colloquy.engine.sample import prepare_sample
from colloquy.engine.task import load_training
from colloquy.engine.vocabularies import start_from
from colloquy.models import MODELS

LOG_INTERVAL = 10
"""Steps between two log lines. Reading the loss makes the program wait for the device, so it is not
read at every step."""
FEW_STEPS = 200
"""With fewer steps in all, a model may have learned next to nothing."""
ENOUGH_STEPS = 500
"""Steps to recommend instead."""
MIN_EXAMPLES = 100
"""Examples of dev; on fewer the best possible score may be chance."""


def start(
    task,
    model,
    data,
    workdir,
    settings,
    *,
    recipe=None,
    init_from=None,
    devices="one",
    save_minutes=10.0,
    command=None,
):
    """Trains a model, a key of `models.MODELS`, into a new run directory.

    Args:
        data: Directory of a prepared dataset; `None`: the embedded sample of the task.
        settings: `{field: value}` of the model's config and of the task's `Training`, as `--set`
            takes them.
        recipe: Name of the recipe that the settings come from.
        init_from: A run whose weights the model starts with; `None`: fresh ones.
        devices: See `engine.devices.open_devices`.
        save_minutes: Minutes after which the state is saved between two validations.
        command: The command that repeats the training; default: that of this process.

    Returns:
        The `engine.run.Run`.
    """
    spec = MODELS[model]
    # Before the data are read: a wrong setting need not wait for them.
    model_settings, training = task.split_settings(spec, settings)
    dataset = task.load_dataset(data or prepare_sample(task))
    config = task.build_config(spec, dataset, model_settings)

    set_seed(training.seed)  # joining other hosts would else draw one
    devices = open_devices(devices)
    precision = choose_precision(training.precision, spec.gains_in_bfloat16, has_gpu())
    training = training.replace(precision=precision)
    for split in ("train", "dev"):
        if not len(dataset.splits[split]):
            raise UserError(f"{dataset.path}: training needs examples in the split {split}")

    record = {
        "model": model,
        "recipe": recipe,
        "config": config.to_json(),
        "training": training.to_json(),
        "dataset": dataset.metadata(),
        "before": Run.open(init_from).trainings() if init_from else [],
        **provenance(command),
        "devices": devices.count,
    }
    with devices.workdir(workdir, resume=False) as path, locked(Run.prepare_directory(path).path):
        run = Run.create(path, record, dataset.vocabulary)
        with _removed_unless_saved(run):
            task.save_assets(dataset, run.path)
            examples = [task.example_to_try(example) for example in task.examples(dataset)]
            run.save_examples(examples)
            train(task, run, dataset, devices, init_from=init_from, save_minutes=save_minutes)
        return run


def resume(task, workdir, *, data=None, epochs=None, devices="one", save_minutes=10.0):
    """Continues the training of a run from its last save, under its own settings.

    Args:
        data: Directory of its dataset, if it has moved.
        epochs: Epochs of the whole training, if changed.
        devices, save_minutes: See `start`.

    Returns:
        The `engine.run.Run`.
    """
    stored = Run.open(workdir).training
    set_seed(stored.seed)
    devices = open_devices(devices)
    with devices.workdir(workdir, resume=True) as path:
        run = Run.open(path)
        if run.saved_state() is None:
            hint = "" if run.saved() else "; without --resume it starts anew"
            raise UserError(f"{run.path} cannot be resumed: it has no {LAST}{hint}")
        check_sizes(run, run.path / LAST)
        with locked(run.path), _removed_unless_saved(run):
            has_more_epochs = epochs is not None and epochs > stored.epochs
            if run.finished() and not has_more_epochs:
                done = run.history()[-1]["epoch"]
                print(
                    f"{run.path} is finished, after {done:g} epochs; "
                    "--epochs=N with more continues it"
                )
                return run
            dataset = task.dataset_of(run, data)
            task.check_fits(run, dataset)
            training = load_training(task, run, epochs=epochs or stored.epochs)
            resumption = {**provenance(), "devices": devices.count}
            resumed = [*run.record.get("resumed", []), resumption]
            run.update({"training": training.to_json(), "resumed": resumed})
            train(task, run, dataset, devices, save_minutes=save_minutes)
        return run


@contextlib.contextmanager
def _removed_unless_saved(run):
    """Removes a locked run if the block that trains it fails before anything was saved."""
    run.remove_unfinished()
    try:
        yield
    except BaseException as error:
        if not run.saved():
            run.remove()
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted; {_how_to_resume(run)}") from error
        raise


def _how_to_resume(run):
    state = run.saved_state()
    if state is None:
        return "nothing was saved before, so nothing is kept"
    return f"train.py --resume --workdir={run.path} continues from step {state.step}"


def train(task, run, dataset, devices, *, init_from=None, save_minutes=10.0):
    """Trains the model of a run until its epochs are over, early stopping ends it or a signal
    arrives.

    A run with a saved state continues from there, with the steps that it would have had without the
    break.

    Raises:
        UserError: A loss, a weight or a metric is not finite.
        KeyboardInterrupt: A signal arrived; the state is saved.
    """
    trainer = Trainer(task, run, dataset, devices, init_from)
    first_step = trainer.state.step
    with (
        devices.scope(),
        signals_received() as signals,
        Progress(first_step, trainer.total_steps) as progress,
    ):
        trainer.train(signals, progress, save_minutes)


class Trainer:
    """The training of a run: the model, its batches, and the state that both are at."""

    def __init__(self, task, run, dataset, devices, init_from=None):
        self.task = task
        self.run = run
        self.dataset = dataset
        self.devices = devices
        self.training = load_training(task, run)
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
            self.train_step = devices.train_step(self.model, batches)
        self.write_scalars = open_scalars(run.path / SCALARS)

    def _plan_steps(self):
        """Sets the batch of each step, the number of steps and the interval of validations."""
        training = self.training
        make_epoch = functools.partial(
            self.task.training_batches, self.split, self.model.config, training
        )
        self.epochs = Epochs(make_epoch, training.seed)
        if not self.epochs.steps:
            raise UserError(
                f"{self.dataset.path}: these settings leave no example of the split train"
            )
        self.total_steps = math.ceil(training.epochs * self.epochs.steps)
        self.validation_interval = math.ceil(self.epochs.steps / training.validations_per_epoch)

    def _compile(self, init_from):
        """Compiles the model and sets its weights; returns the `TrainState` to start from."""
        task, model = self.task, self.model
        optimizer = task.optimizer(self.training, self.total_steps, model.config)
        loss = task.loss(self.training)
        model.compile(optimizer=optimizer, loss=loss, jit_compile=model.jit_compile)
        model.optimizer.build(model.trainable_variables)
        if (self.run.path / LAST).exists():
            # After early stopping, more epochs would else do nothing.
            return self.run.restore(model).replace(stopped=False)
        task.initialise(model, self.dataset, self.training)
        if init_from:
            start_from(init_from, model, self.dataset, task)
        return TrainState()

    def _check_dataset(self):
        """Refuses to resume with a changed dataset."""
        stored = self.state.fingerprint
        self.state = self.state.replace(fingerprint=fingerprint(self.dataset.path))
        row = self.state.row
        steps_per_epoch = self.epochs.steps
        if row and row["epoch"] != round(row["step"] / steps_per_epoch, 3):
            raise UserError(
                f"{self.dataset.path} has changed since the run was saved: it now gives "
                f"{steps_per_epoch:,} steps per epoch, which does not match epoch {row['epoch']:g} "
                f"at step {row['step']:,}"
            )
        if stored and stored != self.state.fingerprint:
            raise UserError(
                f"{self.dataset.path} has changed since the run was saved: its examples or words "
                "are others; train.py --init_from=RUN starts a new training from the run's weights"
            )

    def make_batch(self, step):
        """Makes the arrays of a step that this process computes."""
        batch = self.task.collate(
            self.split, self.model.config, self.epochs.batch(step), self.length_multiple
        )
        return self.devices.part_of(batch, self.task.loss_counts, self.training.batch_size)

    def train(self, signals, progress, save_minutes):
        """Trains to the last step; validates and saves on the way."""
        progress.line(self._describe())
        if self.total_steps < FEW_STEPS:
            progress.line(self._recommend_epochs())
        saved_at = time.monotonic()
        while self.state.validated_step < self.total_steps and not self.state.stopped:
            validation_step = self.state.next_validation(self.validation_interval, self.total_steps)
            steps = min(LOG_INTERVAL, validation_step - self.state.step)
            self.train_steps(steps, signals, progress)

            interrupted = bool(signals)  # asked once: a later signal would skip the save
            minutes = (time.monotonic() - saved_at) / 60
            if interrupted or minutes > save_minutes:
                self.save()
                saved_at = time.monotonic()
            if interrupted:
                raise KeyboardInterrupt
            if self.state.step == validation_step:
                self.validate(progress)
                saved_at = time.monotonic()

    def _describe(self):
        text = (
            f"{self.run.path}: {self.model.count_params():,} parameters, "
            f"steps per epoch: {self.epochs.steps:,}, "
            f"steps between validations: {self.validation_interval:,}"
        )
        if self.devices.count > 1:
            return f"{text}, {self.devices.count} devices"
        return text

    def _recommend_epochs(self):
        epochs = math.ceil(ENOUGH_STEPS / self.epochs.steps)
        steps = "1 step" if self.total_steps == 1 else f"{self.total_steps:,} steps"
        return (
            f"{steps} in all, with which a model may learn next to nothing: "
            f"--epochs={epochs:,} makes {epochs * self.epochs.steps:,}"
        )

    def train_steps(self, steps, signals, progress):
        """Trains on a few batches, fewer if a signal arrives, and shows their loss."""
        started = time.perf_counter()
        logs = []
        for number, batch in enumerate(itertools.islice(self.batches, steps), 1):
            is_last = number == steps
            logs.append(self.train_step(batch, log=is_last))
            if signals:
                break
        if not logs:
            return

        losses = self._read_losses(logs)
        seconds = time.perf_counter() - started
        self.state = self.state.after(losses, seconds)
        mean_loss = sum(losses) / len(losses)
        progress.update(self.state.step, mean_loss)
        if len(logs) == steps:  # only the last step logs its gradient norm
            rate = self.model.optimizer.learning_rate
            scalars = {**logs[-1], "loss": mean_loss, "learning_rate": rate}
            self.write_scalars(self.state.step, scalars)

    def save(self):
        """Saves the model and the state, to resume from."""
        self._check_weights()
        self.run.save(self.model, self.state)

    def validate(self, progress):
        """Scores dev, keeps the weights if they are the best so far, and saves the state."""
        self._check_weights()
        max_score = self.task.max_score
        with averaged_weights(self.model, self.evaluation_model) as averaged:
            metrics, score = self.task.validate(averaged, self.dev, self.length_multiple)
            row = self._make_row(metrics)
            # Of several that reach the best possible score, the last is kept.
            improved = score > self.state.best_score or score >= max_score
            if improved:
                self.run.save_best(averaged)

        done = score >= max_score and self._is_conclusive()
        patience = self.training.patience
        self.state = self.state.validated(
            row, score, improved=improved, patience=patience, done=done
        )
        self.run.save(self.model, self.state)
        self.run.log(row)
        dev_metrics = {f"dev/{name}": value for name, value in metrics.items()}
        self.write_scalars(self.state.step, dev_metrics)
        progress.line(_report(self.state, metrics))

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

    def _read_losses(self, logs):
        """Returns the losses as numbers, which waits for the device; they must be finite."""
        losses = [float(log["loss"]) for log in logs]
        for step, loss in enumerate(losses, self.state.step + 1):
            if not math.isfinite(loss):
                raise self._diverged(f"the loss of step {step:,} is {loss}")
        return losses

    def _check_weights(self):
        """Refuses weights to save: after a finite loss, a gradient may not have been finite."""
        for weight in self.model.weights:
            if not np.isfinite(np.asarray(weight)).all():
                raise self._diverged(f"the weights after step {self.state.step:,} are not finite")

    def _diverged(self, reason):
        return UserError(
            f"{self.run.path}: {reason}, so training stopped; try a lower --learning_rate, a "
            "smaller --set gradient_clip, or --precision=float32; " + _how_to_resume(self.run)
        )


def _report(state, metrics):
    """Returns the lines that a validation prints."""
    row = state.row
    shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
    text = (
        f"step {row['step']:,}  epoch {row['epoch']:.2f}  loss {row['loss']:.4f}  "
        f"{row['steps_per_second']:.2f} steps/s  dev: {shown}"
    )
    if not state.waited:
        text += "  (best)"
    if not state.stopped:
        return text
    if not state.waited:
        return f"{text}\nthe best score that there is: training stopped"
    validations = "validation" if state.waited == 1 else "validations"
    return f"{text}\nno improvement for {state.waited} {validations}: training stopped"
