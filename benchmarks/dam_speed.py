"""Times DAM with more and more of its optimizations, beside the release's path.

    python -m colloquy.benchmarks.dam_speed --data=build/ubuntu-irc \\
        --out=results/benchmarks/dam_speed.json/optimizations

It adds the record `optimizations` to the file `dam_speed.json`.

The first side is the path of the release as plain Keras layers compute it: all padding, and a
context again for each of its candidates. Each further side has one optimization more. Ratios are to
the first side.

Training takes batches of train; ranking takes dev's contexts as evaluate.py ranks them. Batches are
chosen at equal distances in the order of their size and made before the time counts, the same for
all sides and blocks.
"""

import dataclasses
import functools

import numpy as np
from absl import flags

from colloquy.base import backend, cli
from colloquy.benchmarks.records import define_flags, report
from colloquy.benchmarks.turns import alternate, build, median, ratio, spread

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)

BATCH_SIZE = 32  # pairs per training step
HALF = {"precision": "bfloat16"}
FRESH = {**HALF, "negatives": "fresh"}


@dataclasses.dataclass(frozen=True)
class Side:
    """A way to compute DAM."""

    settings: dict
    """Settings of the model and of its training, as `--set` takes them."""
    fast_layer_norm: bool = True
    """Layer normalization is ours; otherwise Keras's."""
    unpads: bool = True
    """Padded words of a batch are left out of the computation, if the masking allows it."""
    at_once: bool = False
    """Several batches are ranked at once, a core for each."""
    trains: bool = True
    """The side is timed in training."""
    ranks: bool = True
    """The side is timed in ranking."""


SIDES = {
    "the release's path": Side({"compatibility": "release"}, fast_layer_norm=False),
    "padding cut and a context once": Side({}, fast_layer_norm=False, unpads=False),
    "layer normalisation": Side({}, unpads=False),
    "padded words left out": Side({}),
    "bfloat16": Side(HALF),
    "two candidates per context": Side({**FRESH, "negatives_per_positive": 1}, ranks=False),
    "four candidates per context": Side({**FRESH, "negatives_per_positive": 3}, ranks=False),
    "several batches at once": Side(HALF, at_once=True, trains=False),
}
flags.DEFINE_multi_enum(
    "side", list(SIDES), list(SIDES), "The sides, compared with the first; may be repeated."
)
define_flags(blocks=4, steps=16)


def main():
    rows = {name: {"pairs per second": name} for name in FLAGS.side}
    training_sides = [name for name in FLAGS.side if SIDES[name].trains]
    add_columns(rows, "training, dataset lengths", prepare_training, training_sides)
    ranking_sides = [name for name in FLAGS.side if SIDES[name].ranks]
    add_columns(rows, "ranking, dataset lengths", prepare_ranking, ranking_sides)
    report(list(rows.values()))


def add_columns(rows, column, prepare, names):
    """Times the sides with these names, and adds their speed and its ratio to their rows."""
    sides = {}
    for name in names:
        sides[name] = functools.partial(prepare, SIDES[name], FLAGS.data, FLAGS.steps, FLAGS.seed)
    blocks_by_side = alternate(sides, FLAGS.blocks)
    for name, blocks in blocks_by_side.items():
        rows[name][column] = median(blocks)
        rows[name][f"{column}: ratio"] = ratio(blocks, blocks_by_side[names[0]])


# === In the process of a side ===


def prepare_training(side, path, steps, seed):
    """Prepares a side that trains, for `alternate`; its examples are pairs."""
    model, task, dataset, training = build_side(side, path, seed)
    split = dataset.splits["train"]
    rng = np.random.default_rng(seed)
    batches = training_arrays(task, split, model.config, training, steps, rng)

    def block():
        pairs = 0
        for inputs, labels in batches:
            model.train_on_batch(inputs, labels)
            pairs += np.size(labels)
        return pairs

    return block


def prepare_ranking(side, path, steps, seed):
    """Prepares a side that ranks, for `alternate`; its examples are pairs."""
    backend.import_keras()

    from colloquy.engine.parallel import compile_for_all_sizes, in_order, share_cores

    if side.at_once:
        share_cores()
    model, _, dataset, _ = build_side(side, path, seed)
    batches = ranking_arrays(dataset.splits["dev"], model.config, steps)

    def rank(batch):
        inputs, is_real = batch
        model.predict_on_batch(inputs)
        return np.sum(is_real)

    def block():
        if side.at_once:
            compile_for_all_sizes(model)
            return sum(in_order(rank, batches))
        return sum(rank(batch) for batch in batches)

    return block


def build_side(side, path, seed):
    """Builds the model of a side; returns what `build` does."""
    backend.import_keras()

    import keras

    from colloquy.layers import attentive_module

    if not side.fast_layer_norm:
        # The layers of the model, built below, take their class from this module.
        attentive_module.LayerNorm = keras.layers.LayerNormalization
    built = build("dam", side.settings, path, seed)
    if not side.unpads:
        model, *_ = built
        model.avoid_fast_paths()
    return built


def training_arrays(task, split, config, training, steps, rng):
    """Returns the arrays of a block's batches.

    A batch has `BATCH_SIZE` pairs: a context with three fresh negatives counts as four.
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

    # All sides rank the same batches, in which each context has several candidates.
    batches = ranking_batches(split, config.replace(masking="exact"))
    arrays = []
    for contexts, lines in choose_batches(batches, split, config, steps):
        if config.masking == "release":
            # This model cannot share a context, so each candidate gets a copy of its own.
            contexts = np.repeat(contexts, lines.shape[1])
            lines = lines.reshape(-1, 1)
        arrays.append((inputs_of(split, config, contexts, lines, 4), lines >= 0))
    return arrays


def choose_batches(batches, split, config, steps):
    """Chooses `steps` of the batches, at equal distances in the order of their cost.

    The costliest comes first: where several are computed at once, no core waits for it at the end.
    """
    costs = []
    for contexts, lines, *_ in batches:
        sizes = split.sizes(contexts, lines, config.max_turns, config.max_words)
        costs.append(sizes.max(axis=0).prod())
    chosen = spread(np.argsort(costs), steps)
    return [batches[i] for i in reversed(chosen)]


if __name__ == "__main__":
    cli.run(main)
