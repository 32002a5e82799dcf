"""Times the training of two models, or of one under two settings, side by side: same data, same batches, in turn.

python -m benchmarks.training_speed --data='build/babi/task*' --one=memma --other=memr
python -m benchmarks.training_speed --data=build/squad --one=bidaf --other=bidaf,precision=bfloat16

A row gives the medians over blocks of some steps, and their ratio; `benchmarks.turns` says how the two take turns.
"""

import glob
import itertools
import pathlib
import sys
import time

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError
from benchmarks.turns import build, in_turn, parse_side, write_record

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset, or a quoted pattern of several.", required=True)
flags.DEFINE_string("one", None, "MODEL[,field=value...], fields as for train.py --set, or precision.", required=True)
flags.DEFINE_string("other", None, "What it is compared with.", required=True)
flags.DEFINE_integer("batch_size", None, "Examples per step; default: that of train.py.", lower_bound=1)
flags.DEFINE_integer("blocks", 6, "Timed blocks of each side.", lower_bound=1)
flags.DEFINE_integer("steps", 10, "Steps per block.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Seed of weights and batches.", lower_bound=0)
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
COUNTED = {
    "dialog": ("responses", lambda answers: int((answers >= 0).sum())),
    "generation": ("target tokens", lambda target: int((target > 0).sum())),
    "reading_comprehension": ("questions", len),
    "selection": ("pairs", lambda labels: labels.size),
}
"""What is counted per second, and how many of a batch's targets these are."""


def main():
    from models import MODELS

    sides = FLAGS.one, FLAGS.other
    for side in sides:
        if parse_side(side)[0] not in MODELS:
            raise UserError(f"--one and --other expect a model of {', '.join(MODELS)}. Received: {side}")
    paths = [path for path in sorted(glob.glob(FLAGS.data)) if pathlib.Path(path).is_dir()]
    if not paths:
        raise UserError(f"--data expects directories that prepare.py made. Received: {FLAGS.data}")
    unit, _ = COUNTED[MODELS[parse_side(FLAGS.one)[0]].task]
    table = Table("", *(f"{side}: {what}" for side in sides for what in (f"{unit}/s", "GB")), "time of one to other")
    rows = {}
    for path in paths:
        settings = path, FLAGS.batch_size, FLAGS.steps, FLAGS.seed
        measured = in_turn([(make_block, (side, *settings)) for side in sides], FLAGS.blocks)
        rows[pathlib.Path(path).name] = measured
        cells = [f"{value:,.{digits}f}" for speed, memory in measured for value, digits in ((speed, 0), (memory, 2))]
        table.add_row(pathlib.Path(path).name, *cells, f"{measured[1][0] / measured[0][0]:.2f}")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    per_corpus = {
        name: {"per_second": [speed for speed, _ in found], "peak_gigabytes": [memory for _, memory in found]}
        for name, found in rows.items()
    }
    write_record(FLAGS.out, "training_speed", sides=sides, unit=unit, rows=per_corpus)


def make_block(side, path, batch_size, steps, seed):
    """In the process of a side: what trains for a block and returns the examples per second."""
    import numpy as np

    from engine.training import Fit

    model, task, dataset, training = build(side, path, seed)
    split, rng = dataset.splits["train"], np.random.default_rng(seed)
    size = batch_size or Fit(**task.fit).batch_size
    batches = itertools.chain.from_iterable(
        task.training_batches(split, model.config, training, size, rng) for _ in itertools.count()
    )
    _, count = COUNTED[task.name]

    def block():
        started, examples = time.perf_counter(), 0
        for batch in itertools.islice(batches, steps):
            inputs, targets = task.collate(split, model.config, batch, 4)
            model.train_on_batch(inputs, targets)
            examples += count(targets)
        return examples / (time.perf_counter() - started)

    return block


if __name__ == "__main__":
    cli.run(main)
