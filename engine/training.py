"""The training loop that train.py starts: `keras.Model.fit`, one Keras epoch per interval between validations."""

import dataclasses
import math
import shutil

import keras
import numpy as np

from base.files import UserError
from base.runtime import choose_precision
from data.batching import epochs_of
from data.stream import as_dataset
from engine.interruption import Interruption, locked
from engine.progress import Display
from engine.provenance import provenance
from engine.runs import BEST, LAST, Run, has_gpu, set_precision
from engine.samples import sample_of
from engine.settings import check_fields, make_config
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

    Returns:
        The `engine.runs.Run`.

    Raises:
        UserError: where an input is at fault, or the loss is not finite.
    """
    if resume:
        run = Run.open(workdir)
        if run.finished() and fit.epochs <= run.config["fit"]["epochs"]:
            print(f"{run.path} is finished, after {run.history()[-1]['epoch']:g} epochs; --epochs=N with more goes on")
            return run
        fit, training, dataset = _reopen(run, task, data, fit)
    else:
        given = {key: value for key, value in (("eos_id", eos_id), ("name", name)) if value is not None}
        for key, value in given.items():
            if key not in task.load_options:
                raise UserError(f"--{key} is for published selection data. Received: --{key}={value} with {model_name}")
        dataset = task.open_dataset(data or sample_of(task), **given)
        precision = choose_precision(fit.precision, MODELS[model_name].gains_in_bfloat16, has_gpu())
        fit = dataclasses.replace(fit, precision=precision)
        run, training = _create_run(model_name, workdir, fit, settings, task, dataset)
    try:
        with locked(run.path):
            run.remove_leftovers()
            _fit(run, task, dataset, training, fit, resume, save_minutes, init_from)
    except BaseException:
        if not resume and not any((run.path / name).exists() for name in (BEST, LAST)):
            shutil.rmtree(run.path)  # there is nothing in it yet
        raise
    return run


def _reopen(run, task, data, fit):
    """What a run was trained by, to go on: its `Fit` with the epochs of the given one, its `Training`, its dataset."""
    stored = run.config
    fit = Fit(**{**stored["fit"], "epochs": fit.epochs})
    training = task.Training(**stored["training"])
    dataset = task.dataset_of(run, data)
    task.check_fits(make_config(run.entry.config, stored["settings"]), dataset)
    run.update_config({"fit": dataclasses.asdict(fit), "resumed": [*stored.get("resumed", []), provenance()]})
    return fit, training, dataset


def _create_run(model_name, workdir, fit, settings, task, dataset):
    """Sorts the settings into model and training, checks them, and makes the run's directory."""
    entry = MODELS[model_name]
    known = {
        "model": [field.name for field in dataclasses.fields(entry.config)],
        "training": [field.name for field in dataclasses.fields(task.Training)],
    }
    settings = expand_compatibility(entry, task, settings)
    chosen = {kind: {k: v for k, v in settings.items() if k in known[kind]} for kind in known}
    for name in settings:
        if name not in known["model"] and name not in known["training"]:
            raise UserError(
                f"--set: no field {name!r}. The model {model_name} has {', '.join(known['model'])}; "
                f"its training has {', '.join(known['training'])}"
            )
    training = make_config(task.Training, chosen["training"])
    config = make_config(entry.config, task.model_settings(dataset, chosen["model"]))
    for needed in ("train", "dev"):
        if not len(dataset.splits[needed]):
            raise UserError(f"{dataset.path}: training needs examples in the split {needed}")
    contents = {
        "model": model_name,
        "settings": dataclasses.asdict(config),
        "training": dataclasses.asdict(training),
        "fit": dataclasses.asdict(fit),
        "dataset": dataset.facts(),
        **provenance(),
    }
    run = Run.create(workdir, contents, dataset.vocabulary)
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


def _fit(run, task, dataset, training, fit, resume, save_minutes, init_from):
    """Trains the model of a run until its epochs are over, or early stopping ends it."""
    set_precision(fit.precision)
    keras.utils.set_random_seed(fit.seed)
    model = run.build_model()
    multiple = choose_xla(model, fit.jit)
    split = dataset.splits["train"]

    def make_batches(rng):
        return task.training_batches(split, model.config, training, fit.batch_size, rng)

    steps = len(make_batches(np.random.default_rng(fit.seed)))
    if not steps:
        raise UserError(f"{dataset.path}: no example of the split train can be trained on under these settings")
    total = math.ceil(fit.epochs * steps)
    model.compile(
        optimizer=task.optimizer(training, fit.learning_rate, total, model.config),
        loss=task.loss(training),
        jit_compile=model.jit_compile,
    )
    if resume:
        position = run.restore_state(model)
        run.complete_history(position)
    else:
        task.initialise(model, dataset, training)
        if init_from:
            start_from(init_from, model, dataset, task)
        position = {"step": 0, "seconds": 0.0, "best": -1.0, "waited": 0}
    model.optimizer.build(model.trainable_variables)  # else `fit` traces the first step twice
    interval = math.ceil(steps / training.validations_per_epoch)

    def batches(begin):
        indices = epochs_of(make_batches, fit.seed, begin)
        return (task.collate(split, model.config, batch, multiple) for batch in indices)

    with Interruption() as interruption, Display(begin_of(position), total) as display:
        display.line(
            f"{run.path}: {model.count_params():,} parameters, {steps:,} steps per epoch, "
            f"a validation every {interval:,} steps"
        )
        outside = Outside(display, interruption, save_minutes * 60)
        dev = dataset.splits["dev"]
        validation = Validation(run, task, dev, training, position, steps, total, multiple, outside=outside)
        _run_steps(model, batches, validation, interval)


def _run_steps(model, batches, validation, interval):
    """Steps until the whole training is over or `validation` ends it.

    Args:
        model: A compiled model.
        batches: Function of a step that returns the batches from there on.
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
                    as_dataset(batches(begin_of(validation.position))),
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
