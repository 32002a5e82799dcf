"""Starts and resumes trainings, each in a run directory."""

import contextlib
from collections.abc import Mapping, Sequence

import keras

from colloquy.base.files import PathLike, UserError
from colloquy.engine.data_parallel import open_devices
from colloquy.engine.devices import choose_precision, set_seed
from colloquy.engine.examples import take_examples
from colloquy.engine.interrupts import locked
from colloquy.engine.provenance import provenance
from colloquy.engine.run import LAST, Run
from colloquy.engine.sample import prepare_sample
from colloquy.engine.settings import build_config, check_fits, load_training
from colloquy.engine.task import Task
from colloquy.engine.trainer import Trainer
from colloquy.engine.untrusted_weights import check_sizes
from colloquy.engine.workdir import (
    create_run,
    how_to_resume,
    prepare_directory,
    remove_run,
    remove_unfinished,
)
from colloquy.models import MODELS


def start(
    task: Task,
    model: str,
    data: PathLike | None,
    workdir: PathLike,
    settings: Mapping[str, object],
    *,
    recipe: str | None = None,
    init_from: PathLike | Run | None = None,
    devices: str = "one",
    save_minutes: float = 10.0,
    command: str | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> Run:
    """Trains a model, a key of `models.MODELS`, into a new run directory.

    Args:
        data: Directory of a prepared dataset; `None`: the task's sample, which is prepared if
            needed.
        workdir: Run directory to make; missing or empty, or of a training that saved nothing.
        settings: `{field: value}` of the model's config and of the task's `Training`, as `--set`
            takes them.
        recipe: Name of the recipe that the settings come from.
        init_from: A run whose weights the model starts with; `None`: fresh ones.
        devices: See `engine.data_parallel.open_devices`.
        save_minutes: Minutes after which the state is saved between two validations.
        command: The command that repeats the training; default: that of this process.
        callbacks: See `engine.callbacks.Callbacks`.
    """
    spec = MODELS[model]
    # Reading the data may take minutes: a wrong setting is refused before.
    model_settings, training = task.split_settings(spec, settings)
    dataset = task.load_dataset(data or prepare_sample(task))
    config = build_config(task, spec, dataset, model_settings)
    for split in ("train", "dev"):
        if not len(dataset.splits[split]):
            raise UserError(f"{dataset.path}: training needs examples in the split {split}")

    # When Keras joins other hosts, it draws a seed if none is set, and the training could not be
    # repeated. So the seed is set before the devices are opened.
    set_seed(training.seed)
    opened_devices = open_devices(devices)
    precision = choose_precision(training.precision, spec.gains_in_bfloat16)
    training = training.replace(precision=precision)

    record = {
        "model": model,
        "recipe": recipe,
        "config": config.to_json(),
        "training": training.to_json(),
        "dataset": dataset.metadata(),
        "before": Run.open(init_from).trainings() if init_from else [],
        **provenance(command),
        "devices": opened_devices.count,
    }
    # On a host that does not write the run, `path` is a directory that is removed at the end.
    with opened_devices.workdir(workdir, resume=False) as path:
        # The lock is a file in the directory, so the directory is made first. `create_run` checks
        # the directory again: until the lock was held, another process may have written into it.
        prepare_directory(path)
        with locked(path):
            run = create_run(path, record, dataset.vocabulary)
            with _removed_if_unsaved(run):
                task.save_assets(dataset, run.path)
                run.save_examples(take_examples(task, dataset))
                trainer = Trainer(
                    task, run, dataset, opened_devices, training, init_from, callbacks
                )
                trainer.train(save_minutes)
        return run


def resume(
    task: Task,
    workdir: PathLike,
    *,
    data: PathLike | None = None,
    epochs: float | None = None,
    devices: str = "one",
    save_minutes: float = 10.0,
) -> Run:
    """Continues the training of a run from its last save. Only the number of epochs may change.

    Args:
        data: Directory of its dataset, if it has moved.
        epochs: Epochs of the whole training; `None`: as before. At least those that the run has.
        devices, save_minutes: See `start`.
    """
    stored = Run.open(workdir).training
    set_seed(stored.seed)  # before the devices are opened, as in `start`
    opened_devices = open_devices(devices)
    # On a host that does not write the run, `path` is a copy that is removed at the end.
    with opened_devices.workdir(workdir, resume=True) as path:
        run = Run.open(path)
        if run.saved_state() is None:
            hint = "" if run.saved() else "; train.py without --resume starts a new training"
            raise UserError(f"{run.path} cannot be resumed: it has no {LAST}{hint}")
        check_sizes(run, run.path / LAST)
        training = load_training(task, run, stored.epochs if epochs is None else epochs)
        with locked(run.path), _removed_if_unsaved(run):
            remove_unfinished(run)
            if not _has_epochs_left(run, training.epochs):
                return run
            dataset = task.dataset_of(run, data)
            check_fits(task, run, dataset)
            trainer = Trainer(task, run, dataset, opened_devices, training)
            # Written only now, so that a refused dataset or state leaves the run as it was.
            resumption = {**provenance(), "devices": opened_devices.count}
            resumed = [*run.record.get("resumed", []), resumption]
            run.update({"training": training.to_json(), "resumed": resumed})
            trainer.train(save_minutes)
        return run


def _has_epochs_left(run, epochs):
    """True if a run is not finished, or if `epochs` prolongs it; otherwise it prints why not.

    Raises:
        UserError: The run has more epochs already.
    """
    planned = run.training.epochs
    history = run.history()
    done = history[-1]["epoch"] if history else 0.0
    # Early stopping leaves `done` below `planned`. Epochs end with a whole step, so a training
    # that took all of them may be a little above.
    least = min(planned, done)
    if epochs < least:
        raise UserError(
            f"--epochs expects at least the {least:g} epochs that {run.path} has. "
            f"Received: {epochs:g}"
        )
    if not run.finished() or epochs > planned:
        return True
    print(
        f"{run.path} is finished, after {done:g} of {planned:g} epochs; "
        f"--epochs=N continues it, with N above {max(planned, done):g}"
    )
    return False


@contextlib.contextmanager
def _removed_if_unsaved(run):
    """Removes a run if the block fails before anything was saved.

    An interruption gets a message that says how to resume.
    """
    try:
        yield
    except BaseException as error:
        if not run.saved():
            remove_run(run)
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted; {how_to_resume(run)}") from error
        raise
