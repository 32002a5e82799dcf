"""The training loop that train.py starts: `keras.Model.fit`, one Keras epoch a validation interval."""

import contextlib
import dataclasses
import math
import platform
import shlex
import shutil
import sys
import time

import keras
import numpy as np

from base.files import UserError
from base.runtime import choose_precision
from data.batching import epochs_of
from data.stream import as_dataset
from engine.runs import BEST, LAST, Run, has_gpu, set_precision
from engine.settings import make_config
from models import MODELS


@dataclasses.dataclass(frozen=True)
class Fit:
    """What every task's training has in common."""

    epochs: float = 2.0
    """Passes over the training examples."""
    batch_size: int = 256
    """Contexts or dialogs a step."""
    learning_rate: float = 1e-3
    """At the start."""
    precision: str = "float32"
    """`float32`, `bfloat16`, `float16`, or `auto`: bfloat16 where this machine computes it and the model gains, else
    float32; a run's `config.json` says which it was. Weights and losses stay float32."""
    jit: str = "auto"
    """XLA: `on`, `off`, or `auto`: on with a GPU and with JAX, which would else compute op by op; off on a CPU."""
    seed: int = 1
    """Of everything random."""


def train(task, model_name, data, workdir, fit, settings, resume=False, eos_id=None):
    """Trains a model into a run directory.

    Args:
        task: The `engine.task.Task` of the model.
        model_name: Key of `models.MODELS`.
        data: Directory of a prepared dataset; `None`: the embedded sample of the task.
        workdir: The run's directory.
        fit: A `Fit`.
        settings: `{field: value}` of the model's config or the task's `Training`.
        resume: Go on with the run in `workdir`, under its own settings; only `fit.epochs` counts.
        eos_id: `_EOS_` id, where the dataset does not say it.

    Returns:
        The `engine.runs.Run`.

    Raises:
        UserError: where an input is at fault.
    """
    if resume:
        run = Run.open(workdir)
        stored = run.config
        fit = Fit(**{**stored["fit"], "epochs": fit.epochs})
        training = task.Training(**stored["training"])
        dataset = task.dataset_of(run, data)
        task.check_fits(make_config(run.entry.config, stored["settings"]), dataset)
        run.update_config({"fit": dataclasses.asdict(fit)})
    else:
        if eos_id is not None and "eos_id" not in task.load_options:
            raise UserError(f"--eos_id is for published selection data. Received: --eos_id={eos_id} with {model_name}")
        given = {} if eos_id is None else {"eos_id": eos_id}
        dataset = task.load_dataset(data or task.prepare_sample(), **given)
        precision = choose_precision(fit.precision, MODELS[model_name].gains_in_bfloat16, has_gpu())
        fit = dataclasses.replace(fit, precision=precision)
        run, training = _create_run(model_name, workdir, fit, settings, task, dataset)
    try:
        _fit(run, task, dataset, training, fit, resume)
    except BaseException:
        if not resume and not any((run.path / name).exists() for name in (BEST, LAST)):
            shutil.rmtree(run.path)  # there is nothing in it yet
        raise
    return run


def _fit(run, task, dataset, training, fit, resume):
    """Trains the model of a run until its epochs are over, or no better figure is to be had."""
    set_precision(fit.precision)
    keras.utils.set_random_seed(fit.seed)
    model = run.build_model()
    jit = fit.jit == "on" or (fit.jit == "auto" and (keras.config.backend() == "jax" or has_gpu()))
    split = dataset.splits["train"]
    if jit and getattr(model, "packed", False):
        model.packed = False  # XLA wants shapes that do not depend on data
    multiple = 16 if jit else 4  # lengths are rounded up to it: XLA compiles every shape anew

    def make_batches(rng):
        return task.training_batches(split, model.config, training, fit.batch_size, rng)

    steps = len(make_batches(np.random.default_rng(fit.seed)))
    if not steps:
        raise UserError(f"{dataset.path}: no example of the split train can be trained on under these settings")
    total = math.ceil(fit.epochs * steps)
    model.compile(
        optimizer=task.optimizer(training, fit.learning_rate, total),
        loss=task.loss(training),
        jit_compile=jit,
    )
    if resume:
        position = run.restore_state(model)
    else:
        task.initialise(model, dataset, training)
        position = {"step": 0, "seconds": 0.0, "best": -1.0, "waited": 0}
    model.optimizer.build(model.trainable_variables)  # else `fit` traces the first step twice
    interval = math.ceil(steps / training.validations_per_epoch)
    done = position["step"] // interval
    print(f"{run.path}: {model.count_params():,} parameters, {steps:,} steps an epoch, a validation every {interval:,}")
    batches = (
        task.collate(split, model.config, batch, multiple)
        for batch in epochs_of(make_batches, fit.seed, position["step"])
    )
    validation = Validation(run, task, dataset.splits["dev"], training, position, steps, total)
    callbacks = [validation]
    if keras.config.backend() == "tensorflow":
        callbacks.append(keras.callbacks.TensorBoard(run.path / "tensorboard"))
    try:
        model.fit(
            as_dataset(batches),
            initial_epoch=done,
            epochs=done + math.ceil((total - position["step"]) / interval),
            steps_per_epoch=interval,
            shuffle=False,  # the batches are shuffled already
            callbacks=callbacks,
            verbose=1 if sys.stdout.isatty() else 0,
        )
    except KeyboardInterrupt as interrupt:
        how = (
            f"train.py --resume --workdir={run.path} goes on from step {validation.saved}"
            if validation.saved
            else "before the first validation, so nothing is kept"
        )
        raise UserError(f"interrupted; {how}") from interrupt


