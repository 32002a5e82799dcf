"""The training loop that train.py starts: `keras.Model.fit`, one Keras epoch per interval between validations."""

import dataclasses
import functools
import math
import shutil
from typing import NamedTuple

import numpy as np

from base.files import UserError
from base.runtime import choose_precision
from data.batching import epochs_of
from engine.devices import OneDevice, open_devices
from engine.interruption import Interruption, locked
from engine.progress import Display
from engine.provenance import provenance
from engine.run import BEST, LAST, Run, has_gpu, set_precision, set_seed
from engine.samples import sample_of
from engine.settings import check_fields, expand_compatibility, make_config, model_config
from engine.task import Task, Training
from engine.validation import Outside, Validation, begin_of
from engine.vocabularies import start_from
from engine.xla import JITS, choose_xla
from models import MODELS


@dataclasses.dataclass(frozen=True)
class Fit:
    """What every task's training has in common."""

    epochs: float = 2.0
    """Passes over the training examples."""
    batch_size: int = 256
    """Contexts, dialogs, pairs or questions per step."""
    learning_rate: float = 1e-3
    """Initial learning rate."""
    precision: str = "float32"
    """`float32`, `bfloat16`, `float16`, or `auto`: bfloat16 where this machine computes it and the model gains, else
    float32; a run's `config.json` says which it was. Weights and losses stay float32."""
    jit: str = "auto"
    """XLA: `on`, `off`, or `auto`: on with a GPU and with JAX, which would else compute op by op; off on a CPU."""
    seed: int = 1
    """Seed of every random number generator."""

    def __post_init__(self):
        check_fields(
            self,
            epochs="(0, inf)",
            batch_size="[1, inf)",
            learning_rate="[0, inf)",
            precision=("auto", "float32", "bfloat16", "float16"),
            jit=JITS,
            seed="[0, 4294967296)",
        )


def train(
    task,
    model_name,
    data,
    workdir,
    fit,
    settings,
    resume=False,
    eos_id=None,
    name=None,
    save_minutes=10.0,
    init_from=None,
    devices="one",
):
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
        name: Of the corpus, where the dataset should be called otherwise than it says.
        save_minutes: Minutes after which the state is saved between two validations.
        init_from: A run whose weights the model starts with; `None`: fresh ones.
        devices: As of `engine.devices.open_devices`.

    Returns:
        The `engine.run.Run`.

    Raises:
        UserError: where an input is at fault, or the loss is not finite.
    """
    set_seed(fit.seed)  # joining other hosts would else draw one
    devices = open_devices(devices, fit.jit)
    with devices.workdir(workdir, resume) as path:
        if resume:
            run = Run.open(path)
            if run.finished() and fit.epochs <= run.config["fit"]["epochs"]:
                epochs = run.history()[-1]["epoch"]
                print(f"{run.path} is finished, after {epochs:g} epochs; --epochs=N with more goes on")
                return run
            fit, training, dataset = _reopen(run, task, data, fit, devices)
        else:
            dataset = _open_dataset(task, model_name, data, eos_id=eos_id, name=name)
            precision = choose_precision(fit.precision, MODELS[model_name].gains_in_bfloat16, has_gpu())
            fit = dataclasses.replace(fit, precision=precision)
            run, training = _create_run(model_name, path, fit, settings, task, dataset, devices, init_from)
        _train_alone(Job(run, task, dataset, training, fit, devices, resume, save_minutes * 60, init_from))
        return run


def _open_dataset(task, model_name, data, **options):
    given = {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        if key not in task.load_options:
            raise UserError(f"--{key} is for published selection data. Received: --{key}={value} with {model_name}")
    return task.open_dataset(data or sample_of(task), **given)


def _reopen(run, task, data, fit, devices):
    """What a run was trained by, to go on: its `Fit` with the epochs of the given one, its `Training`, its dataset."""
    stored = run.config
    fit = Fit(**{**stored["fit"], "epochs": fit.epochs})
    training = task.Training(**stored["training"])
    dataset = task.dataset_of(run, data)
    task.check_fits(make_config(run.entry.config, stored["settings"]), dataset)
    resumed = {**provenance(), "devices": devices.count}
    run.update_config({"fit": dataclasses.asdict(fit), "resumed": [*stored.get("resumed", []), resumed]})
    return fit, training, dataset


def _create_run(model_name, workdir, fit, settings, task, dataset, devices, init_from):
    """Sorts the settings into model and training, checks them, and makes the run's directory."""
    entry = MODELS[model_name]
    fields = [field.name for field in dataclasses.fields(task.Training)]
    known = {"model": list(entry.config.model_fields), "training": fields}
    settings = expand_compatibility(entry, task, settings)
    chosen = {kind: {k: v for k, v in settings.items() if k.partition(".")[0] in known[kind]} for kind in known}
    for name in settings:
        if name.partition(".")[0] not in known["model"] + known["training"]:
            raise UserError(
                f"--set: no field {name!r}. The model {model_name} has {', '.join(known['model'])}; "
                f"its training has {', '.join(known['training'])}"
            )
    training = make_config(task.Training, chosen["training"])
    config = model_config(entry, task, dataset, chosen["model"])
    for needed in ("train", "dev"):
        if not len(dataset.splits[needed]):
            raise UserError(f"{dataset.path}: training needs examples in the split {needed}")
    contents = {
        "model": model_name,
        "settings": config.to_json(),
        "training": dataclasses.asdict(training),
        "fit": dataclasses.asdict(fit),
        "dataset": dataset.facts(),
        "before": Run.open(init_from).trainings() if init_from else [],
        **provenance(),
        "devices": devices.count,
    }
    run = Run.create(workdir, contents, dataset.vocabulary)
    task.keep_for_run(dataset, run.path)
    run.save_examples(task.examples(dataset))
    return run, training


