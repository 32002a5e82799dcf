"""Times DAM: its optimizations beside the path of its release, or `base.runtime` beside TensorFlow's own choices.

python -m benchmarks.dam_speed --data=build/ubuntu-irc --out=results/benchmarks/dam_speed.json
python -m benchmarks.dam_speed --compare=runtime --data=build/ubuntu-irc --sample=build/demo/prepared

optimizations: the first side is the path of the release as plain Keras layers compute it: all padding, and a context
again for each of its candidates. Each further side has one gain more; with word vectors moved lazily it is not quite
Adam. Lengths are the dataset's, or full: no padding at all. Ratios are to the first side.
runtime: `AVX2` shows a CPU without AVX-512 on one that has it: oneDNN is kept to AVX2, and where TensorFlow
would leave oneDNN off there, it is told so. Ratios say how many times as fast `base.runtime` is. `demo` trains the
recipe of `make demo`.

Training takes batches of train; ranking takes dev's contexts as evaluate.py ranks them. Batches are chosen at equal
distances in the order of their size and made before the time counts, the same for all sides and blocks.
"""

import itertools
from typing import NamedTuple

import numpy as np
from absl import flags

from base import cli
from base.files import UserError
from benchmarks.turns import alternate, build, define_flags, median, ratio, report, side_of_recipe, training_block

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)
flags.DEFINE_string("sample", None, "With --compare=runtime: the dataset that make demo prepares; default: no demo.")
flags.DEFINE_enum("compare", "optimizations", ["optimizations", "runtime"], "What is compared.")
flags.DEFINE_list("sides", None, "Some of the sides, by name; the first is what the others are compared with.")
flags.DEFINE_multi_enum("what", ["training", "ranking"], ["training", "ranking"], "What is timed; may be repeated.")
flags.DEFINE_multi_enum("lengths", ["dataset", "full"], ["dataset", "full"], "With optimizations; may be repeated.")
flags.DEFINE_multi_enum("instructions", ["AVX2", "native"], ["AVX2", "native"], "The best that oneDNN may use.")
flags.DEFINE_string("settings", "", "field=value,... for all sides, as levels=2.")
flags.DEFINE_integer("batch_size", 32, "Pairs per training step.", lower_bound=4)
define_flags(blocks=4, steps=16)


class Setup(NamedTuple):
    """How a side differs from DAM as it is."""

    settings: str = ""
    without: tuple = ()
    """`layer_norm`: it has Keras's layer normalisation. `unpadding`: padded words of a batch are computed. `at_once`:
    batches are ranked one after the other. `training`, `ranking`: it has nothing new there and is left out."""
    environment: tuple = ()


RELEASE = ("compatibility=release", ("layer_norm", "at_once"))
LAZY = "precision=bfloat16,lazy_embedding=true"
OPTIMIZATIONS = {
    "the release's path": Setup(*RELEASE),
    "padding cut and a context once": Setup("", ("layer_norm", "unpadding", "at_once")),
    "layer normalisation": Setup("", ("unpadding", "at_once")),
    "padded words left out": Setup("", ("at_once",)),
    "bfloat16": Setup("precision=bfloat16", ("at_once",)),
    "word vectors lazily": Setup(LAZY, ("ranking",)),
    "two candidates per context": Setup(f"{LAZY},negatives=fresh,negatives_per_positive=1", ("ranking",)),
    "four candidates per context": Setup(f"{LAZY},negatives=fresh,negatives_per_positive=3", ("ranking",)),
    "several batches at once": Setup("precision=bfloat16", ("training",)),
}
ONEDNN_OFF, MALLOC = ("TF_ENABLE_ONEDNN_OPTS", "0"), ("TF_CPU_ALLOCATOR_USE_BFC", "false")
SIDES = {
    "optimizations": OPTIMIZATIONS,
    "runtime": {
        "base.runtime": Setup(),
        "oneDNN off, malloc": Setup(environment=(ONEDNN_OFF, MALLOC)),
        "the release's path, oneDNN on": Setup(*RELEASE),
    },
}


def main():
    known = SIDES[FLAGS.compare]
    unknown = [name for name in FLAGS.sides or () if name not in known]
    if unknown:
        raise UserError(f"--sides expects some of {'; '.join(known)}. Received: {unknown[0]}")
    setups = {name: known[name] for name in FLAGS.sides or known}
    rows = compare_optimizations(setups) if FLAGS.compare == "optimizations" else compare_runtimes(setups)
    report("dam_speed", rows)


