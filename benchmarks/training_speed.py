"""Times the training of two models, or of one under two settings, side by side, on the same
batches.

python -m colloquy.benchmarks.training_speed --data='build/babi/task*' --one=memma --other=memr
python -m colloquy.benchmarks.training_speed --data=build/squad --one=bidaf,precision=bfloat16
--other=bidaf,precision=float32

Table 2 of the MEMMA article, seconds of 200 iterations, ten times: --steps=200 --blocks=10.
"""

import glob
import pathlib

from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError
from colloquy.benchmarks import turns

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset or a quoted pattern of several.", required=True)
flags.DEFINE_string(
    "one",
    None,
    "MODEL[,field=value...], fields as for train.py --set, or precision.",
    required=True,
)
flags.DEFINE_string(
    "other", None, "The model and settings that it is compared with.", required=True
)
turns.define_flags(blocks=6, steps=10)


def main():
    from colloquy.models import MODELS

    unit, _ = turns.COUNTED[MODELS[turns.parse_side(FLAGS.one)[0]].task]
    paths = [path for path in sorted(glob.glob(FLAGS.data)) if pathlib.Path(path).is_dir()]
    if not paths:
        raise UserError(f"--data expects directories that prepare.py made. Received: {FLAGS.data}")
    sides = {
        side.partition("=")[2] or turns.parse_side(side)[0]: side
        for side in (FLAGS.one, FLAGS.other)
    }
    rows = [compare(path, sides, unit) for path in paths]
    turns.report(rows, steps=FLAGS.steps, blocks=FLAGS.blocks, runtime=runtime.describe())


def compare(path, sides, unit):
    options = path, FLAGS.steps, FLAGS.seed
    blocks = {name: (turns.training_block, (side, *options)) for name, side in sides.items()}
    found = turns.alternate(blocks, FLAGS.blocks, 2)
    row = {"corpus": pathlib.Path(path).name}
    row |= {f"{name}: {unit} per second": turns.median(blocks) for name, blocks in found.items()}
    row["ratio"] = turns.ratio(*found.values())
    iterations, cpu_seconds = 200 / FLAGS.steps / FLAGS.blocks, []
    for name, blocks in found.items():
        cpu_seconds.append(iterations * sum(block.cpu_seconds for block in blocks))
        row[f"{name}: GB"] = blocks[-1].gigabytes
        row[f"{name}: seconds of 200 steps"] = iterations * sum(block.seconds for block in blocks)
        row[f"{name}: CPU seconds of 200 steps"] = cpu_seconds[-1]
    return {**row, "ratio of CPU time": cpu_seconds[0] / cpu_seconds[1]}


if __name__ == "__main__":
    cli.run(main)
