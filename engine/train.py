"""The training loop that train.py starts: `keras.Model.fit`, one Keras epoch per interval between validations."""

import functools
import math
import shutil
from typing import NamedTuple

import numpy as np

from base.config import make_config
from base.files import UserError
from base.runtime import choose_precision
from data.batching import epochs_of
from engine.devices import OneDevice, open_devices
from engine.interruption import Interruption, locked
from engine.progress import Display
from engine.provenance import provenance
from engine.run import BEST, LAST, Run, has_gpu, set_precision, set_seed
from engine.task import Task, Training, sample_of
from engine.validation import Outside, Validation, begin_of
from engine.vocabularies import start_from
from engine.xla import choose_xla
from models import MODELS


def start(
    task,
    model,
    data,
    workdir,
    settings,
    *,
    recipe=None,
    name=None,
    eos_id=None,
    init_from=None,
    devices="one",
    save_minutes=10.0,
):
    """Trains a model into a new run directory.

    Args:
        task: The `engine.task.Task` of the model.
        model: Key of `models.MODELS`.
        data: Directory of a prepared dataset; `None`: the embedded sample of the task.
        workdir: The run's directory.
        settings: `{field: value}` of the model's config and of the task's `Training`, as `--set` takes them.
        recipe: Name of the recipe that the settings come from, if any.
        name: Name of the corpus, if not the dataset's own.
        eos_id: `_EOS_` id, if the dataset does not have it.
        init_from: A run whose weights the model starts with; `None`: fresh ones.
        devices: See `engine.devices.open_devices`.
        save_minutes: Minutes after which the state is saved between two validations.

    Returns:
        The `engine.run.Run`.

    Raises:
        UserError: if an input is wrong, or the loss is not finite.
    """
    spec = MODELS[model]
    dataset = _open_dataset(task, model, data, name=name, eos_id=eos_id)
    config, training = task.configure(spec, dataset, settings)
    set_seed(training.seed)  # joining other hosts would else draw one
    devices = open_devices(devices, training.jit)
    training = training.replace(precision=choose_precision(training.precision, spec.gains_in_bfloat16, has_gpu()))
    for needed in ("train", "dev"):
        if not len(dataset.splits[needed]):
            raise UserError(f"{dataset.path}: training needs examples in the split {needed}")
    record = {
        "model": model,
        "recipe": recipe,
        "config": config.to_json(),
        "training": training.to_json(),
        "dataset": dataset.facts(),
        "before": Run.open(init_from).trainings() if init_from else [],
        **provenance(),
        "devices": devices.count,
    }
    with devices.workdir(workdir, resume=False) as path:
        run = Run.create(path, record, dataset.vocabulary)
        task.keep_for_run(dataset, run.path)
        run.save_examples(task.examples(dataset))
        _train_alone(Job(run, task, dataset, training, devices, False, save_minutes * 60, init_from))
        return run


def resume(task, workdir, *, data=None, epochs=None, devices="one", save_minutes=10.0):
    """Continues the training of a run from its last save, under its own settings.

    Args:
        task: The `engine.task.Task` of its model.
        workdir: The run's directory.
        data: Directory of its dataset, if it has moved.
        epochs: Epochs of the whole training; `None`: as before.
        devices, save_minutes: As in `start`.

    Returns:
        The `engine.run.Run`.

    Raises:
        UserError: if an input is wrong, or the loss is not finite.
    """
    stored = Run.open(workdir).training
    set_seed(stored.seed)
    devices = open_devices(devices, stored.jit)
    with devices.workdir(workdir, resume=True) as path:
        run = Run.open(path)
        if run.finished() and (epochs or 0) <= stored.epochs:
            done = run.history()[-1]["epoch"]
            print(f"{run.path} is finished, after {done:g} epochs; --epochs=N with more continues it")
            return run
        training = make_config(task.Training, {**run.record["training"], "epochs": epochs or stored.epochs})
        dataset = task.dataset_of(run, data)
        task.check_fits(run.config, dataset)
        resumed = [*run.record.get("resumed", []), {**provenance(), "devices": devices.count}]
        run.update({"training": training.to_json(), "resumed": resumed})
        _train_alone(Job(run, task, dataset, training, devices, True, save_minutes * 60, None))
        return run


def _open_dataset(task, model, data, **options):
    given = {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        if key not in task.load_options:
            raise UserError(f"--{key} is for published selection data. Received: --{key}={value} with {model}")
    return task.open_dataset(data or sample_of(task), **given)


class Job(NamedTuple):
    """A training that is about to begin or to go on."""

    run: Run
    task: Task
    dataset: object
    training: Training
    devices: OneDevice
    resume: bool
    save_seconds: float
    init_from: str | None

    def epoch(self, config, rng):
        """The batches of an epoch, as `engine.task.Task.training_batches` returns them."""
        return self.task.training_batches(self.dataset.splits["train"], config, self.training, rng)


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
    run, task, training, devices = job.run, job.task, job.training, job.devices
    set_precision(training.precision)
    scorer = devices.scorer(run.build_model)
    model = _build(job)
    make_batches = functools.partial(job.epoch, model.config)
    length_multiple = choose_xla(model, training.jit, devices.xla)
    if scorer:
        choose_xla(scorer, training.jit, devices.xla)
    steps = len(make_batches(np.random.default_rng(training.seed)))
    if not steps:
        raise UserError(f"{job.dataset.path}: no example of the split train can be trained on under these settings")
    total = math.ceil(training.epochs * steps)
    position = _compile(job, model, total)
    interval = math.ceil(steps / training.validations_per_epoch)

    def batches(begin):
        def collate(batch):
            return task.collate(job.dataset.splits["train"], model.config, batch, length_multiple)

        return devices.dataset(
            epochs_of(make_batches, training.seed, begin), collate, task.loss_counts, training.batch_size
        )

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
    set_seed(job.training.seed)
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
        optimizer = task.optimizer(training, total, model.config)
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