def compare_optimizations(setups):
    """A row per side, with columns for each kind of work and lengths."""
    rows = {name: {"pairs per second": name} for name in setups}
    for lengths, what in itertools.product(FLAGS.lengths, FLAGS.what):
        column = f"{what}, {lengths} lengths"
        first, *_ = found = time_sides({n: s for n, s in setups.items() if what not in s.without}, what, lengths)
        for name, blocks in found.items():
            rows[name][column] = median(blocks)
            rows[name][f"{column}: ratio"] = ratio(blocks, found[first])
            rows[name][f"{column}: GB"] = blocks[-1].gigabytes
    return list(rows.values())


def compare_runtimes(setups):
    """A row per kind of instructions, kind of work and side."""
    rows = []
    for instructions, what in itertools.product(FLAGS.instructions, [*FLAGS.what, *["demo"] * bool(FLAGS.sample)]):
        limit = () if instructions == "native" else (("ONEDNN_MAX_CPU_ISA", instructions),)
        limited = {name: setup._replace(environment=(*limit, *setup.environment)) for name, setup in setups.items()}
        if what == "demo":
            limited = {name: setup for name, setup in limited.items() if not setup.settings}
        first, *_ = found = time_sides(limited, what, "dataset")
        for name, blocks in found.items():
            row = {"instructions": instructions, "what": what, "side": name}
            row |= {field: median(blocks, field) for field in ("per_second", "per_cpu_second", "page_faults")}
            row |= {"gigabytes": blocks[-1].gigabytes, "ratio": ratio(found[first], blocks)}
            rows.append({**row, "ratio_of_cpu": ratio(found[first], blocks, "per_cpu_second")})
    return rows


def time_sides(setups, what, lengths):
    """The blocks of each side for one kind of work."""
    if what == "demo":
        arguments = side_of_recipe("dam-sample"), FLAGS.sample, None, FLAGS.steps, FLAGS.seed
        sides = {name: (training_block, arguments, dict(setup.environment)) for name, setup in setups.items()}
    else:
        options = what, lengths, FLAGS.data, FLAGS.batch_size, FLAGS.steps, FLAGS.seed
        sides = {}
        for name, setup in setups.items():
            side = ",".join(filter(None, ["dam", FLAGS.settings, setup.settings]))
            sides[name] = dam_block, (side, setup.without, *options), dict(setup.environment)
    return alternate(sides, FLAGS.blocks)


# === In the process of a side ===


def dam_block(side, without, what, lengths, path, batch_size, steps, seed):
    """A side of `alternate`: trains or ranks, and counts pairs."""
    import keras

    from engine.parallel import in_order, share_cores
    from layers import attentive_module

    several = what == "ranking" and "at_once" not in without
    if several:
        share_cores()
    if "layer_norm" in without:
        attentive_module.LayerNorm = keras.layers.LayerNormalization
    model, task, dataset, training = build(side, path, seed)
    model.unpad = model.unpad and "unpadding" not in without
    rng = np.random.default_rng(seed)
    if what == "training":
        batches = training_arrays(task, dataset.splits["train"], model.config, training, batch_size, steps, rng)
    else:
        batches = ranking_arrays(dataset.splits["dev"], model.config, lengths, steps)
    if lengths == "full":
        batches = [(fill(inputs, model.config, rng), others) for inputs, others in batches]

    def compute(batch):
        inputs, others = batch  # labels; or which candidates are real
        if what == "training":
            model.train_on_batch(inputs, others)
        else:
            model.predict_on_batch(inputs)
        return np.size(others) if what == "training" else np.sum(others)

    def block():
        return sum(in_order(compute, batches, model) if several else map(compute, batches))

    return block


def training_arrays(task, split, config, training, batch_size, steps, rng):
    """Arrays of a block's batches; a batch has `batch_size` pairs, however many share a context."""
    if training.negatives == "fresh":
        batch_size //= 1 + training.negatives_per_positive
    every = task.training_batches(split, config, training.replace(batch_size=batch_size), rng)
    return [task.collate(split, config, batch, 4) for batch in spread(every, split, config, steps)]


def ranking_arrays(split, config, lengths, steps):
    """Arrays of a block's batches, and which of their candidates are real."""
    from tasks.selection.scoring import ranking_batches
    from tasks.selection.split import inputs_of

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
    """`steps` of some batches, from the costliest down, so that no core waits for one at the end."""
    sizes = [split.sizes(contexts, lines, config.max_turns, config.max_words) for contexts, lines, *_ in every]
    order = np.argsort([size.max(axis=0).prod() for size in sizes])
    return [every[i] for i in order[((np.arange(steps) + 0.5) / steps * len(every)).astype(int)][::-1]]


def fill(inputs, config, rng):
    """A batch of the same number of pairs with every turn and word there."""
    B, N = inputs["responses"].shape[:2]
    shapes = {"turns": (B, config.max_turns, config.max_words), "responses": (B, N, config.max_words)}
    return {name: rng.integers(3, config.vocabulary_size, shape, dtype="int32") for name, shape in shapes.items()}


if __name__ == "__main__":
    cli.run(main)
