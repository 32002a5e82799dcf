"""Times DAM beside the path of its release, step by step: training, and ranking ten candidates, at the paper's shapes.

python -m benchmarks.dam_speed --data=build/ubuntu-irc --out=results/benchmarks/dam_speed.json

The first side is the path of the release as plain Keras layers compute it: all padding, and a context again for each of
its candidates. Each further side has one gain more; with word vectors moved lazily it is not quite Adam. Two kinds of
lengths: the dataset's, and all turns and words full, where nothing is padding. Trained is on batches of train, ranked
are dev's contexts as `evaluate.py` ranks them, all sides the same lines: batches at equal distances in the order of
their size, made before the time counts, the same in each block. The sides compute in turn, see `benchmarks.turns`;
medians over blocks, but the first, which compiles.
"""

import dataclasses
import sys
import time

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli
from base.files import UserError
from benchmarks.turns import build, in_turn, use_plain_layers, write_record
from engine.parallel import in_order, share_cores

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)
flags.DEFINE_string("settings", "", "field=value,... for both sides, as levels=2.")
flags.DEFINE_integer("batch_size", 32, "Pairs a step of training.", lower_bound=4)
flags.DEFINE_multi_enum("lengths", ["dataset", "full"], ["dataset", "full"], "Which lengths; may be repeated.")
flags.DEFINE_multi_enum("what", ["training", "ranking"], ["training", "ranking"], "What is timed; may be repeated.")
flags.DEFINE_list("sides", None, "Some of the sides, by name; the first is what the others are compared with.")
flags.DEFINE_integer("blocks", 4, "Timed blocks of each side.", lower_bound=1)
flags.DEFINE_integer("steps", 16, "Steps a block.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Of weights and batches.", lower_bound=0)
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
LAZY = "precision=bfloat16,lazy_embedding=true"
SIDES = {
    "the release's path": ("compatibility=release", {"plain", "at once"}),
    "padding cut and a context once": ("", {"plain", "padded", "at once"}),
    "layer normalisation and products": ("", {"padded", "at once"}),
    "padded words left out": ("", {"at once"}),
    "bfloat16": ("precision=bfloat16", {"at once"}),
    "word vectors lazily": (LAZY, {"ranking"}),
    "two candidates a context": (f"{LAZY},negatives=fresh,negatives_per_positive=1", {"ranking"}),
    "four candidates a context": (f"{LAZY},negatives=fresh,negatives_per_positive=3", {"ranking"}),
    "several batches at once": ("precision=bfloat16", {"training"}),
}
"""Settings, and what a side goes without. `plain`: it has Keras's own layer normalisation, and products of weights with
each sentence alone. `padded`: padded words of a batch are computed. `at once`: batches are ranked one after the other.
`training`, `ranking`: it has nothing new there."""


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
                sides.append((make_block, (side, without, *arguments)))
            found = in_turn(sides, FLAGS.blocks)
            for side, (speed, memory) in zip(names, found, strict=True):
                row = {"lengths": lengths, "what": what, "side": side, "pairs_per_second": speed, "gigabytes": memory}
                rows.append({**row, "ratio": speed / found[0][0]})
                cells = f"{speed:,.1f}", f"{rows[-1]['ratio']:.2f}", f"{memory:.2f}"
                table.add_row(f"{what}, {lengths} lengths" if side == names[0] else "", side, *cells)
            table.add_section()
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    write_record(FLAGS.out, "dam_speed", rows=rows)


def make_block(side, without, what, lengths, path, batch_size, steps, seed):
    """In the process of a side: what trains or ranks for a block and returns the pairs a second."""
    import numpy as np

    from tasks.selection.batches import inputs_of
    from tasks.selection.ranking import ranking_batches

    if "at once" not in without:
        share_cores()
    if "plain" in without:
        use_plain_layers()
    model, task, dataset, training = build(side, path, seed)
    if "padded" in without:
        model.packed = False
    config, rng = model.config, np.random.default_rng(seed)
    split = dataset.splits["train" if what == "training" else "dev"]

    if what == "training":
        per_step = batch_size // (1 + training.negatives_per_positive) if training.negatives == "fresh" else batch_size
        every = task.training_batches(split, config, training, per_step, rng)
    elif lengths == "dataset":
        every = ranking_batches(split, dataclasses.replace(config, masking="exact"))
    else:  # ten candidates in a row, as where their lengths do not differ
        every = [(np.arange(8), np.arange(80).reshape(8, 10))]
    cells = [
        split.sizes(contexts, lines, config.max_turns, config.max_words).max(axis=0).prod()
        for contexts, lines, *_ in every
    ]
    chosen = np.argsort(cells)[((np.arange(steps) + 0.5) / steps * len(every)).astype(int)]

    def arrays_to_train(batch):
        return task.collate(split, config, batch, 4)

    def arrays_to_rank(batch):
        contexts, lines = batch
        if config.masking == "release":  # it has no way to share a context
            contexts, lines = np.repeat(contexts, lines.shape[1]), lines.reshape(-1, 1)
        return inputs_of(split, config, contexts, lines, 4), lines >= 0

    def filled(inputs):
        """The same batch with every turn and word there."""
        B, N = inputs["responses"].shape[:2]
        shapes = {"turns": (B, config.max_turns, config.max_words), "responses": (B, N, config.max_words)}
        return {name: rng.integers(3, config.vocabulary_size, shape, dtype=np.int32) for name, shape in shapes.items()}

    def train(inputs, labels):
        model.train_on_batch(inputs, labels)
        return labels.size

    def rank(inputs, real):
        model.predict_on_batch(inputs)
        return real.sum()

    arrays_to, step = (arrays_to_train, train) if what == "training" else (arrays_to_rank, rank)
    batches = [arrays_to(every[i]) for i in chosen[::-1]]  # the costliest first: no core waits for one at the end
    if lengths == "full":
        batches = [(filled(inputs), others) for inputs, others in batches]

    def compute(batch):
        return step(*batch)

    compute(batches[0])  # compiles

    def block():
        started = time.perf_counter()
        pairs = sum(map(compute, batches) if "at once" in without else in_order(compute, batches, model))
        return pairs / (time.perf_counter() - started)

    return block


if __name__ == "__main__":
    cli.run(main)
