"""Times DAM with more and more of its optimizations, beside the release's path.

    python -m colloquy.benchmarks.dam_speed --data=build/ubuntu-irc \\
        --out=results/benchmarks/dam_speed.json/optimizations

The first side is the path of the release as plain Keras layers compute it: all padding, and a
context again for each of its candidates. Each further side has one optimization more. Ratios are to
the first side.

Training takes batches of train; ranking takes dev's contexts as evaluate.py ranks them. Batches are
chosen at equal distances in the order of their size and made before the time counts, the same for
all sides and blocks.
"""

import numpy as np
from absl import flags

from colloquy.base import cli, runtime
from colloquy.benchmarks.turns import alternate, build, define_flags, median, ratio, report, spread

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)

BATCH_SIZE = 32  # pairs per training step
HALF = {"precision": "bfloat16"}
FRESH = {**HALF, "negatives": "fresh"}
SIDES = {
    "the release's path": ({"compatibility": "release"}, "layer_norm at_once"),
    "padding cut and a context once": ({}, "layer_norm unpadding at_once"),
    "layer normalisation": ({}, "unpadding at_once"),
    "padded words left out": ({}, "at_once"),
    "bfloat16": (HALF, "at_once"),
    "two candidates per context": ({**FRESH, "negatives_per_positive": 1}, "ranking"),
    "four candidates per context": ({**FRESH, "negatives_per_positive": 3}, "ranking"),
    "several batches at once": (HALF, "training"),
}
"""Settings of each side, and what it lacks:

- `layer_norm`: it has Keras's layer normalisation.
- `unpadding`: padded words of a batch are computed.
- `at_once`: batches are ranked one after the other.
- `training` or `ranking`: it has nothing new there and is left out.
"""
flags.DEFINE_multi_enum(
    "side", list(SIDES), list(SIDES), "The sides, compared with the first; may be repeated."
)
define_flags(blocks=4, steps=16)


def main():
    rows = {name: {"pairs per second": name} for name in FLAGS.side}
    for what in ("training", "ranking"):
        column = f"{what}, dataset lengths"
        blocks_by_side = measure(what)
        first = next(iter(blocks_by_side.values()))
        for name, blocks in blocks_by_side.items():
            rows[name][column] = median(blocks)
            rows[name][f"{column}: ratio"] = ratio(blocks, first)
    report(list(rows.values()))


def measure(what):
    """Runs the sides that have something new in `what`, and returns `{name: blocks}`."""
    options = (what, FLAGS.data, FLAGS.steps, FLAGS.seed)
    sides = {}
    for name in FLAGS.side:
        settings, lacking = SIDES[name]
        if what not in lacking:
            sides[name] = (dam_block, (settings, lacking, *options))
    return alternate(sides, FLAGS.blocks)


# === In the process of a side ===


def dam_block(settings, lacking, what, path, steps, seed):
    """Prepares a side of `alternate`, which trains or ranks; its examples are pairs."""
    runtime.import_keras()

    import keras

    from colloquy.engine.parallel import compile_for_all_sizes, in_order, share_cores
    from colloquy.layers import attentive_module

    # === What the side lacks ===
    is_at_once = what == "ranking" and "at_once" not in lacking
    if is_at_once:
        share_cores()
    if "layer_norm" in lacking:
        attentive_module.LayerNorm = keras.layers.LayerNormalization
    model, task, dataset, training = build("dam", settings, path, seed)
    if "unpadding" in lacking:
        model.avoid_fast_paths()

    # === Its batches ===
    config = model.config
    rng = np.random.default_rng(seed)
    if what == "training":
        split = dataset.splits["train"]
        batches = training_arrays(task, split, config, training, steps, rng)
    else:
        batches = ranking_arrays(dataset.splits["dev"], config, steps)

    def train(batch):
        inputs, labels = batch
        model.train_on_batch(inputs, labels)
        return np.size(labels)

    def rank(batch):
        inputs, is_real = batch
        model.predict_on_batch(inputs)
        return np.sum(is_real)

    def block():
        if is_at_once:
            compile_for_all_sizes(model)
            return sum(in_order(rank, batches))
        compute = train if what == "training" else rank
        return sum(compute(batch) for batch in batches)

    return block


def training_arrays(task, split, config, training, steps, rng):
    """Returns the arrays of a block's batches.

    A batch has `BATCH_SIZE` pairs, whether or not they share contexts.
    """
    batch_size = BATCH_SIZE
    if training.negatives == "fresh":
        batch_size //= 1 + training.negatives_per_positive
    training = training.replace(batch_size=batch_size)
    batches = task.training_batches(split, config, training, rng)
    return [
        task.collate(split, config, batch, 4)
        for batch in choose_batches(batches, split, config, steps)
    ]


def ranking_arrays(split, config, steps):
    """Returns the arrays of a block's batches, and which of their candidates are real."""
    from colloquy.tasks.selection.ranking_batches import ranking_batches
    from colloquy.tasks.selection.split import inputs_of

    batches = ranking_batches(split, config.replace(masking="exact"))
    arrays = []
    for contexts, lines in choose_batches(batches, split, config, steps):
        if config.masking == "release":  # it cannot share a context
            contexts = np.repeat(contexts, lines.shape[1])
            lines = lines.reshape(-1, 1)
        arrays.append((inputs_of(split, config, contexts, lines, 4), lines >= 0))
    return arrays


def choose_batches(batches, split, config, steps):
    """Chooses `steps` of the batches, at equal distances in the order of their cost.

    The costliest comes first, so that no core waits at the end.
    """
    costs = []
    for contexts, lines, *_ in batches:
        sizes = split.sizes(contexts, lines, config.max_turns, config.max_words)
        costs.append(sizes.max(axis=0).prod())
    chosen = spread(np.argsort(costs), steps)
    return [batches[i] for i in reversed(chosen)]


if __name__ == "__main__":
    cli.run(main)
