"""Times preparing, loading and training on synthetic corpora of many lines, each part in a process
of its own.

    python -m colloquy.benchmarks.scale --lines=100000,1000000
    --out=results/benchmarks/scale.json/synthetic

Rows of other sizes stay in the record, so that sizes can be measured one by one. Words are drawn by
Zipf's law, as only their number matters here. `--scratch` needs 1 KB of disk per line.
"""

import json
import operator
import pathlib
import shutil
import tempfile
import time

import numpy as np
from absl import flags

from colloquy.base import cli
from colloquy.benchmarks import turns
from colloquy.tasks import RECIPES

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "lines", None, "Lines of the training file, of one corpus after the other.", required=True
)
flags.DEFINE_string(
    "scratch", None, "Directory for corpora; default: where the system keeps temporary files."
)
flags.DEFINE_string("vectors", None, "Passed to prepare.py: word vectors are read, not trained.")
flags.DEFINE_integer("steps", 20, "Timed steps of training.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Seed of words, weights and batches.", lower_bound=0)
turns.define_record_flags()
RECIPE = RECIPES["dam-ubuntu-irc-two-levels"]
VOCABULARY, EXPONENT = 153_000, 1.0
TURNS, WORDS = 6, 11
DEV_CONTEXTS, DEV_CANDIDATES = 100, 10
BLOCK = 10_000  # contexts that are drawn at once
key = operator.itemgetter("lines", "vectors")  # what identifies a row


def main():
    side = ",".join([RECIPE.model, *(f"{k}={v}" for k, v in RECIPE.settings().items())])
    for lines in map(int, FLAGS.lines):
        row = {"lines": lines, "vectors": "read" if FLAGS.vectors else "trained"}
        with tempfile.TemporaryDirectory(prefix="scale.", dir=FLAGS.scratch) as scratch:
            raw, prepared = pathlib.Path(scratch) / "raw", pathlib.Path(scratch) / "prepared"
            write_corpus(raw, lines, FLAGS.seed)
            row |= turns.in_process(prepare_part, raw, prepared, FLAGS.vectors)
            row |= turns.in_process(load_part, side, prepared, FLAGS.seed)
            row |= turns.in_process(train_part, side, prepared, FLAGS.seed, FLAGS.steps)
        print(json.dumps(row, indent=1))
        if FLAGS.out:
            _, found, name = turns.records()
            others = [
                other for other in found.get(name, {"rows": []})["rows"] if key(other) != key(row)
            ]
            turns.write_record(rows=sorted([row, *others], key=key))


def write_corpus(directory, lines, seed=1):
    """Writes `train.txt` with an even number of `lines`, and `dev.txt`, in the format of
    `data.corpora.smn`.

    A context has 6 turns of 11 words. In train each has two lines, one with a positive and one with
    a negative response, in dev ten.
    """
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    words = np.array([f"w{number}" for number in range(VOCABULARY)], object)
    ends = np.cumsum(1 / np.arange(1, VOCABULARY + 1) ** EXPONENT)
    for name, contexts, candidates in (
        ("train", lines // 2, 2),
        ("dev", DEV_CONTEXTS, DEV_CANDIDATES),
    ):
        with open(directory / f"{name}.txt", "w", encoding="utf-8", newline="\n") as file:
            for start in range(0, contexts, BLOCK):
                shape = min(BLOCK, contexts - start), TURNS + candidates, WORDS
                drawn = words[np.searchsorted(ends, rng.random(shape) * ends[-1])]
                for texts in ([" ".join(text) for text in context] for context in drawn.tolist()):
                    context = "\t".join(texts[:TURNS])
                    file.writelines(
                        f"{int(i == 0)}\t{context}\t{text}\n"
                        for i, text in enumerate(texts[TURNS:])
                    )


# === Each in its own process ===


def prepare_part(raw, prepared, vectors):
    """Seconds and peak memory of preparing a corpus, and its facts."""
    from colloquy.tasks.selection.prepare import Settings, prepare

    settings = Settings(name="scale", storage="arrays", vectors=vectors)
    block = turns.timed(lambda: prepare("smn", raw, prepared, settings) or 0)
    shutil.rmtree(raw)
    facts = json.loads((prepared / "dataset.json").read_text(encoding="utf-8"))
    return {
        "vocabulary": facts["statistics"]["vocabulary"],
        **{name: facts["settings"][name] for name in ("word2vec_epochs", "word2vec_workers")},
        "prepare_seconds": block.seconds,
        "prepare_cpu_seconds": block.cpu_seconds,
        "prepare_peak_megabytes": 1024 * block.gigabytes,
        "prepared_megabytes": sum(
            file.stat().st_size for file in prepared.rglob("*") if file.is_file()
        )
        / 2**20,
    }


def load_part(side, prepared, seed):
    """Seconds and megabytes of reading a dataset, and of the order of an epoch's batches."""
    from colloquy.models import MODELS
    from colloquy.tasks import TASKS

    name, settings = turns.parse_side(side)
    task = TASKS[MODELS[name].task]
    before, started, cpu = turns.memory("RssAnon"), time.perf_counter(), time.process_time()
    dataset = task.load_dataset(prepared)
    found = {
        "load_seconds": time.perf_counter() - started,
        "load_cpu_seconds": time.process_time() - cpu,
    }
    model_settings, training = task.split_settings(MODELS[name], settings)
    config = task.build_config(MODELS[name], dataset, model_settings)
    loaded, started = turns.memory("RssAnon"), time.perf_counter()
    batches = task.training_batches(
        dataset.splits["train"], config, training, np.random.default_rng((seed, 7))
    )
    batches[len(batches) // 2]  # where a resumed training may start
    found |= {"load_megabytes": loaded - before, "order_seconds": time.perf_counter() - started}
    return {
        **found,
        "order_megabytes": turns.memory("RssAnon") - loaded,
        "steps_per_epoch": len(batches),
    }


def train_part(side, prepared, seed, steps):
    """Seconds per step of training, the fraction that waits for data, and megabytes."""
    from colloquy.tasks.selection.split import POOL

    *_, make_arrays, stream, train_on = turns.open_training(side, prepared, seed)
    train_on(next(stream))  # traces
    started, waited = time.perf_counter(), 0.0
    for _ in range(steps):
        asked = time.perf_counter()
        batch = next(stream)
        waited += time.perf_counter() - asked
        float(train_on(batch)["loss"])
    seconds = time.perf_counter() - started
    found = {"step_milliseconds": 1000 * seconds / steps, "wait_fraction": waited / seconds}
    found |= {
        "train_megabytes": turns.memory("RssAnon"),
        "train_peak_megabytes": turns.memory("VmHWM"),
    }
    del stream
    started = time.process_time()
    for step in range(POOL):  # its batches share the cost of its sizes
        make_arrays(step)
    return {**found, "batch_cpu_milliseconds": 1000 * (time.process_time() - started) / POOL}


if __name__ == "__main__":
    cli.run(main)
