"""Trains recipes in each precision with several seeds, and compares their scores on dev: does half precision cost any?

python -m benchmarks.precision_scores --recipe=dam-sample,babi-memma --data=sample,build/babi/task1
python -m benchmarks.precision_scores --recipe=dam-ubuntu-irc --data=build/ubuntu-irc --epochs=0.5 \
    --precision=plain,bfloat16

The scores are those after the last step.
`plain` is float32 without what makes DAM fast; its batches differ, since sorting more examples by size is part of that.
Runs are kept in --runs and not trained again; one that is not done within --minutes has no score.
"""

import math
import multiprocessing
import pathlib
import statistics
import sys

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError
from benchmarks.turns import use_plain_layers, write_record

FLAGS = flags.FLAGS
flags.DEFINE_list("recipe", None, "Keys of tasks.RECIPES.", required=True)
flags.DEFINE_list("data", None, "Prepared dataset for each recipe; `sample`, the default for all: the embedded sample.")
flags.DEFINE_list("precision", ["float32", "bfloat16", "float16"], "Precisions, or `plain`.")
flags.DEFINE_list("epochs", None, "Passes over the training examples, of all or of each recipe; default: the recipe's.")
flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds of weights and batches.")
flags.DEFINE_float("minutes", 60.0, "The longest that a training may take.", lower_bound=0.0)
flags.DEFINE_string("runs", "runs/precision-scores", "Directory of the runs.")
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
PLAIN = "plain"
SAMPLE = "sample"


def main():
    from models import MODELS
    from tasks import RECIPES, TASKS

    for name in FLAGS.recipe:
        if name not in RECIPES:
            raise UserError(f"--recipe expects some of {', '.join(RECIPES)}. Received: {name}")
    datasets = FLAGS.data or [SAMPLE] * len(FLAGS.recipe)
    if len(datasets) != len(FLAGS.recipe):
        raise UserError(
            f"--data expects one dataset for each of {len(FLAGS.recipe)} recipes. Received: {len(datasets)}"
        )
    epochs = _epochs(FLAGS.epochs, len(FLAGS.recipe))
    rows, runs = [], []
    table = Table("", "corpus", "metric", *FLAGS.precision)
    for recipe, data, passes in zip(FLAGS.recipe, datasets, epochs, strict=True):
        metric = TASKS[MODELS[RECIPES[recipe].model].task].headline[0]
        row = {"recipe": recipe, "corpus": pathlib.Path(data).name, "metric": metric}
        for precision in FLAGS.precision:
            found = [_last_validation(recipe, data, passes, precision, int(seed)) for seed in FLAGS.seeds]
            runs += [
                {"recipe": recipe, "precision": precision, "seed": int(seed), **(last or {"minutes": FLAGS.minutes})}
                for seed, last in zip(FLAGS.seeds, found, strict=True)
            ]
            row[precision] = summary([last[metric] for last in found if last], len(found))
        rows.append(row)
        table.add_row(*row.values())
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    write_record(FLAGS.out, "precision_scores", rows=rows, runs=runs)


def summary(scores, count):
    """Mean and standard deviation over seeds, and how many of `count` trainings were done where not all.

    >>> summary([0.5, 0.6], 2), summary([31.25], 2), summary([], 2)
    ('0.550 ± 0.071', '31.250, 1 of 2 done', 'none done')
    """
    if not scores:
        return "none done"
    deviation = f" ± {statistics.stdev(scores):.3f}" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.3f}{deviation}" + (f", {len(scores)} of {count} done" * (len(scores) < count))


def _epochs(given, recipes):
    """Passes over the training examples of each of so many recipes; `None`: its own.

    >>> _epochs(None, 2), _epochs(["0.5"], 2), _epochs(["1", "2.5"], 2)
    ([None, None], [0.5, 0.5], [1.0, 2.5])
    """
    try:
        epochs = [float(number) for number in given or []]
    except ValueError:
        epochs = [0.0]
    if given and (len(epochs) not in (1, recipes) or not all(0 < number < math.inf for number in epochs)):
        raise UserError(f"--epochs expects one positive number, or one for each recipe. Received: {','.join(given)}")
    return epochs if len(epochs) == recipes else (epochs or [None]) * recipes


def _last_validation(recipe, data, epochs, precision, seed):
    """Of a training that is done, what its last validation found; of one that was stopped, `None`."""
    from engine.runs import LAST, Run

    path = pathlib.Path(FLAGS.runs) / f"{recipe}-{precision}-{seed}"
    if not (path / LAST).exists() or not Run.open(path).finished():
        process = multiprocessing.get_context("spawn").Process(
            target=train_one, args=(recipe, data, path, epochs, precision, seed)
        )
        process.start()
        process.join(FLAGS.minutes * 60)
        if process.exitcode is None:
            process.terminate()
            process.join()
            print(f"{path}: stopped after {FLAGS.minutes:g} minutes (--minutes)", flush=True)
            return None
        if process.exitcode:
            raise UserError(f"{path}: its training failed; its error stands above")
    return Run.open(path).history()[-1]


def train_one(recipe, data, path, epochs, precision, seed):
    """Follows a recipe, in a process of its own since it may change the layers.

    Args:
        recipe: Its name.
        data: Directory of a prepared dataset, or `SAMPLE`.
        path: The run's directory.
        epochs: Passes over the training examples; `None`: the recipe's.
        precision: `"float32"`, `"bfloat16"`, `"float16"`, or `PLAIN`.
        seed: Of weights and batches.
    """
    from engine.runs import LAST
    from engine.training import Fit, train
    from layers import attentive_module
    from models import MODELS
    from tasks import RECIPES, TASKS
    from tasks.selection import batches

    if precision == PLAIN:
        batches.POOL = 64
        use_plain_layers()
        attentive_module.apply_unpadded = attentive_module.apply_padded
    recipe = RECIPES[recipe]
    task = TASKS[MODELS[recipe.model].task]
    chosen = {"precision": "float32" if precision == PLAIN else precision, "seed": seed}
    settings = dict(recipe.settings)
    if epochs:
        chosen["epochs"] = epochs
        settings["validations_per_epoch"] = math.ceil(1 / epochs)
    resume = (path / LAST).exists()
    fit = Fit(**{**task.fit, **recipe.flags, **chosen})
    train(
        task,
        recipe.model,
        None if resume or data == SAMPLE else data,
        path,
        fit,
        {} if resume else settings,
        resume=resume,
    )


if __name__ == "__main__":
    cli.run(main)