class Job(NamedTuple):
    """A training that is about to begin or to go on."""

    run: Run
    task: Task
    dataset: object
    training: Training
    fit: Fit
    devices: OneDevice
    resume: bool
    save_seconds: float
    init_from: str | None

    def epoch(self, config, rng):
        """The batches of an epoch, as `engine.task.Task.training_batches` returns them."""
        split, fit = self.dataset.splits["train"], self.fit
        return self.task.training_batches(split, config, self.training, fit.batch_size, rng)


def _train_alone(job):
    """Trains where no other process does; of a training that failed before it saved anything nothing is left."""
    path = job.run.path
    try:
        with locked(path):
            job.run.remove_leftovers()
            _fit(job)
    except BaseException:
        if not job.resume and not any((path / name).exists() for name in (BEST, LAST)):
            shutil.rmtree(path)  # there is nothing in it yet
        raise


def _fit(job):
    """Trains the model of a run until its epochs are over, or early stopping ends it."""
    run, task, fit, devices = job.run, job.task, job.fit, job.devices
    set_precision(fit.precision)
    scorer = devices.scorer(run.build_model)
    model = _build(job)
    make_batches = functools.partial(job.epoch, model.config)
    length_multiple = choose_xla(model, fit.jit, devices.xla)
    if scorer:
        choose_xla(scorer, fit.jit, devices.xla)
    steps = len(make_batches(np.random.default_rng(fit.seed)))
    if not steps:
        raise UserError(f"{job.dataset.path}: no example of the split train can be trained on under these settings")
    total = math.ceil(fit.epochs * steps)
    position = _compile(job, model, total)
    interval = math.ceil(steps / job.training.validations_per_epoch)

    def batches(begin):
        def collate(batch):
            return task.collate(job.dataset.splits["train"], model.config, batch, length_multiple)

        return devices.dataset(epochs_of(make_batches, fit.seed, begin), collate, task.loss_counts, fit.batch_size)

    with devices.fitting(), Interruption() as interruption, Display(begin_of(position), total) as display:
        display.line(
            f"{run.path}: {model.count_params():,} parameters, steps per epoch: {steps:,}, "
            f"steps between validations: {interval:,}{f', {devices.count} devices' * (devices.count > 1)}"
        )
        outside = Outside(display, interruption, job.save_seconds)
        dev = job.dataset.splits["dev"]
        counts = steps, total, length_multiple
        validation = Validation(run, task, dev, job.training, position, *counts, outside=outside, scorer=scorer)
        _run_steps(model, batches, validation, interval)


def _build(job):
    """The model with fresh weights, on the devices of a job."""
    set_seed(job.fit.seed)
    with job.devices.scope():
        return job.run.build_model()


def _compile(job, model, total):
    """Compiles a model and gives it what it begins with, or goes on from.

    Args:
        total: Steps of the whole training.

    Returns:
        The position, as `engine.run.Run.save_state` takes it.
    """
    task, training = job.task, job.training
    with job.devices.scope():
        optimizer = task.optimizer(training, job.fit.learning_rate, total, model.config)
        model.compile(optimizer=optimizer, loss=task.loss(training), jit_compile=model.jit_compile)
        job.devices.prepare(model)
        if not job.resume:
            task.initialise(model, job.dataset, training)
            if job.init_from:
                start_from(job.init_from, model, job.dataset, task)
            return {"step": 0, "seconds": 0.0, "best": -1.0, "waited": 0}
        position = job.run.restore_state(model)
        job.run.complete_history(position)
        return position


def _run_steps(model, batches, validation, interval):
    """Steps until the whole training is over or `validation` ends it.

    Args:
        model: A compiled model.
        batches: Function of a step that returns the batches from there on, as `fit` takes them.
        validation: A `Validation`.
        interval: Steps between two validations; the first, where training goes on within one, and the last have fewer.
    """
    begin, total = validation.saved, validation.total
    validation.position["stopped"] = False  # else more epochs of a run that stopped early would do nothing
    if "begun" in validation.position and (begin % interval == 0 or begin == total):  # its validation was interrupted
        validation.set_model(model)
        validation.on_epoch_begin(0)
        validation.on_epoch_end(0)
    first = min(interval - begin % interval, total - begin)
    whole, last = divmod(total - begin - first, interval)
    try:
        for steps, epochs in ((first, 1), (interval, whole), (last, 1)):
            if steps and epochs and not validation.position.get("stopped"):
                model.fit(
                    batches(begin_of(validation.position)),
                    epochs=epochs,
                    steps_per_epoch=steps,
                    shuffle=False,  # the batches are shuffled already
                    callbacks=[validation],
                    verbose=0,
                )
    except KeyboardInterrupt as interrupt:
        how = (
            f"train.py --resume --workdir={validation.run.path} goes on from step {validation.saved}"
            if validation.saved
            else "before anything was saved, so nothing is kept"
        )
        raise UserError(f"interrupted; {how}") from interrupt
