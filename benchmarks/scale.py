"""Times preparing, loading and training on synthetic corpora of many lines, each part in a process of its own.

    python -m benchmarks.scale --lines=100000,1000000 --out=results/benchmarks/scale.json
    python -m benchmarks.scale --out=results/benchmarks/scale.json --plot=docs/scale.png

Rows of other sizes stay in the file, so that sizes can be measured one by one. The corpora are of
`benchmarks.scale_corpus`; `--scratch` needs 1 KB of disk per line.
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from absl import flags

from base import cli
from base.files import UserError
from benchmarks.turns import parse_side, side_of_recipe, write_record

FLAGS = flags.FLAGS
flags.DEFINE_list("lines", [], "Lines of the training file, of one corpus after the other.")
flags.DEFINE_string("scratch", None, "Directory for corpora; default: where the system keeps temporary files.")
flags.DEFINE_string("vectors", None, "Passed to prepare.py: word vectors are read, not trained.")
flags.DEFINE_string("recipe", "dam-ubuntu-irc", "Model that trains.")
flags.DEFINE_integer("steps", 20, "Timed steps of training.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Of words, weights and batches.", lower_bound=0)
flags.DEFINE_string("part", None, "What a process of this benchmark is for: load, train.")
flags.DEFINE_string("data", None, "Prepared dataset of a part.")
flags.DEFINE_string("note", None, "What else the machine did meanwhile, for the record.")
flags.DEFINE_string("out", None, "JSON file of the record.")
flags.DEFINE_string("plot", None, "Draws the rows of --out into this file.")

# === One part, in its own process ===


def memory():
    """Megabytes of this process that are not of mapped files, and all of it at its peak."""
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["RssAnon"].split()[0]) / 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load(path):
    """Seconds and megabytes of reading a dataset, and of the order of an epoch's batches."""
    import numpy as np

    from base.config import make_config
    from models.dam import DAMConfig
    from tasks.selection.data import load_dataset
    from tasks.selection.split import training_batches
    from tasks.selection.task import Training

    side, _ = side_of_recipe(FLAGS.recipe)
    given = parse_side(side)[1]
    training = make_config(Training, {name: given[name] for name in given if name in Training.model_fields})
    config = make_config(DAMConfig, {"vocabulary_size": 1, **{n: given[n] for n in given if n.startswith("max_")}})
    before, started, cpu = memory()[0], time.perf_counter(), time.process_time()
    split = load_dataset(path).splits["train"]
    found = {"load_seconds": time.perf_counter() - started, "load_cpu_seconds": time.process_time() - cpu}
    loaded, started = memory()[0], time.perf_counter()
    batches = training_batches(split, config, training, np.random.default_rng((FLAGS.seed, 7)))
    batches[len(batches) // 2]  # where training goes on in the middle of an epoch
    found |= {"load_megabytes": loaded - before, "order_seconds": time.perf_counter() - started}
    return {**found, "order_megabytes": memory()[0] - loaded, "steps_per_epoch": len(batches)}


def train(path):
    """Seconds of steps of training, how much of them waits for data, and peak megabytes."""
    from benchmarks.turns import build
    from data.batching import Epochs
    from engine.devices import OneDevice
    from tasks.selection.split import POOL

    side, _ = side_of_recipe(FLAGS.recipe)
    model, task, dataset, training = build(side, path, FLAGS.seed)
    split = dataset.splits["train"]

    epochs = Epochs(lambda rng: task.training_batches(split, model.config, training, rng), FLAGS.seed)
    device = OneDevice()
    batches = device.batches(
        lambda step: task.collate(split, model.config, epochs.batch(step), 4),
        *(0, 10**9, task.loss_counts, training.batch_size),
    )
    model.optimizer.build(model.trainable_variables)
    step, stream = device.step(model, batches), iter(batches)
    step(next(stream))  # traces
    started, waited = time.perf_counter(), 0.0
    for _ in range(FLAGS.steps):
        asked = time.perf_counter()
        batch = next(stream)
        waited += time.perf_counter() - asked
        float(step(batch))
    seconds = time.perf_counter() - started
    anonymous, peak = memory()
    del stream
    alone, started = batches(), time.process_time()
    for _ in range(POOL):  # what the sizes of a whole pool cost is shared by its batches
        next(alone)
    making = (time.process_time() - started) / POOL
    return {
        "step_milliseconds": 1000 * seconds / FLAGS.steps,
        "wait_fraction": waited / seconds,
        "batch_cpu_milliseconds": 1000 * making,
        "train_megabytes": anonymous,
        "train_peak_megabytes": peak,
    }


# === All parts ===


def process(*command):
    """Runs a command to its end: what it printed, and its seconds, seconds of CPU and peak megabytes."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed:
        child = subprocess.Popen([sys.executable, *command], stdout=printed)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        output = printed.read()
    if child.returncode:
        raise UserError(f"{' '.join(command)} failed; its error stands above")
    return output, {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_megabytes": usage.ru_maxrss / 1024,
    }


def measure(lines, scratch):
    """The row of a corpus of so many lines, once prepared, and again with more after each part."""
    from benchmarks.scale_corpus import write_corpus

    raw, prepared = scratch / "raw", scratch / "prepared"
    write_corpus(raw, lines, FLAGS.seed)
    given = [f"--vectors={FLAGS.vectors}"] if FLAGS.vectors else []
    flags_of_prepare = ("--corpus=smn", "--name=scale", "--storage=arrays", f"--source={raw}", f"--out={prepared}")
    _, found = process("prepare.py", *flags_of_prepare, *given)
    shutil.rmtree(raw)
    row = {"lines": lines, "vectors": "read" if FLAGS.vectors else "trained"}
    facts = json.loads((prepared / "dataset.json").read_text(encoding="utf-8"))
    row |= {"vocabulary": facts["statistics"]["vocabulary"]}
    row |= {name: facts["settings"][name] for name in ("word2vec_epochs", "word2vec_workers")}
    row |= {f"prepare_{name}": value for name, value in found.items()}
    row["prepared_megabytes"] = sum(file.stat().st_size for file in prepared.rglob("*") if file.is_file()) / 2**20
    yield row
    for part in ("load", "train"):
        same = (f"--recipe={FLAGS.recipe}", f"--steps={FLAGS.steps}", f"--seed={FLAGS.seed}")
        output, _ = process("-m", "benchmarks.scale", f"--part={part}", f"--data={prepared}", *same)
        row |= json.loads(output.splitlines()[-1])
        yield row


DRAWN = {
    "seconds": {"prepare_cpu_seconds": "prepare, CPU", "load_cpu_seconds": "load, CPU", "order_seconds": "epoch order"},
    "megabytes": {
        "prepare_peak_megabytes": "prepare, peak",
        "train_megabytes": "training, without mapped files",
        "load_megabytes": "load, without mapped files",
    },
}


def draw(rows, path):
    """Seconds and memory by number of lines, a line for each field and each origin of the word vectors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    for axes, (unit, fields) in zip(figure.subplots(1, 2), DRAWN.items(), strict=True):
        for field, label in fields.items():
            for vectors, marker in (("read", "o"), ("trained", "^")):
                points = [(row["lines"], row[field]) for row in rows if row["vectors"] == vectors and row.get(field)]
                if points:
                    axes.plot(*zip(*points, strict=True), marker=marker, label=f"{label}; vectors {vectors}")
        axes.set(xlabel="lines", ylabel=unit, xscale="log", yscale="log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def key(row):
    """What tells rows apart."""
    return row["lines"], row["vectors"]


def main():
    if FLAGS.part:
        print(json.dumps({"load": load, "train": train}[FLAGS.part](FLAGS.data)))
        return
    out = pathlib.Path(FLAGS.out) if FLAGS.out else None
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"] if out and out.exists() else []
    for lines in map(int, FLAGS.lines):
        with tempfile.TemporaryDirectory(prefix="scale.", dir=FLAGS.scratch) as scratch:
            for row in measure(lines, pathlib.Path(scratch)):
                rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
                rows = [rounded, *(other for other in rows if key(other) != key(row))]
                write_record(out, "scale", rows=sorted(rows, key=key), note=FLAGS.note)
        print(json.dumps(rounded, indent=1))
    if FLAGS.plot:
        draw(rows, FLAGS.plot)


if __name__ == "__main__":
    cli.run(main)
