"""Times training with sizes rounded up to different multiples: more padding, or more shapes to compile for?

python -m benchmarks.bucket_sizes --data=build/ubuntu-irc --side=dam --out=results/benchmarks/bucket_sizes.json

A new shape costs what oneDNN needs to compile operations for it, a large multiple costs padding. Each side trains on
the same examples from the beginning of an epoch on, once; the graph is traced before the time counts, since that does
not depend on the multiple. A row gives the seconds of all timed steps together. `--instructions=AVX2` keeps oneDNN to
what a CPU without AVX-512 has. The multiple is what `engine.training` hands to a task's `collate`: selection takes 1.5
times of it, reading comprehension twice.
"""

import sys

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError
from benchmarks.blocks import training_block
from benchmarks.turns import define_flags, in_turn, parse_side, side_of_recipe, write_record

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset.", required=True)
flags.DEFINE_string("side", "dam", "MODEL[,field=value...], fields as for train.py --set, or precision.")
flags.DEFINE_string("recipe", None, "Of tasks/*/recipes.py, in place of --side and --batch_size.")
flags.DEFINE_integer("batch_size", None, "Examples per step; default: that of train.py.", lower_bound=1)
flags.DEFINE_list("multiples", ["2", "4", "8", "16"], "The multiples; the first is what the others are compared with.")
flags.DEFINE_enum("instructions", "native", ["native", "AVX2"], "The best instructions that oneDNN may use.")
define_flags(blocks=8, steps=8)


def main():
    if not all(text.isdigit() and int(text) for text in FLAGS.multiples):
        raise UserError(f"--multiples expects numbers above 0. Received: {','.join(FLAGS.multiples)}")
    side, size = FLAGS.side, FLAGS.batch_size
    if FLAGS.recipe:
        side, size = side_of_recipe(FLAGS.recipe)
    parse_side(side)
    environment = {} if FLAGS.instructions == "native" else {"ONEDNN_MAX_CPU_ISA": FLAGS.instructions}
    common = side, FLAGS.data, size, FLAGS.steps, FLAGS.seed
    sides = [(training_block, (*common, int(multiple)), environment) for multiple in FLAGS.multiples]
    found = in_turn(sides, FLAGS.blocks, warm_up=0)
    table = Table("multiple", "seconds", "CPU seconds", "by the first", title=f"{side}: {FLAGS.instructions}")
    rows = []
    for multiple, timed in zip(FLAGS.multiples, found, strict=True):
        row = {"multiple": int(multiple)}
        for name, field in (("seconds", "speed"), ("cpu_seconds", "cpu_speed")):
            row[name] = sum(block.examples / getattr(block, field) for block in timed.blocks)
        rows.append(row)
        cells = (
            f"{row['seconds']:.1f}",
            f"{row['cpu_seconds']:.1f}",
            f"{row['cpu_seconds'] / rows[0]['cpu_seconds']:.3f}",
        )
        table.add_row(multiple, *cells)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    write_record(FLAGS.out, "bucket_sizes", side=side, instructions=FLAGS.instructions, rows=rows, note=FLAGS.note)


if __name__ == "__main__":
    cli.run(main)
