"""Times training iterations of MEMMA beside MEMR: table 2 of the MEMMA article.

    python -m colloquy.benchmarks.iterations --data='build/babi/task*' \\
        --out=results/benchmarks/iterations.json/memma

The article times 200 iterations ten times on each task. Here a block is 200 training steps of 8
dialogs, and there are ten of each model, alternately, each model in a process of its own.
"""

import functools
import glob
import pathlib

import numpy as np
from absl import flags

from colloquy.base import cli, machine
from colloquy.base.files import UserError
from colloquy.benchmarks.records import define_flags, report
from colloquy.benchmarks.turns import SEED, alternate, build

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "A pattern of prepared tasks of dialog bAbI.", required=True)
define_flags(blocks=10, steps=200)
MODELS = ("memma", "memr")
DIALOGS_PER_STEP = 8


def main():
    paths = sorted(glob.glob(FLAGS.data))
    if not paths:
        raise UserError(f"--data expects prepared tasks. Received: {FLAGS.data}")
    report([compare(path) for path in paths], threads=machine.available_cpus())


def compare(path):
    """Runs both models on a task and returns the row of the report."""
    sides = {}
    for name in MODELS:
        sides[name] = functools.partial(training_block, name, path, FLAGS.steps)
    blocks = alternate(sides, FLAGS.blocks)

    row = {"corpus": pathlib.Path(path).name}
    cpu_seconds = {}
    for name in MODELS:
        seconds = [block.seconds for block in blocks[name]]
        cpu_seconds[name] = np.array([block.cpu_seconds for block in blocks[name]])
        row[f"{name}: seconds"] = float(np.mean(seconds))
        row[f"{name}: deviation"] = float(np.std(seconds))
        row[f"{name}: CPU seconds"] = float(np.mean(cpu_seconds[name]))
    row["ratio of CPU time"] = float(np.median(cpu_seconds["memma"] / cpu_seconds["memr"]))
    return row


def training_block(name, path, steps):
    """Prepares a side of `alternate`, whose block is `steps` training steps on random batches."""
    model, task, dataset, training = build(name, {}, path)
    split = dataset.splits["train"]
    training = training.replace(batch_size=DIALOGS_PER_STEP)
    indices = task.training_batches(split, model.config, training, np.random.default_rng(SEED))
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
