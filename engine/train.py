"""The training loop that train.py starts, and the runs that it starts with."""

import contextlib
import datetime
import functools
import itertools
import math
import shutil
import sys
import time

import keras
import numpy as np
from rich.console import Console

from colloquy.base.files import UserError
from colloquy.base.runtime import choose_precision
from colloquy.data.batching import Epochs, stream_of
from colloquy.data.text_files import write_json
from colloquy.engine.devices import choose_xla, has_gpu, open_devices, set_precision, set_seed
from colloquy.engine.optimizers import averaged_weights
from colloquy.engine.provenance import provenance
from colloquy.engine.run import EXAMPLES, LAST, Run, TrainState, locked, signals_received
from colloquy.engine.task import load_training, sample_of
from colloquy.engine.vocabularies import start_from
from colloquy.models import MODELS

LOG_INTERVAL = 10  # steps between two looks at the loss: the device need not wait for them
MIN_CONTEXTS = 100  # contexts of dev; on fewer the best score may be chance


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
    **options,
):
    """Trains a model, a key of `models.MODELS`, into a new run directory, and returns the
    `engine.run.Run`.

    Args:
        data: Directory of a prepared dataset; `None`: the embedded sample of the task.
        settings: `{field: value}` of the model's config and of the task's `Training`, as `--set`
            takes them.
        recipe: Name of the recipe that the settings come from.
        init_from: A run whose weights the model starts with; `None`: fresh ones.
        devices: See `engine.devices.open_devices`.
        save_minutes: Minutes after which the state is saved between two validations.
        options: `name` of the corpus and `eos_id`, if not the dataset's own; `None`: the dataset's.
    """
    spec = MODELS[model]
    options = {name: value for name, value in options.items() if value is not None}
    for option in options.keys() - set(task.dataset_options):
        raise UserError(
            f"--{option} is for published selection data. Received: --{option}={options[option]} with {model}"
        )
    # Before the data are read: a wrong setting need not wait for them.
    model_settings, training = task.split_settings(spec, settings)
    dataset = task.load_dataset(data or sample_of(task), **options)
    config = task.build_config(spec, dataset, model_settings)
    set_seed(training.seed)  # joining other hosts would else draw one
    devices = open_devices(devices)
    training = training.replace(
        precision=choose_precision(training.precision, spec.gains_in_bfloat16, has_gpu())
    )
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
        **provenance(),
        "devices": devices.count,
    }
    with devices.workdir(workdir, resume=False) as path, locked(Run.prepare_directory(path).path):
        run = Run.create(path, record, dataset.vocabulary)
        with _removed_unless_saved(run):
            task.save_assets(dataset, run.path)
            write_json(run.path / EXAMPLES, [*map(task.example_to_try, task.examples(dataset))])
            train(task, run, dataset, devices, init_from=init_from, save_minutes=save_minutes)
        return run


def resume(task, workdir, *, data=None, epochs=None, devices="one", save_minutes=10.0):
    """Continues the training of a run from its last save, under its own settings, and returns the
    `engine.run.Run`.

    `data` is the directory of its dataset, if it has moved; `epochs` are those of the whole
    training, if changed.
    """
    stored = Run.open(workdir).training
    set_seed(stored.seed)
    devices = open_devices(devices)
    with devices.workdir(workdir, resume=True) as path:
        run = Run.open(path)
        if run.saved_state() is None:
            raise UserError(f"{run.path} cannot be resumed: it has no {LAST}")
        with locked(run.path), _removed_unless_saved(run):
            if run.finished() and (epochs or 0) <= stored.epochs:
                done = run.history()[-1]["epoch"]
                print(
                    f"{run.path} is finished, after {done:g} epochs; --epochs=N with more continues it"
                )
                return run
            dataset = task.dataset_of(run, data)
            task.check_fits(run, dataset)
            training = load_training(task, run, epochs=epochs or stored.epochs)
            resumed = [*run.record.get("resumed", []), {**provenance(), "devices": devices.count}]
            run.update({"training": training.to_json(), "resumed": resumed})
            train(task, run, dataset, devices, save_minutes=save_minutes)
        return run


