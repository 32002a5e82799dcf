"""Times DAM with more and more of its optimizations, beside the release's path.

python -m colloquy.benchmarks.dam_speed --data=build/ubuntu-irc
--out=results/benchmarks/dam_speed.json/optimizations

The first side is the path of the release as plain Keras layers compute it: all padding, and a
context again for each of its candidates. Each further side has one optimization more; with word
vectors moved lazily it is not quite Adam. Lengths are the dataset's, or full: no padding at all.
Ratios are to the first side.

Training takes batches of train; ranking takes dev's contexts as evaluate.py ranks them. Batches are
chosen at equal distances in the order of their size and made before the time counts, the same for
all sides and blocks.
"""

import itertools

import numpy as np
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError
from colloquy.benchmarks.turns import alternate, build, define_flags, median, ratio, report

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)
flags.DEFINE_list(
    "sides", None, "Some of the sides, by name; the others are compared with the first."
)
flags.DEFINE_multi_enum(
    "what", ["training", "ranking"], ["training", "ranking"], "Work to time; may be repeated."
)
flags.DEFINE_multi_enum(
    "lengths", ["dataset", "full"], ["dataset", "full"], "Lengths; may be repeated."
)
flags.DEFINE_integer("batch_size", 32, "Pairs per training step.", lower_bound=4)
define_flags(blocks=4, steps=16)


LAZY = "precision=bfloat16,lazy_embedding=true"
SIDES = {
    "the release's path": ("compatibility=release", "layer_norm at_once"),
    "padding cut and a context once": ("", "layer_norm unpadding at_once"),
    "layer normalisation": ("", "unpadding at_once"),
    "padded words left out": ("", "at_once"),
    "bfloat16": ("precision=bfloat16", "at_once"),
    "word vectors lazily": (LAZY, "ranking"),
    "two candidates per context": (f"{LAZY},negatives=fresh,negatives_per_positive=1", "ranking"),
    "four candidates per context": (f"{LAZY},negatives=fresh,negatives_per_positive=3", "ranking"),
    "several batches at once": ("precision=bfloat16", "training"),
}
"""Settings of each side, and what it lacks: `layer_norm`, it has Keras's layer normalisation;
`unpadding`, padded words of a batch are computed; `at_once`, batches are ranked one after the
other; `training` or `ranking`, it has nothing new there and is left out."""


def main():
    names = FLAGS.sides or list(SIDES)
    if unknown := sorted(set(names) - set(SIDES)):
        raise UserError(f"--sides expects some of {'; '.join(SIDES)}. Received: {unknown[0]}")
    rows = {name: {"pairs per second": name} for name in names}
    for lengths, what in itertools.product(FLAGS.lengths, FLAGS.what):
        options, sides = (what, lengths, FLAGS.data, FLAGS.batch_size, FLAGS.steps, FLAGS.seed), {}
        for name in names:
            settings, without = SIDES[name]
            if what not in without:
                sides[name] = dam_block, (f"dam,{settings}".rstrip(","), without, *options)
        found, column = alternate(sides, FLAGS.blocks), f"{what}, {lengths} lengths"
        first = next(iter(found.values()))
        for name, blocks in found.items():
            rows[name] |= {column: median(blocks), f"{column}: ratio": ratio(blocks, first)}
            rows[name][f"{column}: GB"] = blocks[-1].gigabytes
    report(list(rows.values()))


# === In the process of a side ===


def dam_block(side, without, what, lengths, path, batch_size, steps, seed):
    """A side of `alternate`: trains or ranks, and counts pairs."""
    runtime.import_keras()

    import keras

    from colloquy.engine.parallel import in_order, share_cores
    from colloquy.layers import attentive_module

    several = what == "ranking" and "at_once" not in without
    if several:
        share_cores()
    if "layer_norm" in without:
        attentive_module.LayerNorm = keras.layers.LayerNormalization
    model, task, dataset, training = build(side, path, seed)
    if "unpadding" in without:
        model.avoid_fast_paths()
    rng = np.random.default_rng(seed)
    if what == "training":
        batches = training_arrays(
            task, dataset.splits["train"], model.config, training, batch_size, steps, rng
        )
    else:
        batches = ranking_arrays(dataset.splits["dev"], model.config, lengths, steps)
    if lengths == "full":
        batches = [(fill(inputs, model.config, rng), others) for inputs, others in batches]

    def compute(batch):
        inputs, others = batch  # labels; or which candidates are real
        if what == "training":
            model.train_on_batch(inputs, others)
            return np.size(others)
        model.predict_on_batch(inputs)
        return np.sum(others)

    return lambda: sum(in_order(compute, batches, model) if several else map(compute, batches))


def training_arrays(task, split, config, training, batch_size, steps, rng):
    """Arrays of a block's batches; a batch has `batch_size` pairs, whether or not they share
    contexts.
    """
    if training.negatives == "fresh":
        batch_size //= 1 + training.negatives_per_positive
    every = task.training_batches(split, config, training.replace(batch_size=batch_size), rng)
    return [task.collate(split, config, batch, 4) for batch in spread(every, split, config, steps)]


def ranking_arrays(split, config, lengths, steps):
    """Arrays of a block's batches, and which of their candidates are real."""
    from colloquy.tasks.selection.scoring import ranking_batches
    from colloquy.tasks.selection.split import inputs_of

    if lengths == "dataset":
        every = ranking_batches(split, config.replace(masking="exact"))
    else:  # ten candidates in a row, as where their lengths do not differ
        every = [(np.arange(8), np.arange(80).reshape(8, 10))]
    found = []
    for contexts, lines in spread(every, split, config, steps):
        if config.masking == "release":  # it has no way to share a context
            contexts, lines = np.repeat(contexts, lines.shape[1]), lines.reshape(-1, 1)
        found.append((inputs_of(split, config, contexts, lines, 4), lines >= 0))
    return found


def spread(every, split, config, steps):
    """`steps` of the batches, the costliest first, so that no core waits at the end."""
    sizes = [
        split.sizes(contexts, lines, config.max_turns, config.max_words)
        for contexts, lines, *_ in every
    ]
    order = np.argsort([size.max(axis=0).prod() for size in sizes])
    return [
        every[i] for i in order[((np.arange(steps) + 0.5) / steps * len(every)).astype(int)][::-1]
    ]


def fill(inputs, config, rng):
    """A batch of the same number of pairs without padding."""
    B, N = inputs["responses"].shape[:2]
    shapes = {
        "turns": (B, config.max_turns, config.max_words),
        "responses": (B, N, config.max_words),
    }
    return {
        name: rng.integers(3, config.vocabulary_size, shape, dtype="int32")
        for name, shape in shapes.items()
    }


if __name__ == "__main__":
    cli.run(main)
