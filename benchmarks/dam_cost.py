"""Plots what a training step of DAM costs against the real words of its batch, at the paper's shapes.

python -m benchmarks.dam_cost --data=build/ubuntu-irc --out=benchmarks/dam_cost.png

Each point is a batch of the dataset, chosen at equal distances in the order of their words. Beside them stands the
release's path, which computes all padding, on some of the same batches. The line is the least-squares fit; the legend
gives the fraction of the variance that it explains.
"""

import time

import numpy as np
from absl import flags

from base import cli
from base.files import atomic_file
from benchmarks.turns import build

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset of selection.", required=True)
flags.DEFINE_string("settings", "", "Settings of DAM, field=value,..., such as precision=bfloat16.")
flags.DEFINE_integer("batch_size", 32, "Pairs per step.", lower_bound=1)
flags.DEFINE_integer("points", 24, "Batches that are timed, and an eighth of that for the release.", lower_bound=8)
flags.DEFINE_integer("times", 3, "Steps per batch; the point is their median.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Seed of weights and batches.", lower_bound=0)
flags.DEFINE_string("out", None, "PNG file of the plot.", required=True)


def main():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for label, settings, points, marker in (
        ("the release's path", "compatibility=release", FLAGS.points // 8, "x"),
        ("padding cut and left out", FLAGS.settings, FLAGS.points, "o"),
    ):
        words, seconds = time_batches(",".join(filter(None, ["dam", settings])), points)
        if points == FLAGS.points:
            slope, start = np.polyfit(words, seconds, 1)
            explained = np.corrcoef(words, seconds)[0, 1] ** 2
            axes.axline((0, start), slope=slope, linewidth=1, color="grey")
            label += f" ($R^2$ = {explained:.3f})"
            print(f"{1000 * start:.0f} ms and {1e6 * slope:.0f} microseconds per word; R^2 {explained:.3f}")
        else:
            print(f"{label}: {1000 * np.median(seconds):.0f} ms whatever the words")
        axes.plot(words, seconds, marker, label=label)
    axes.set(xlim=0, ylim=0, xlabel=f"real words in a batch of {FLAGS.batch_size} pairs", ylabel="seconds per step")
    axes.legend()
    with atomic_file(FLAGS.out, "wb") as file:
        figure.savefig(file, format="png", dpi=120)


def time_batches(side, points):
    """Real words and median seconds of `points` batches."""
    model, task, dataset, training = build(side, FLAGS.data, FLAGS.seed)
    split, rng = dataset.splits["train"], np.random.default_rng(FLAGS.seed)
    drawn = task.training_batches(split, model.config, training, FLAGS.batch_size, rng)
    full = [batch for batch in drawn if len(batch[0]) == FLAGS.batch_size]

    def collate(batch):
        return task.collate(split, model.config, batch, 4)

    def words(batch):
        inputs, _ = collate(batch)
        return sum(int(np.count_nonzero(ids)) for ids in inputs.values())

    some = [full[i] for i in rng.choice(len(full), size=min(len(full), 20 * points), replace=False)]
    some = sorted(some, key=words)
    chosen = [some[round(i)] for i in np.linspace(0, len(some) - 1, points)]
    for batch in (*chosen[:: max(1, points // 4)], chosen[-1]):  # shapes differ enough to be compiled as unknown
        model.train_on_batch(*collate(batch))
    seconds = []
    for batch in chosen:
        inputs, labels = collate(batch)
        times = []
        for _ in range(FLAGS.times):
            started = time.perf_counter()
            model.train_on_batch(inputs, labels)
            times.append(time.perf_counter() - started)
        seconds.append(float(np.median(times)))
    return np.array([words(batch) for batch in chosen]), np.array(seconds)


if __name__ == "__main__":
    cli.run(main)
