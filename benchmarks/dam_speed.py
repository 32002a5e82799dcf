"""Times DAM with more and more of its optimizations, beside the release's path.

    python -m colloquy.benchmarks.dam_speed --data=build/ubuntu-irc \\
        --out=results/benchmarks/dam_speed.json/optimizations

It adds the record `optimizations` to the file `dam_speed.json`.

A side is a way to compute DAM. The first one is the path of the release as plain Keras layers
compute it: all padding, and the context encoded anew for each of its candidates. Each further side
has one optimization more. Ratios are to the first side.

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
from colloquy.benchmarks.turns import SEED, alternate, build, median, ratio, spread

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)
define_flags(blocks=4, steps=16)

BATCH_SIZE = 32  # pairs per training step
BFLOAT16 = {"precision": "bfloat16"}
FRESH = {**BFLOAT16, "negatives": "fresh"}


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


COMMON = {
    "the release's path": Side({"compatibility": "release"}, fast_layer_norm=False),
    "padding cut and a context once": Side({}, fast_layer_norm=False, unpads=False),
    "layer normalisation": Side({}, unpads=False),
    "padded words left out": Side({}),
    "bfloat16": Side(BFLOAT16),
}
TRAINED = {
    **COMMON,
    "two candidates per context": Side({**FRESH, "negatives_per_positive": 1}),
    "four candidates per context": Side({**FRESH, "negatives_per_positive": 3}),
}
RANKED = {**COMMON, "several batches at once": Side(BFLOAT16, at_once=True)}


def main():
    training = time_sides(prepare_training, TRAINED, "training, dataset lengths")
    ranking = time_sides(prepare_ranking, RANKED, "ranking, dataset lengths")
    rows = []
    for name in {**TRAINED, **RANKED}:
        # The names are the first column, under this heading.
        rows.append({"pairs per second": name, **training.get(name, {}), **ranking.get(name, {})})
    report(rows)


def time_sides(prepare, sides, column):
    """Returns the columns of each side: its speed, and the ratio to that of the first side."""
    prepared = {}
    for name, side in sides.items():
        prepared[name] = functools.partial(prepare, side, FLAGS.data, FLAGS.steps)
    blocks_by_side = alternate(prepared, FLAGS.blocks)
    first_blocks = blocks_by_side["the release's path"]
    columns = {}
    for name, blocks in blocks_by_side.items():
        columns[name] = {
            column: median(blocks),
            f"{column}: ratio": ratio(blocks, first_blocks),
        }
    return columns


# === In the process of a side ===


def prepare_training(side, path, steps):
    """Prepares a side that trains, for `alternate`; its examples are pairs."""
    model, task, dataset, training = build_side(side, path)
    split = dataset.splits["train"]
    batch_size = BATCH_SIZE
    if training.negatives == "fresh":
        # A context with three negatives counts as four pairs.
        batch_size //= 1 + training.negatives_per_positive
    training = training.replace(batch_size=batch_size)
    batches = task.training_batches(split, model.config, training, np.random.default_rng(SEED))
    arrays = []
    for batch in choose_batches(batches, split, model.config, steps):
        arrays.append(task.collate(split, model.config, batch, 4))

    def block():
        pairs = 0
        for inputs, labels in arrays:
            model.train_on_batch(inputs, labels)
            pairs += np.size(labels)
        return pairs

    return block


def prepare_ranking(side, path, steps):
    """Prepares a side that ranks, for `alternate`; its examples are pairs."""
    backend.import_keras()

    from colloquy.engine.parallel import compile_for_all_sizes, in_order, share_cores
    from colloquy.tasks.selection.ranking_batches import ranking_batches
    from colloquy.tasks.selection.split import inputs_of

    if side.at_once:
        share_cores()
    model, _, dataset, _ = build_side(side, path)
    split = dataset.splits["dev"]
    config = model.config
    # All sides rank the same batches, in which each context has several candidates.
    batches = ranking_batches(split, config.replace(masking="exact"))
    arrays = []
    for contexts, lines in choose_batches(batches, split, config, steps):
        if config.masking == "release":
            # This model cannot share a context, so each candidate gets a copy of its own.
            contexts = np.repeat(contexts, lines.shape[1])
            lines = lines.reshape(-1, 1)
        pairs = np.sum(lines >= 0)  # -1: no candidate
        arrays.append((inputs_of(split, config, contexts, lines, 4), pairs))

    def rank(batch):
        inputs, pairs = batch
        model.predict_on_batch(inputs)
        return pairs

    def block():
        if side.at_once:
            compile_for_all_sizes(model)
            return sum(in_order(rank, arrays))
        return sum(rank(batch) for batch in arrays)

    return block


def build_side(side, path):
    """Builds the model of a side; returns what `build` does."""
    backend.import_keras()

    import keras

    from colloquy.layers import attentive_module

    if not side.fast_layer_norm:
        # The layers of the model, built below, take their class from this module.
        attentive_module.LayerNorm = keras.layers.LayerNormalization
    model, *others = build("dam", side.settings, path)
    if not side.unpads:
        model.avoid_fast_paths()
    return model, *others


def choose_batches(batches, split, config, steps):
    """Chooses `steps` of the batches, at equal distances in the order of their cost.

    A batch begins with its contexts and lines, see `SelectionSplit.collate`. Its cost is the
    product of its padded turns, words of a turn and words of a response. The costliest comes first:
    where several are computed at once, no core waits for it at the end.
    """
    costs = []
    for contexts, lines, *_ in batches:
        sizes = split.sizes(contexts, lines, config.max_turns, config.max_words)
        costs.append(sizes.max(axis=0).prod())
    chosen = spread(np.argsort(costs), steps)
    return [batches[i] for i in reversed(chosen)]


if __name__ == "__main__":
    cli.run(main)