@contextlib.contextmanager
def _removed_unless_saved(run):
    """Removes a locked run if the block that trains it fails before anything was saved."""
    for path in run.path.glob(".?*.?*/"):  # directories that a killed process was writing in
        shutil.rmtree(path)
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
    break. A loss that is not finite is a `UserError`; a signal becomes a `KeyboardInterrupt` after
    the state is saved.
    """
    training = load_training(task, run)
    split, dev = dataset.splits["train"], dataset.splits["dev"]
    set_precision(training.precision)
    evaluation_model = devices.evaluation_model(run.build_model, training.jit)
    set_seed(training.seed)
    with devices.scope():
        model = run.build_model()
        length_multiple = choose_xla(model, training.jit)
        epochs = Epochs(
            functools.partial(task.training_batches, split, model.config, training), training.seed
        )
        if not epochs.steps:
            raise UserError(f"{dataset.path}: these settings leave no example of the split train")
        interval = math.ceil(epochs.steps / training.validations_per_epoch)
        total = math.ceil(training.epochs * epochs.steps)
        state = _compile(task, run, model, dataset, training, total, init_from)
    _check_steps(state, epochs.steps, dataset)

    def make_arrays(step):
        batch = task.collate(split, model.config, epochs.batch(step), length_multiple)
        return devices.part_of(batch, task.loss_counts, training.batch_size)

    batches = stream_of(make_arrays, state.step, total)
    saved_at, write_scalars = time.monotonic(), _scalar_writer(run.path / "tensorboard")
    with devices.scope(), signals_received() as signals, Progress(state.step, total) as progress:
        progress.line(
            f"{run.path}: {model.count_params():,} parameters, steps per epoch: {epochs.steps:,}, steps between "
            f"validations: {interval:,}{f', {devices.count} devices' if devices.count > 1 else ''}"
        )
        train_step, stream = devices.train_step(model, batches), iter(batches)
        while state.validated_step < total and not state.stopped:
            due, logs, started = state.next_validation(interval, total), [], time.perf_counter()
            steps = min(LOG_INTERVAL, due - state.step)
            for number, batch in enumerate(itertools.islice(stream, steps), 1):
                logs.append(train_step(batch, log=number == steps))
                if signals:
                    break
            if logs:
                losses = _finite_losses(run, state, logs)
                state = state.after(losses, time.perf_counter() - started)
                loss = sum(losses) / len(losses)
                progress.update(state.step, loss)
                if len(logs) == steps:
                    rate = model.optimizer.learning_rate
                    write_scalars(state.step, {**logs[-1], "loss": loss, "learning_rate": rate})
            saving = signals or time.monotonic() - saved_at > 60 * save_minutes
            if saving or state.step == due:
                _check_weights(run, state, model)
            if saving:
                run.save(model, state)
                saved_at = time.monotonic()
                if signals:
                    raise KeyboardInterrupt
            if state.step == due:
                with averaged_weights(model, evaluation_model) as averaged:
                    metrics, score = task.validate(averaged, dev, length_multiple)
                    row = _row(run, state, epochs.steps, metrics)
                    # the last of the best scores
                    improved = score > state.best_score or score >= task.max_score
                    if improved:
                        run.save_best(averaged)
                done = score >= task.max_score and _is_conclusive(
                    state, epochs.steps, task.num_examples(dev)
                )
                state = state.validated(row, score, improved, training.patience, done)
                run.save(model, state)
                saved_at = time.monotonic()
                run.log(row)
                write_scalars(state.step, {f"dev/{name}": value for name, value in metrics.items()})
                progress.line(_report(state, metrics))


def _compile(task, run, model, dataset, training, total, init_from):
    """Compiles a model and sets its weights; returns the `TrainState` to start from."""
    optimizer = task.optimizer(training, total, model.config)
    model.compile(optimizer=optimizer, loss=task.loss(training), jit_compile=model.jit_compile)
    model.optimizer.build(model.trainable_variables)
    if (run.path / LAST).exists():
        # else more epochs after early stopping would do nothing
        return run.restore(model).replace(stopped=False)
    task.initialise(model, dataset, training)
    if init_from:
        start_from(init_from, model, dataset, task)
    return TrainState()


def _check_steps(state, steps, dataset):
    """Refuses to resume with a dataset that was changed meanwhile, as far as the number of its
    batches shows.
    """
    if state.row and state.row["epoch"] != round(state.row["step"] / steps, 3):
        raise UserError(
            f"{dataset.path} was changed: it has {steps:,} steps per epoch, before it had another number"
        )


def _is_conclusive(state, steps_per_epoch, contexts):
    """True if the best score is no chance: after an epoch, at the third validation, on enough
    contexts of dev.
    """
    return state.step >= steps_per_epoch and state.validations >= 2 and contexts >= MIN_CONTEXTS


def _finite_losses(run, state, logs):
    losses = [float(each["loss"]) for each in logs]  # waits for the device
    for step, loss in enumerate(losses, state.step + 1):
        if not math.isfinite(loss):
            raise _diverged(run, f"the loss of step {step:,} is {loss}")
    return losses


def _check_weights(run, state, model):
    """Before a state is saved: a step whose loss was finite may have a gradient that is not."""
    if not all(np.isfinite(np.asarray(weight)).all() for weight in model.weights):
        raise _diverged(run, f"the weights after step {state.step:,} are not finite")


def _diverged(run, fault):
    return UserError(
        f"{run.path}: {fault}, so training stopped; try a lower --learning_rate, a smaller --set gradient_clip, or "
        f"--precision=float32; {_how_to_resume(run)}"
    )


def _row(run, state, steps_per_epoch, metrics):
    """A row of the history; metrics that are not finite end the training."""
    if not np.isfinite([*metrics.values()]).all():
        raise _diverged(run, f"the metrics after step {state.step:,} are not finite")
    steps = state.step - state.validated_step
    seconds = state.seconds - (state.row["seconds"] if state.row else 0.0)
    return {
        "step": state.step,
        "epoch": round(state.step / steps_per_epoch, 3),
        "loss": state.losses / steps,
        "steps_per_second": round(steps / max(seconds, 1e-3), 3),
        "seconds": round(state.seconds, 3),
        **{name: round(float(value), 5) for name, value in metrics.items()},
    }


def _report(state, metrics):
    shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
    text = (
        "step {step:,}  epoch {epoch:.2f}  loss {loss:.4f}  {steps_per_second:.2f} steps/s".format(
            **state.row
        )
    )
    text = f"{text}  dev: {shown}{'' if state.waited else '  (best)'}"
    if not state.stopped:
        return text
    waited = f"no improvement for {state.waited} validation{'s' if state.waited > 1 else ''}"
    return f"{text}\n{waited if state.waited else 'the best score that there is'}: training stopped"


class Progress:
    """Shows steps, loss, speed and remaining time: a moving line in a terminal, else a line every
    `every` seconds.
    """

    def __init__(self, step, total, file=None, every=30.0, clock=time.monotonic):
        self.console = Console(
            file=file or sys.stdout, markup=False, highlight=False, soft_wrap=True
        )
        self.first, self.total, self.every, self.clock = step, total, every, clock
        self.started = self.shown = clock()
        self.status = self.console.status(f"step {step:,} of {total:,}")

    def __enter__(self):
        self.status.start()
        return self

    def __exit__(self, *_):
        self.status.stop()

    def update(self, step, loss):
        """Shows the steps done, over the whole training, and the latest loss."""
        speed = (step - self.first) / max(self.clock() - self.started, 1e-6)
        left = datetime.timedelta(seconds=round((self.total - step) / speed))
        text = f"step {step:,} of {self.total:,}  loss {loss:.4f}  {speed:.2f} steps/s  {left} left"
        self.status.update(text)
        if not self.console.is_terminal and self.clock() - self.shown >= self.every:
            self.line(text)

    def line(self, text):
        self.console.print(text)
        self.console.file.flush()
        self.shown = self.clock()


def _scalar_writer(path):
    """A function of a step and `{name: value}` that writes them for TensorBoard; on other backends
    it does nothing.
    """
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
