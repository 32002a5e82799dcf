"""Trains DAM twice per seed, in float32 without what makes it fast and in bfloat16 with all of it, and compares dev.

python -m benchmarks.dam_precision --data=build/ubuntu-irc --out=results/benchmarks/dam_precision.json

Both sides follow the recipe for the same steps; the scores are those after the last step. Their batches differ, since
what makes it fast includes sorting more examples by size. Runs are kept in --runs and not trained again.
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
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)
flags.DEFINE_string("recipe", "dam-ubuntu-irc", "Key of tasks.RECIPES.")
flags.DEFINE_float("epochs", 0.5, "Passes over the training examples.", lower_bound=0.0)
flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds of weights and batches.")
flags.DEFINE_string("runs", "runs/dam-precision", "Directory of the runs.")
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
SIDES = {"float32, without": ("float32", False), "bfloat16, with": ("bfloat16", True)}
METRIC = "R10@1"


def main():
    from engine.runs import LAST, Run

    rows = []
    table = Table("", METRIC, "mean", "deviation", "minutes")
    for side, (precision, gains) in SIDES.items():
        found = []
        for seed in map(int, FLAGS.seeds):
            path = pathlib.Path(FLAGS.runs) / f"{FLAGS.recipe}-{precision}-{seed}"
            if not (path / LAST).exists():
                arguments = FLAGS.recipe, FLAGS.data, path, FLAGS.epochs, precision, gains, seed
                process = multiprocessing.get_context("spawn").Process(target=train_side, args=arguments)
                process.start()
                process.join()
                if process.exitcode:
                    raise UserError(f"{path}: its training failed; its error stands above")
            found.append(Run.open(path).history()[-1])
            rows.append({"side": side, "seed": seed, **found[-1]})
        scores = [row[METRIC] for row in found]
        deviation = statistics.stdev(scores) if len(scores) > 1 else math.nan
        minutes = statistics.mean(row["seconds"] for row in found) / 60
        shown = ", ".join(f"{score:.4f}" for score in scores)
        table.add_row(side, shown, f"{statistics.mean(scores):.4f}", f"{deviation:.4f}", f"{minutes:.1f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    write_record(FLAGS.out, "dam_precision", rows=rows)


def train_side(recipe, data, path, epochs, precision, gains, seed):
    """Trains one side, in a process of its own since it may change the layers."""
    from engine.training import Fit, train
    from layers import attentive_module
    from tasks import RECIPES, TASKS
    from tasks.selection import batches

    if not gains:
        batches.POOL = 64
        use_plain_layers()
        attentive_module.apply_unpadded = attentive_module.apply_padded
    recipe = RECIPES[recipe]
    flags = {**recipe.flags, "epochs": epochs, "precision": precision, "seed": seed}
    settings = {**recipe.settings, "validations_per_epoch": math.ceil(1 / epochs)}
    task = TASKS["selection"]
    train(task, recipe.model, data, path, Fit(**{**task.fit, **flags}), settings)


if __name__ == "__main__":
    cli.run(main)
