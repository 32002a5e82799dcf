"""Times the training of two models, or of one under two settings, side by side, on the same batches.

python -m benchmarks.training_speed --data='build/babi/task*' --one=memma --other=memr
python -m benchmarks.training_speed --data=build --model=dam --model=bidaf --out=results/benchmarks/precision.json

With `--model` the sides are float32 and bfloat16: a model's `gains_in_bfloat16` (models/__init__.py), which
`--precision=auto` goes by, follows from what this finds where the CPU computes bfloat16. Otherwise they are `--one` and
`--other`; as table 2 of the MEMMA article, seconds of 200 iterations, ten times: --steps=200 --blocks=10.
"""

import glob
import pathlib

from absl import flags

from base import cli, runtime
from base.files import UserError
from benchmarks.turns import COUNTED, alternate, define_flags, median, parse_side, ratio, report, training_block

FLAGS = flags.FLAGS
CORPORA = {"dam": "ubuntu-irc", "bidaf": "squad", "seq2seq": "dailydialog"}
CORPORA |= dict.fromkeys(("memma", "memn2n", "memr", "entity-memma", "supervised-embeddings"), "babi/task1")
flags.DEFINE_string("data", None, "Prepared dataset or a quoted pattern; for --model their directory.", required=True)
flags.DEFINE_string("one", None, "MODEL[,field=value...], fields as for train.py --set, or precision.")
flags.DEFINE_string("other", None, "What it is compared with.")
flags.DEFINE_multi_enum("model", [], list(CORPORA), "Models to compare in float32 and bfloat16; may be repeated.")
flags.DEFINE_integer("batch_size", None, "Examples per step; default: that of train.py, for DAM 32.", lower_bound=1)
define_flags(blocks=6, steps=10)


def main():
    rows = compare_precisions() if FLAGS.model else compare_sides()
    report("training_speed", rows, steps=FLAGS.steps, blocks=FLAGS.blocks, runtime=runtime.describe())


def compare_precisions():
    """A row per model."""
    rows = []
    for model in FLAGS.model:
        sides = {name: f"{model},precision={name}" for name in ("float32", "bfloat16")}
        batch_size = FLAGS.batch_size or (32 if model == "dam" else None)
        found = time_sides(sides, pathlib.Path(FLAGS.data) / CORPORA[model], batch_size)
        row = {"model": model, "corpus": CORPORA[model], "unit": f"{unit_of(model)} per second"}
        row |= {name: median(blocks) for name, blocks in found.items()}
        sides = found["bfloat16"], found["float32"]
        rows.append({**row, "ratio": ratio(*sides), "ratio_of_cpu": ratio(*sides, "per_cpu_second")})
    return rows


def compare_sides():
    """A row per dataset."""
    from models import MODELS

    for side in (FLAGS.one, FLAGS.other):
        if not side or parse_side(side)[0] not in MODELS:
            raise UserError(f"--one and --other expect a model of {', '.join(MODELS)}. Received: {side}")
    paths = [path for path in sorted(glob.glob(FLAGS.data)) if pathlib.Path(path).is_dir()]
    if not paths:
        raise UserError(f"--data expects directories that prepare.py made. Received: {FLAGS.data}")
    sides = {side.partition("=")[2] or side: side for side in (FLAGS.one, FLAGS.other)}
    unit, rows = unit_of(parse_side(FLAGS.one)[0]), []
    for path in paths:
        found = time_sides(sides, path, FLAGS.batch_size)
        row = {"corpus": pathlib.Path(path).name}
        row |= {f"{name}: {unit} per second": median(blocks) for name, blocks in found.items()}
        row["ratio"] = ratio(*found.values())
        iterations, cpu_seconds = 200 / FLAGS.steps / FLAGS.blocks, []
        for name, blocks in found.items():
            cpu_seconds.append(iterations * sum(block.cpu_seconds for block in blocks))
            row[f"{name}: GB"] = blocks[-1].gigabytes
            row[f"{name}: seconds of 200 steps"] = iterations * sum(block.seconds for block in blocks)
            row[f"{name}: CPU seconds of 200 steps"] = cpu_seconds[-1]
        rows.append({**row, "ratio of CPU time": cpu_seconds[0] / cpu_seconds[1]})
    return rows


def time_sides(sides, path, batch_size):
    """The blocks of each side."""
    options = path, batch_size, FLAGS.steps, FLAGS.seed
    return alternate({name: (training_block, (side, *options)) for name, side in sides.items()}, FLAGS.blocks, 2)


def unit_of(model):
    """What is counted per second."""
    from models import MODELS

    return COUNTED[MODELS[model].task][0]


if __name__ == "__main__":
    cli.run(main)
