"""Starts and resumes trainings, each in a run directory."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

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

    # Seed first: without a seed, joining other hosts draws one, and the training could not be
    # repeated.
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
    with opened_devices.workdir(workdir, resume=False) as path:
        # The lock is a file in the directory, so the directory is made first. `create_run` checks
        # it once more, since another process may have used it before the lock was held.
        prepare_directory(path)
        with locked(path):
            run = create_run(path, record, dataset.vocabulary)
            with _cleaned_up(run):
                task.save_assets(dataset, run.path)
                examples = take_examples(task, dataset)
                run.save_examples([task.example_to_try(example) for example in examples])
                trainer = Trainer(
                    task, run, dataset, opened_devices, init_from=init_from, callbacks=callbacks
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
    with opened_devices.workdir(workdir, resume=True) as path:
        run = Run.open(path)  # a copy, on hosts that do not write the run
        if run.saved_state() is None:
            hint = "" if run.saved() else "; train.py without --resume starts a new training"
            raise UserError(f"{run.path} cannot be resumed: it has no {LAST}{hint}")
        check_sizes(run, run.path / LAST)
        training = load_training(task, run, epochs=stored.epochs if epochs is None else epochs)
        with locked(run.path), _cleaned_up(run):
            history = run.history()
            epochs_done = history[-1]["epoch"] if history else 0.0
            # The epochs that are done are whole steps, which may be a little more than asked for.
            fewest = min(stored.epochs, epochs_done)
            if epochs is not None and epochs < fewest:
                raise UserError(
                    f"--epochs expects at least the {fewest:g} epochs that {run.path} has. "
                    f"Received: {epochs:g}"
                )
            if run.finished() and training.epochs <= stored.epochs:
                most = max(stored.epochs, epochs_done)
                print(
                    f"{run.path} is finished, after {epochs_done:g} of {stored.epochs:g} epochs; "
                    f"--epochs=N continues it, with N above {most:g}"
                )
                return run
            dataset = task.dataset_of(run, data)
            check_fits(task, run, dataset)
            resumption = {**provenance(), "devices": opened_devices.count}
            resumed = [*run.record.get("resumed", []), resumption]
            run.update({"training": training.to_json(), "resumed": resumed})
            trainer = Trainer(task, run, dataset, opened_devices)
            trainer.train(save_minutes)
        return run


@contextlib.contextmanager
def _cleaned_up(run: Run) -> Iterator[None]:
    """Removes what a killed process left, and the run if the block fails before it saves anything.

    An interruption gets a message that says how to resume.
    """
    remove_unfinished(run)
    try:
        yield
    except BaseException as error:
        if not run.saved():
            remove_run(run)
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted; {how_to_resume(run)}") from error
        raise
