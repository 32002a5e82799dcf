"""What tools.sweep does."""

import gc
import itertools
import pathlib
import shutil

import keras

from base.files import UserError
from engine.evaluate import Evaluation
from engine.run import CONFIG, LAST, VOCABULARY, Run
from engine.train import resume, start
from models import MODELS


def sweep(tasks, recipes, datasets, seeds, splits, out, measured_out=None, variations=({},)):
    """Trains and measures every recipe on every dataset with every seed.

    Args:
        tasks: `{name: engine.task.Task}`.
        recipes: `{name: engine.task.Recipe}`.
        datasets: Paths of prepared datasets.
        seeds: Integers.
        splits: What to measure; those that a dataset lacks are left out.
        out: Directory of the runs, `RECIPE-DATASET-SEED`.
        measured_out: Directory of the records, `RECIPE-DATASET-SEED-SPLIT.json`, or `None`. What has all its records is
            not trained, even if its run is gone.
        variations: List of `{field: value}`: each recipe is trained with each of them; RECIPE is then
            `RECIPE-FIELD-VALUE`.

    Raises:
        UserError: where an input is at fault.
    """
    names = [data.name for data in datasets]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--data expects directories of different names, which runs are named by. Received: {name}")
    for seed in seeds:  # so that every recipe has its first result soon
        for number, ((key, recipe), changes) in enumerate(itertools.product(recipes.items(), variations)):
            label = "-".join([key, *(f"{field}-{value}" for field, value in changes.items())])
            for data in datasets:
                task = tasks[MODELS[recipe.model].task]
                first = number == 0 and seed == seeds[0]  # the baselines of a dataset are always the same
                name = f"{label}-{data.name}-{seed}"
                settings = {**recipe.config, **recipe.training, **changes, "seed": seed}
                trained = key, recipe.model, settings, data, out / name
                _train_and_measure(task, trained, splits, measured_out, baselines=first)
                keras.utils.clear_session()
                gc.collect()


def _train_and_measure(task, trained, splits, measured_out, baselines):
    """Trains as `_train` does, and measures the splits that have no record yet."""
    *_, data, path = trained
    dataset = task.open_dataset(data)
    for split in splits:
        if split not in dataset.splits:
            raise UserError(f"--split expects some of {', '.join(dataset.splits)}. Received: {split}")
    files = {split: measured_out and measured_out / f"{path.name}-{split}.json" for split in splits}
    missing = {
        split: file for split, file in files.items() if len(dataset.splits[split]) and not (file and file.exists())
    }
    if not missing:
        return
    run = _train(task, *trained)
    evaluation = Evaluation(task, run, data, datasets={str(data.resolve()): dataset})
    for split, file in missing.items():
        evaluation.score(split, measured_out=file, baselines=baselines)


def _train(task, key, model, settings, data, path):
    if (path / LAST).exists():
        run = Run.open(path)
        if pathlib.Path(run.dataset["path"]) != data.resolve():
            raise UserError(f"{path} was trained on {run.dataset['path']}, not on {data}: give another --out")
        return run if run.finished() else resume(task, path)
    if (path / CONFIG).exists() or (path / VOCABULARY).exists():
        shutil.rmtree(path)  # killed before its first validation was over, so there is nothing to go on from
    return start(task, model, data, path, settings, recipe=key)