def _create_run(model_name, workdir, fit, settings, task, dataset):
    """Sorts the settings into model and training, checks them, and makes the run's directory."""
    entry = MODELS[model_name]
    config_class = entry.config
    settings = expand_compatibility(entry, task, settings)
    known = {
        "model": [field.name for field in dataclasses.fields(config_class)],
        "training": [field.name for field in dataclasses.fields(task.Training)],
    }
    chosen = {kind: {k: v for k, v in settings.items() if k in known[kind]} for kind in known}
    for name in settings:
        if name not in known["model"] and name not in known["training"]:
            raise UserError(
                f"--set: no field {name!r}. The model {model_name} has {', '.join(known['model'])}; "
                f"its training has {', '.join(known['training'])}"
            )
    training = make_config(task.Training, chosen["training"])
    config = make_config(config_class, task.model_settings(dataset, chosen["model"]))
    for needed in ("train", "dev"):
        if not len(dataset.splits[needed]):
            raise UserError(f"{dataset.path}: training needs examples in the split {needed}")
    run = Run.create(
        workdir,
        {
            "model": model_name,
            "settings": dataclasses.asdict(config),
            "training": dataclasses.asdict(training),
            "fit": dataclasses.asdict(fit),
            "dataset": dataset.facts(),
            "command": shlex.join(["python", *sys.argv]),
            "versions": {
                "python": platform.python_version(),
                "keras": keras.__version__,
                "backend": keras.config.backend(),
            },
        },
        dataset.vocabulary,
    )
    task.keep_for_run(dataset, run.path)
    run.save_examples(task.examples(dataset))
    return run, training


def expand_compatibility(entry, task, settings):
    """Replaces `compatibility=release` by the settings it stands for; others given beside it win."""
    settings = dict(settings)
    compatibility = settings.pop("compatibility", "paper")
    known = ["paper", "release"] if entry.release_settings else ["paper"]
    if compatibility not in known:
        raise UserError(f"--set compatibility= expects {' or '.join(known)}. Received: {compatibility!r}")
    if compatibility == "paper":
        return settings
    variant = settings.get("variant", entry.config.variant)
    return {**entry.release_settings(variant), **task.release_training, **settings}


class Validation(keras.callbacks.Callback):
    """After each interval: scores dev, logs, keeps the best weights and the state to resume from.

    Args:
        run: The `engine.runs.Run` to write into.
        task: The `engine.task.Task`, of which `validate` is called.
        split: What to validate on.
        training: The task's `Training`; its `patience` stops early, as does a perfect figure.
        position: Where training stands; kept up to date.
        steps_per_epoch: Steps in a pass over the training examples.
        total: Steps after which training ends, also in the middle of an interval.
    """

    def __init__(self, run, task, split, training, position, steps_per_epoch, total):
        super().__init__()
        self.run, self.task, self.split, self.training = run, task, split, training
        self.position, self.steps_per_epoch, self.total = dict(position), steps_per_epoch, total
        self.saved = position["step"]  # where a resume begins

    def on_epoch_begin(self, epoch, logs=None):
        self.started, self.steps = time.perf_counter(), 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if self.position["step"] + self.steps == self.total:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.started
        p = self.position
        p["step"] += self.steps
        p["seconds"] += seconds
        with averaged_weights(self.model):
            metrics, figure = self.task.validate(self.model, self.split)
            improved = figure > p["best"]
            if improved:
                self.run.save_best(self.model)
        p["best"], p["waited"] = (figure, 0) if improved else (p["best"], p["waited"] + 1)
        patience = self.training.patience
        p["stopped"] = figure >= self.task.best_score or bool(patience and p["waited"] >= patience)
        row = {
            "step": p["step"],
            "epoch": round(p["step"] / self.steps_per_epoch, 3),
            "loss": float(logs["loss"]),
            "steps_per_second": round(self.steps / seconds, 3),
            "seconds": round(p["seconds"], 1),
            **{name: round(value, 5) for name, value in metrics.items()},
        }
        self.run.save_state(self.model, p)
        self.saved = p["step"]
        self.run.log(row)
        logs.update({f"val_{name}": value for name, value in metrics.items()})
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        speed = f"{row['steps_per_second']:.2f} steps/s"
        best = "  (best)" if improved else ""
        print(f"\nepoch {row['epoch']:.2f}  loss {row['loss']:.4f}  {speed}  dev: {shown}{best}")
        if p["stopped"]:
            print("no better figure is to be had: stopped")
            self.model.stop_training = True


@contextlib.contextmanager
def averaged_weights(model):
    """For the block, puts the moving averages that the optimizer keeps into the model, if it keeps any.

    Afterwards the weights are bit by bit what they were, which `keras.callbacks.SwapEMAWeights` (it adds and subtracts)
    does not promise and an exact resume needs.

    Args:
        model: A compiled model.
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    if not optimizer.use_ema:
        yield
        return
    variables = optimizer._trainable_variables  # as SwapEMAWeights reaches them
    kept = [np.array(variable) for variable in variables]
    for variable, average in zip(variables, optimizer._model_variables_moving_average, strict=True):
        variable.assign(average)
    try:
        yield
    finally:
        for variable, value in zip(variables, kept, strict=True):
            variable.assign(value)
