"""Times DAM under `base.runtime` beside TensorFlow as it would start without it, and beside the path of DAM's release.

python -m benchmarks.runtime --data=build/ubuntu-irc --sample=build/demo/prepared --out=results/benchmarks/runtime.json
python -m benchmarks.runtime --data=build/ubuntu-irc --what=training --allocators --batch_size=16 \
    --out=results/benchmarks/runtime_allocators.json

Float32, batches of 32 pairs at the lengths of the dataset, chosen as `benchmarks.dam_speed` does; `demo` trains the
recipe of `make demo`. `AVX2` shows a CPU without AVX-512 on one that has it: oneDNN is kept to AVX2, and where
TensorFlow would leave oneDNN off there, it is told so. A row says how many times as fast `base.runtime` is, the median
over pairs of blocks: by the clock, and by CPU time, which other work on the machine disturbs less.
"""

import ctypes
import sys

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from benchmarks.blocks import dam_block, training_block
from benchmarks.turns import define_flags, in_turn, side_of_recipe, write_record

FLAGS = flags.FLAGS
OURS = "base.runtime"
OFF, MALLOC, MALLOPT = {"TF_ENABLE_ONEDNN_OPTS": "0"}, {"TF_CPU_ALLOCATOR_USE_BFC": "false"}, "mallopt"
SIDES = {
    OURS: ({}, "", None),
    "oneDNN off, malloc": ({**OFF, **MALLOC}, "", None),
    "the release's path, oneDNN on": ({}, "compatibility=release", None),
}
ALLOCATORS = {
    OURS: ({}, "", None),
    "oneDNN on, malloc": (MALLOC, "", None),
    "oneDNN on, mallopt": (MALLOC, "", MALLOPT),
    "oneDNN off, BFC": (OFF, "", None),
    "oneDNN off, malloc": ({**OFF, **MALLOC}, "", None),
    "oneDNN off, mallopt": ({**OFF, **MALLOC}, "", MALLOPT),
}
"""Environment, settings and allocator of each side."""
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)
flags.DEFINE_string("sample", None, "What make demo prepares; without it demo is left out.")
flags.DEFINE_multi_enum("what", ["training", "ranking", "demo"], ["training", "ranking", "demo"], "What is timed.")
flags.DEFINE_multi_enum("instructions", ["AVX2", "native"], ["AVX2", "native"], "The best that oneDNN may use.")
flags.DEFINE_bool("allocators", False, "Compares allocators, in place of the release.")
flags.DEFINE_integer("batch_size", 32, "Pairs per step of training.", lower_bound=4)
define_flags(blocks=4, steps=4)


def main():
    columns = "pairs/s", "per CPU second", "page faults/block", "GB", "base.runtime is faster by", "by CPU time"
    table, rows = Table("", "", *columns), []
    for instructions in FLAGS.instructions:
        for what in FLAGS.what:
            if what == "demo" and not FLAGS.sample:
                continue
            found = time_sides(instructions, what)
            rows += found
            for row in found:
                cells = [f"{row[field]:,.1f}" for field in ("per_second", "per_cpu_second")]
                cells += [f"{row['page_faults']:,.0f}", f"{row['gigabytes']:.2f}"]
                cells += [f"{row[field]:.2f}" for field in ("ratio", "ratio_of_cpu")]
                table.add_row(f"{what}, {instructions}" if row is found[0] else "", row["side"], *cells)
            table.add_section()
            write_record(FLAGS.out, "runtime", rows=rows, note=FLAGS.note)  # what is done is kept
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def time_sides(instructions, what):
    """The rows of one kind of work under one kind of instructions, `base.runtime` first."""
    limit = {} if instructions == "native" else {"ONEDNN_MAX_CPU_ISA": instructions}
    chosen = ALLOCATORS if FLAGS.allocators else SIDES
    names = [name for name in chosen if what != "demo" or not chosen[name][1]]
    data = FLAGS.sample if what == "demo" else FLAGS.data
    sides = []
    for environment, settings, allocator in (chosen[name] for name in names):
        arguments = what, settings, allocator, data, FLAGS.batch_size, FLAGS.steps, FLAGS.seed
        sides.append((make_block, arguments, {**limit, **environment}))
    found = in_turn(sides, FLAGS.blocks)
    return [
        {
            "instructions": instructions,
            "what": what,
            "side": name,
            **timed.medians(),
            "ratio": found[0].ratio(timed),
            "ratio_of_cpu": found[0].ratio(timed, "cpu_speed"),
        }
        for name, timed in zip(names, found, strict=True)
    ]


def make_block(what, settings, allocator, data, batch_size, steps, seed):
    """In the process of a side: what trains or ranks for a block and returns the pairs per second."""
    if allocator == MALLOPT:  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX: large blocks are kept, in one arena
        libc = ctypes.CDLL(None)
        assert all(libc.mallopt(option, value) for option, value in ((-3, 1 << 30), (-1, 2**31 - 1), (-8, 1)))
    if what == "demo":
        side, batch_size = side_of_recipe("dam-sample")
        return training_block(side, data, batch_size, 8 * steps, seed)
    without = {"plain", "at once"} if settings else {"at once"} if what == "training" else set()
    side = ",".join(filter(None, ["dam", settings]))
    return dam_block(side, without, what, "dataset", data, batch_size, steps, seed)


if __name__ == "__main__":
    cli.run(main)
