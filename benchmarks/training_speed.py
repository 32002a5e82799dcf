"""Times the training of two models, or of one under two settings, side by side: same data, same batches, in turn.

python -m benchmarks.training_speed --data='build/babi/task*' --one=memma --other=memr
python -m benchmarks.training_speed --data=build/squad --one=bidaf --other=bidaf,precision=bfloat16

A row gives the medians over blocks of some steps, and their ratio; `benchmarks.turns` says how the two take turns. As
table 2 of the MEMMA article, seconds of 200 iterations, ten times: --steps=200 --blocks=10.
"""

import glob
import pathlib
import sys

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError
from benchmarks.blocks import COUNTED, training_block
from benchmarks.turns import define_flags, in_turn, parse_side, write_record

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset, or a quoted pattern of several.", required=True)
flags.DEFINE_string("one", None, "MODEL[,field=value...], fields as for train.py --set, or precision.", required=True)
flags.DEFINE_string("other", None, "What it is compared with.", required=True)
flags.DEFINE_integer("batch_size", None, "Examples per step; default: that of train.py.", lower_bound=1)
define_flags(blocks=6, steps=10)


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
        measured = in_turn([(training_block, (side, *settings)) for side in sides], FLAGS.blocks)
        rows[pathlib.Path(path).name] = measured
        cells = [text for timed in measured for text in (f"{timed.speed:,.0f}", f"{timed.gigabytes:.2f}")]
        table.add_row(pathlib.Path(path).name, *cells, f"{measured[1].ratio(measured[0]):.2f}")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    per_corpus = {
        name: {
            "per_second": [timed.speed for timed in found],
            "peak_gigabytes": [timed.gigabytes for timed in found],
            "seconds": [timed.seconds() for timed in found],
            "cpu_seconds": [timed.seconds("cpu_speed") for timed in found],
        }
        for name, found in rows.items()
    }
    timed = {"steps": FLAGS.steps, "blocks": FLAGS.blocks}
    write_record(FLAGS.out, "training_speed", sides=sides, unit=unit, **timed, rows=per_corpus, note=FLAGS.note)


if __name__ == "__main__":
    cli.run(main)
