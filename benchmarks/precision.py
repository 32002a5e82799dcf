"""Times training in bfloat16 beside float32, for one model of each kind: does bfloat16 pay on this machine?

python -m benchmarks.precision --data=build --out=results/benchmarks/precision.json

A model's `gains_in_bfloat16` (models/__init__.py), which `--precision=auto` goes by, follows from what this finds where
the CPU computes bfloat16. Ratios are medians over pairs of blocks, see `benchmarks.turns`; those of CPU time are less
disturbed by other work on the machine.
"""

import pathlib
import sys

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli, runtime
from benchmarks.blocks import COUNTED, training_block
from benchmarks.turns import define_flags, in_turn, write_record

FLAGS = flags.FLAGS
CORPORA = {
    "dam": "ubuntu-irc",
    "bidaf": "squad",
    "seq2seq": "dailydialog",
    "memma": "babi/task1",
    "memn2n": "babi/task1",
    "memr": "babi/task1",
    "entity-memma": "babi/task1",
    "supervised-embeddings": "babi/task1",
}
"""The prepared dataset of each model."""
flags.DEFINE_string(
    "data", None, "Directory of the prepared datasets ubuntu-irc, squad, dailydialog, babi.", required=True
)
flags.DEFINE_multi_enum("model", list(CORPORA), list(CORPORA), "Models; may be repeated.")
flags.DEFINE_integer("batch_size", None, "Examples per step; default: that of train.py, for DAM 32.", lower_bound=1)
define_flags(blocks=5, steps=4)


def main():
    from models import MODELS

    table = Table("", "float32", "bfloat16", "", "ratio", "of CPU time")
    rows = []
    for model in FLAGS.model:
        path = pathlib.Path(FLAGS.data) / CORPORA[model]
        size = FLAGS.batch_size or (32 if model == "dam" else None)
        sides = [(f"{model},precision={name}", path, size, FLAGS.steps, FLAGS.seed) for name in ("float32", "bfloat16")]
        single, half = in_turn([(training_block, side) for side in sides], FLAGS.blocks, warm_up=2)
        unit, _ = COUNTED[MODELS[model].task]
        row = {"model": model, "corpus": CORPORA[model], "unit": f"{unit} per second", "float32": single.speed}
        row |= {"bfloat16": half.speed, "ratio": half.ratio(single), "ratio_of_cpu": half.ratio(single, "cpu_speed")}
        rows.append(row)
        shown = f"{row['float32']:,.1f}", f"{row['bfloat16']:,.1f}", f"{unit}/s"
        table.add_row(model, *shown, f"{row['ratio']:.2f}", f"{row['ratio_of_cpu']:.2f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    write_record(FLAGS.out, "precision", rows=rows, runtime=runtime.describe(), note=FLAGS.note)


if __name__ == "__main__":
    cli.run(main)
