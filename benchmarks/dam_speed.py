"""Times DAM beside the path of its release, step by step: training, and ranking ten candidates, at the paper's shapes.

python -m benchmarks.dam_speed --data=build/ubuntu-irc --out=results/benchmarks/dam_speed.json

The first side is the path of the release as plain Keras layers compute it: all padding, and a context again for each of
its candidates. Each further side has one gain more; with word vectors moved lazily it is not quite Adam. Two kinds of
lengths: the dataset's, and all turns and words full, where nothing is padding. Trained is on batches of train, ranked
are dev's contexts as `evaluate.py` ranks them, all sides the same lines: batches at equal distances in the order of
their size, made before the time counts, the same in each block. The sides compute in turn, see `benchmarks.turns`;
medians over blocks, but the first, which compiles.
"""

import sys

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError
from benchmarks.blocks import dam_block
from benchmarks.turns import define_flags, in_turn, write_record

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)
flags.DEFINE_string("settings", "", "field=value,... for both sides, as levels=2.")
flags.DEFINE_integer("batch_size", 32, "Pairs per training step.", lower_bound=4)
flags.DEFINE_multi_enum("lengths", ["dataset", "full"], ["dataset", "full"], "Which lengths; may be repeated.")
flags.DEFINE_multi_enum("what", ["training", "ranking"], ["training", "ranking"], "What is timed; may be repeated.")
flags.DEFINE_list("sides", None, "Some of the sides, by name; the first is what the others are compared with.")
LAZY = "precision=bfloat16,lazy_embedding=true"
SIDES = {
    "the release's path": ("compatibility=release", {"plain", "at once"}),
    "padding cut and a context once": ("", {"plain", "padded", "at once"}),
    "layer normalisation": ("", {"padded", "at once"}),
    "padded words left out": ("", {"at once"}),
    "bfloat16": ("precision=bfloat16", {"at once"}),
    "word vectors lazily": (LAZY, {"ranking"}),
    "two candidates per context": (f"{LAZY},negatives=fresh,negatives_per_positive=1", {"ranking"}),
    "four candidates per context": (f"{LAZY},negatives=fresh,negatives_per_positive=3", {"ranking"}),
    "several batches at once": ("precision=bfloat16", {"training"}),
}
"""Settings, and what a side goes without. `plain`: it has Keras's own layer normalisation. `padded`: padded words of a
batch are computed. `at once`: batches are ranked one after the other. `training`, `ranking`: it has nothing new
there."""
define_flags(blocks=4, steps=16)


def main():
    for name in FLAGS.sides or ():
        if name not in SIDES:
            raise UserError(f"--sides expects some of {'; '.join(SIDES)}. Received: {name}")
    table = Table("", "", "pairs/s", "by the first", "GB")
    rows = []
    for lengths in FLAGS.lengths:
        for what in FLAGS.what:
            arguments = what, lengths, FLAGS.data, FLAGS.batch_size, FLAGS.steps, FLAGS.seed
            names = [name for name in FLAGS.sides or SIDES if what not in SIDES[name][1]]
            sides = []
            for settings, without in (SIDES[name] for name in names):
                side = ",".join(filter(None, ["dam", FLAGS.settings, settings]))
                sides.append((dam_block, (side, without, *arguments)))
            found = in_turn(sides, FLAGS.blocks)
            for side, timed in zip(names, found, strict=True):
                row = {"lengths": lengths, "what": what, "side": side, "pairs_per_second": timed.speed}
                rows.append({**row, "gigabytes": timed.gigabytes, "ratio": timed.ratio(found[0])})
                cells = f"{timed.speed:,.1f}", f"{rows[-1]['ratio']:.2f}", f"{timed.gigabytes:.2f}"
                table.add_row(f"{what}, {lengths} lengths" if side == names[0] else "", side, *cells)
            table.add_section()
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    write_record(FLAGS.out, "dam_speed", rows=rows, note=FLAGS.note)


if __name__ == "__main__":
    cli.run(main)
