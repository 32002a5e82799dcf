"""Times a step of a table of word vectors: exact Adam beside lazy Adam, at the size of a vocabulary.

python -m benchmarks.lazy_adam --words=434512 --out=results/benchmarks/lazy_adam.json

DAM's release has 434,512 words for Ubuntu V1. A step looks words up, sums their squares and updates the table, so it
measures what a vocabulary costs and nothing else. Words are drawn so that the `k`-th occurs in proportion to `1 / k`.
Medians over blocks; the sides compute in turn, see `benchmarks.turns`.
"""

import time

from absl import flags

from base import cli
from benchmarks.turns import define_flags, in_turn, write_record

FLAGS = flags.FLAGS
flags.DEFINE_integer("words", 434_512, "Rows of the table.", lower_bound=2)
flags.DEFINE_integer("dimension", 200, "Dimension of its vectors.", lower_bound=1)
flags.DEFINE_integer("places", 14_400, "Words per step: 32 pairs of 9 x 50 words.", lower_bound=1)
define_flags(blocks=5, steps=5)


def main():
    shape = FLAGS.words, FLAGS.dimension, FLAGS.places, FLAGS.steps, FLAGS.seed
    found = in_turn([(make_block, (lazy, *shape)) for lazy in (False, True)], FLAGS.blocks)
    rows = []
    for side, timed in zip(("exact Adam", "lazy Adam"), found, strict=True):
        row = {"side": side, "milliseconds": 1000 / timed.speed, "ratio": timed.ratio(found[0])}
        row["gigabytes"] = timed.gigabytes
        print("{side}: {milliseconds:.1f} ms per step, {ratio:.1f} times the first, {gigabytes:.2f} GB".format(**row))
        rows.append(row)
    write_record(FLAGS.out, "lazy_adam", rows=rows, note=FLAGS.note)


def make_block(lazy, words, dimension, places, steps, seed):
    """In the process of a side: what does a block of steps and returns the steps per second."""
    import keras
    import numpy as np

    from engine.optimizers import LazyAdam
    from layers.word_embedding import WordEmbedding

    model = keras.Sequential(
        [keras.Input((None,), dtype="int32"), WordEmbedding(words, dimension, sparse_gradient=lazy)]
    )
    model.compile(LazyAdam(1e-3, clipvalue=1.0), loss=lambda _, y: keras.ops.sum(keras.ops.square(y), axis=(1, 2)))
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, words + 1)
    frequency /= frequency.sum()
    label = np.zeros((1, 1), "float32")

    def block():
        drawn = rng.choice(words, size=(steps, 1, places), p=frequency)
        started = time.perf_counter()
        for ids in drawn:
            model.train_on_batch(ids, label)
        return steps / (time.perf_counter() - started)

    return block


if __name__ == "__main__":
    cli.run(main)
