"""Starts and resumes trainings, each in a run directory."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import keras

from colloquy.base.files import PathLike, UserError
from colloquy.base.runtime import choose_precision
from colloquy.engine.devices import has_gpu, open_devices, set_seed
from colloquy.engine.examples import take_examples
from colloquy.engine.interrupts import locked
from colloquy.engine.provenance import provenance
from colloquy.engine.run import LAST, Run
from colloquy.engine.sample import prepare_sample
from colloquy.engine.settings import build_config, check_fits, load_training
from colloquy.engine.task import Task
from colloquy.engine.trainer import Trainer, how_to_resume
from colloquy.engine.untrusted import check_sizes
from colloquy.engine.workdir import create_run, prepare_directory, remove_run, remove_unfinished
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
        data: Directory of a prepared dataset; `None`: the sample of the task.
        settings: `{field: value}` of the model's config and of the task's `Training`, as `--set`
            takes them.
        recipe: Name of the recipe that the settings come from.
        init_from: A run whose weights the model starts with; `None`: fresh ones.
        devices: See `engine.devices.open_devices`.
        save_minutes: Minutes after which the state is saved between two validations.
        command: The command that repeats the training; default: that of this process.
        callbacks: See `engine.callbacks.Callbacks`.

    Returns:
        The `engine.run.Run`.
    """
    spec = MODELS[model]
    # Before the data are read: a wrong setting need not wait for them.
    model_settings, training = task.split_settings(spec, settings)
    dataset = task.load_dataset(data or prepare_sample(task))
    config = build_config(task, spec, dataset, model_settings)

    # Seed first: without a seed, joining other hosts draws one, and the training could not be
    # repeated.
    set_seed(training.seed)
    opened_devices = open_devices(devices)
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
        "devices": opened_devices.count,
    }
    with (
        opened_devices.workdir(workdir, resume=False) as path,
        locked(prepare_directory(path).path),
    ):
        run = create_run(path, record, dataset.vocabulary)
        with _removed_unless_saved(run):
            task.save_assets(dataset, run.path)
            examples = [task.example_to_try(example) for example in take_examples(task, dataset)]
            run.save_examples(examples)
            trainer = Trainer(task, run, dataset, opened_devices, init_from, callbacks)
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
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> Run:
    """Continues the training of a run from its last save, under its own settings.

    Args:
        data: Directory of its dataset, if it has moved.
        epochs: Epochs of the whole training, if changed.
        devices, save_minutes, callbacks: See `start`.

    Returns:
        The `engine.run.Run`.
    """
    stored = Run.open(workdir).training
    set_seed(stored.seed)
    opened_devices = open_devices(devices)
    with opened_devices.workdir(workdir, resume=True) as path:
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
            check_fits(task, run, dataset)
            training = load_training(task, run, epochs=epochs or stored.epochs)
            resumption = {**provenance(), "devices": opened_devices.count}
            resumed = [*run.record.get("resumed", []), resumption]
            run.update({"training": training.to_json(), "resumed": resumed})
            trainer = Trainer(task, run, dataset, opened_devices, callbacks=callbacks)
            trainer.train(save_minutes)
        return run


@contextlib.contextmanager
def _removed_unless_saved(run: Run) -> Iterator[None]:
    """Removes a locked run if the block that trains it fails before anything was saved."""
    remove_unfinished(run)
    try:
        yield
    except BaseException as error:
        if not run.saved():
            remove_run(run)
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted; {how_to_resume(run)}") from error
        raise
