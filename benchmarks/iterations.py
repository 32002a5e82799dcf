"""Times training iterations of MEMMA beside MEMR: table 2 of the MEMMA article.

    python -m colloquy.benchmarks.iterations --data='build/babi/task*' \\
        --out=results/benchmarks/iterations.json/memma

The article times 200 iterations ten times on each task. Here a block is 200 training steps of 8
dialogs, and there are ten of each model, alternately, each model in a process of its own.
"""

import glob
import pathlib

import numpy as np
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError
from colloquy.benchmarks.turns import alternate, build, define_flags, ratio, report

FLAGS = flags.FLAGS
flags.DEFINE_list("data", None, "Prepared tasks of dialog bAbI, or patterns.", required=True)
flags.DEFINE_list("sides", ["memma", "memr"], "Two models, MODEL or MODEL,field=value.")
define_flags(blocks=10, steps=200)
DIALOGS_PER_STEP = 8


def main():
    paths = []
    for pattern in FLAGS.data:
        paths += sorted(glob.glob(pattern))
    if not paths or len(FLAGS.sides) != 2:
        raise UserError("expected --data with a prepared task, and two --sides")
    report([compare(path) for path in paths], threads=runtime.available_cpus())


def compare(path):
    """Runs both sides on a task and returns the row of the report."""
    sides = {}
    for side in FLAGS.sides:
        sides[side] = (training_block, (side, path, FLAGS.steps, FLAGS.seed))
    blocks = alternate(sides, FLAGS.blocks)

    row = {"corpus": pathlib.Path(path).name}
    for side in FLAGS.sides:
        seconds = [block.seconds for block in blocks[side]]
        cpu_seconds = [block.cpu_seconds for block in blocks[side]]
        row[f"{side}: seconds"] = float(np.mean(seconds))
        row[f"{side}: deviation"] = float(np.std(seconds))
        row[f"{side}: CPU seconds"] = float(np.mean(cpu_seconds))
    # A ratio of speeds of the second side to the first is one of times of the first to the second.
    first, second = (blocks[side] for side in FLAGS.sides)
    row["ratio of CPU time"] = ratio(second, first, "per_cpu_second")
    return row


def training_block(side, path, steps, seed):
    """Prepares a side of `alternate`, whose block is `steps` training steps on random batches."""
    model, task, dataset, training = build(side, path, seed)
    split = dataset.splits["train"]
    training = training.replace(batch_size=DIALOGS_PER_STEP)
    rng = np.random.default_rng(seed)
    indices = task.training_batches(split, model.config, training, rng)
    batches = []
    for step in range(steps):
        batches.append(task.collate(split, model.config, indices[step % len(indices)], 4))

    def block():
        for inputs, targets in batches:
            model.train_on_batch(inputs, targets)
        return steps * DIALOGS_PER_STEP

    return block


if __name__ == "__main__":
    cli.run(main)
