"""Times BiDAF beside the same network in PyTorch: training, and a question.

    python -m colloquy.benchmarks.peers --data=build/squad \\
        --torch_python=/path/to/venv/bin/python --out=results/benchmarks/peers.json/torch

It adds the record `torch` to the file `peers.json`.

`--torch_python` is a Python that has `torch` and `numpy`. It runs `benchmarks/peers_torch.py`,
which computes the same batches in float32 with as many threads. Sizes of the layers are the
defaults of the model here; the networks differ in that the LSTM of PyTorch has two biases.

"Training" takes steps on batches. "A question" answers batches of a single question; each operation
of ours has one core then, as in serve.py.

The machine must be quiet: PyTorch's threads spin while they wait, and when other work leaves both
on one core, each operation takes 8 ms.
"""

import functools
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
from absl import flags

from colloquy.base import backend, cli, machine
from colloquy.base.files import UserError
from colloquy.benchmarks.records import define_flags, report
from colloquy.benchmarks.turns import SEED, alternate, build, median, ratio, spread

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared SQuAD.", required=True)
flags.DEFINE_string("torch_python", None, "A Python that has torch and numpy.", required=True)
define_flags(blocks=5, steps=3)

BATCH_SIZES = {"training": 60, "question": 1}
CANDIDATES_PER_STEP = 20
"""A batch is chosen from this number of random ones."""
INPUTS = ("words", "characters", "context", "query")
SIZES = (
    "vocabulary_size",
    "embedding_dim",
    "hidden",
    "dropout",
    "characters",
    "character_dim",
    "character_filters",
    "character_width",
)
"""Fields of the config that `benchmarks/peers_torch.py` takes."""


def main():
    if not shutil.which(FLAGS.torch_python):
        raise UserError(f"--torch_python={FLAGS.torch_python} is no program")
    rows = [compare(what, batch_size) for what, batch_size in BATCH_SIZES.items()]
    report(rows, threads=machine.available_cpus())


def compare(what, batch_size):
    """Runs both sides and returns the row of the report."""
    with tempfile.TemporaryDirectory() as directory:
        arrays = str(pathlib.Path(directory) / "batches.npz")
        settings = write_batches(arrays, batch_size)
        examples = FLAGS.steps * batch_size
        sides = {
            "ours": functools.partial(our_block, what, FLAGS.data, arrays, examples),
            "torch": functools.partial(
                torch_block, what, FLAGS.torch_python, arrays, examples, settings
            ),
        }
        blocks = alternate(sides, FLAGS.blocks)
    ours, theirs = blocks["ours"], blocks["torch"]
    return {
        "side": "bidaf",
        "what": what,
        "examples_per_batch": batch_size,
        "milliseconds": 1000 * batch_size / median(ours),
        "torch_milliseconds": 1000 * batch_size / median(theirs),
        "ratio": ratio(ours, theirs),
    }


def write_batches(arrays, batch_size):
    """Writes the batches of a comparison into the file `arrays`.

    A batch is as many consecutive arrays: those of `INPUTS`, then the targets.

    Returns:
        The settings of `benchmarks/peers_torch.py`, JSON.
    """
    model, task, dataset, training = build("bidaf", {}, FLAGS.data)
    stored = []
    for inputs, targets in choose_batches(model.config, task, dataset, training, batch_size):
        stored += [inputs[name] for name in INPUTS]
        stored.append(targets)
    np.savez(arrays, *stored)
    settings = {
        "sizes": {field: getattr(model.config, field) for field in SIZES},
        "rate": training.learning_rate,
        "clip": training.gradient_clip,
        "ema": training.ema,
        "threads": machine.available_cpus(),
        "arrays_per_batch": len(INPUTS) + 1,
    }
    return json.dumps(settings)


def choose_batches(config, task, dataset, training, batch_size):
    """Chooses a training batch for each step, at equal distances in the order of their size."""
    rng = np.random.default_rng(SEED)
    split = dataset.splits["train"]
    sized = training.replace(batch_size=batch_size)
    batches = task.training_batches(split, config, sized, rng)
    count = min(len(batches), CANDIDATES_PER_STEP * FLAGS.steps)
    full = []
    for i in rng.choice(len(batches), size=count, replace=False):
        inputs, targets = task.collate(split, config, batches[i], length_multiple=4)
        if len(targets) == batch_size:
            full.append((inputs, targets))
    full.sort(key=lambda batch: batch[0]["context"].size)
    return spread(full, FLAGS.steps)


def our_block(what, path, arrays, examples):
    """Prepares our side of `alternate`; a block computes each batch once."""
    backend.import_keras()

    from colloquy.engine.parallel import share_cores

    if what == "question":
        share_cores()
    model, *_ = build("bidaf", {}, path)
    batches = read_batches(arrays)

    def block():
        for inputs, targets in batches:
            if what == "training":
                model.train_on_batch(inputs, targets)
            else:
                model.predict_on_batch(inputs)
        return examples

    return block


def read_batches(path):
    """Reads the file of `write_batches`: a list of `(inputs, targets)`."""
    with np.load(path) as stored:
        arrays = list(stored.values())
    per_batch = len(INPUTS) + 1
    batches = []
    for start in range(0, len(arrays), per_batch):
        *inputs, targets = arrays[start : start + per_batch]
        batches.append((dict(zip(INPUTS, inputs, strict=True)), targets))
    return batches


def torch_block(what, python, arrays, examples, settings):
    """Prepares the side of PyTorch, in a process of the Python that has it."""
    script = pathlib.Path(__file__).with_name("peers_torch.py")
    command = [python, script, what, arrays, settings]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_for_line():
        if not process.stdout.readline():
            raise UserError(f"{python}: {script.name} failed; its error is above")

    def block():
        process.stdin.write("block\n")
        process.stdin.flush()
        wait_for_line()
        return examples

    wait_for_line()  # the script is ready
    return block


if __name__ == "__main__":
    cli.run(main)
