"""Times BiDAF and seq2seq beside the same networks in PyTorch: training, a question, beam search.

    python -m colloquy.benchmarks.peers --squad=build/squad --chat=build/dailydialog \\
        --torch_python=/path/to/venv/bin/python --out=results/benchmarks/peers.json/torch

`--torch_python` is a Python that has `torch` and `numpy`. There `benchmarks/peers_torch.py`
computes equal batches in float32 with as many threads. Sizes of the layers are the defaults of the
models here; the networks differ in that the LSTM and GRU of PyTorch have two biases. A question is
one on its own, after its passage; each operation of ours has one core then, as in serve.py. Beam
search keeps 5 replies of up to 30 words.

The machine must be quiet: PyTorch's threads spin while they wait, and when other work leaves both
on one core, each operation takes 8 ms.
"""

import dataclasses
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
from absl import flags

from colloquy.base import cli, runtime
from colloquy.base.files import UserError
from colloquy.benchmarks.turns import (
    Block,
    alternate,
    build,
    configure,
    define_flags,
    median,
    ratio,
    report,
)

FLAGS = flags.FLAGS
flags.DEFINE_string("squad", None, "Prepared SQuAD; without it BiDAF is left out.")
flags.DEFINE_string("chat", None, "Prepared conversations; without them seq2seq is left out.")
flags.DEFINE_string("torch_python", None, "A Python that has torch and numpy.", required=True)
define_flags(blocks=5, steps=3)
BATCHES_TO_CHOOSE_FROM = 20  # per step


@dataclasses.dataclass(frozen=True)
class Network:
    """A network that both sides have."""

    name: str
    side: str  # of `benchmarks.turns`
    batch_sizes: dict  # examples per batch by kind of work
    inputs: tuple
    longest_input: str
    sizes: tuple  # fields of its config that `benchmarks/peers_torch.py` takes


SIZES = ("vocabulary_size", "embedding_dim", "hidden", "dropout")
CHARACTER_SIZES = ("characters", "character_dim", "character_filters", "character_width")
BIDAF = Network(
    name="bidaf",
    side="bidaf",
    batch_sizes={"training": 60, "question": 1},
    inputs=("words", "characters", "context", "query"),
    longest_input="context",
    sizes=(*SIZES, *CHARACTER_SIZES),
)
SEQ2SEQ = Network(
    name="seq2seq",
    side="seq2seq,attention=luong_dot",
    batch_sizes={"training": 64, "beam search": 16},
    inputs=("source", "target_in"),
    longest_input="source",
    sizes=SIZES,
)


def main():
    if not shutil.which(FLAGS.torch_python):
        raise UserError(f"--torch_python={FLAGS.torch_python} is no program")
    if not (FLAGS.squad or FLAGS.chat):
        raise UserError("expected --squad or --chat")
    rows = []
    for network, path in ((BIDAF, FLAGS.squad), (SEQ2SEQ, FLAGS.chat)):
        if path:
            for what, batch_size in network.batch_sizes.items():
                rows.append(compare(network, path, what, batch_size))
    report(rows, threads=runtime.available_cpus())


def compare(network, path, what, batch_size):
    """Runs both sides and returns the row of the report."""
    with tempfile.TemporaryDirectory() as directory:
        arrays = str(pathlib.Path(directory) / "batches.npz")
        settings = write_batches(arrays, network, path, batch_size)
        examples = FLAGS.steps * batch_size
        sides = {
            "ours": (our_block, (what, network, path, arrays, FLAGS.seed)),
            "torch": (torch_block, (FLAGS.torch_python, what, arrays, settings, examples)),
        }
        blocks = alternate(sides, FLAGS.blocks)
    ours, theirs = blocks["ours"], blocks["torch"]
    return {
        "side": network.side,
        "what": what,
        "examples_per_batch": batch_size,
        "milliseconds": 1000 * batch_size / median(ours),
        "torch_milliseconds": 1000 * batch_size / median(theirs),
        "ratio": ratio(ours, theirs),
        "ratio_of_cpu": ratio(ours, theirs, "per_cpu_second"),
        "gigabytes": ours[-1].gigabytes,
    }


def write_batches(arrays, network, path, batch_size):
    """Writes the batches of a comparison into the file `arrays`.

    They are training batches at equal distances in the order of their longest input.

    Returns:
        The settings of `benchmarks/peers_torch.py`, JSON.
    """
    _, task, dataset, config, training = configure(network.side, path)
    rng = np.random.default_rng(FLAGS.seed)
    split = dataset.splits["train"]
    sized = training.replace(batch_size=batch_size)
    batches = task.training_batches(split, config, sized, rng)
    count = min(len(batches), BATCHES_TO_CHOOSE_FROM * FLAGS.steps)
    full = []
    for i in rng.choice(len(batches), size=count, replace=False):
        inputs, targets = task.collate(split, config, batches[i], 4)
        if len(targets) == batch_size:
            full.append((inputs, targets))
    full.sort(key=lambda batch: batch[0][network.longest_input].size)

    stored = []
    for step in range(FLAGS.steps):
        place = int((step + 0.5) / FLAGS.steps * len(full))
        inputs, targets = full[place]
        stored += [inputs[name] for name in network.inputs]
        stored.append(targets)
    np.savez(arrays, *stored)
    settings = {
        "network": network.name,
        "sizes": {field: getattr(config, field) for field in network.sizes},
        "rate": training.learning_rate,
        "clip": training.gradient_clip,
        "ema": getattr(training, "ema", 0),
        "threads": runtime.available_cpus(),
        "arrays": len(network.inputs) + 1,
    }
    return json.dumps(settings)


def our_block(what, network, path, arrays, seed):
    """Prepares a side of `alternate`, which computes the batches once."""
    runtime.import_keras()

    from colloquy.data.vocabulary import EOS_ID, UNK_ID
    from colloquy.engine.parallel import share_cores
    from colloquy.models.decoding import Decoder, Decoding
    from colloquy.tasks.generation.search import decoding_inputs

    if what == "question":
        share_cores()
    model, *_ = build(network.side, path, seed)
    batches = read_batches(arrays, network.inputs)
    decoding = Decoding(beam=5)
    if what == "beam search":
        search = Decoder(model, decoding.beam, decoding.max_length, EOS_ID, UNK_ID)

    def block():
        for inputs, targets in batches:
            if what == "training":
                model.train_on_batch(inputs, targets)
            elif what == "question":
                model.predict_on_batch(inputs)
            else:
                options = decoding_inputs([decoding] * len(targets))
                search.predict_on_batch({"source": inputs["source"], **options})
        return sum(len(targets) for _, targets in batches)

    return block


def read_batches(path, names):
    """Reads the file of `write_batches`: a list of `(inputs, targets)`."""
    with np.load(path) as stored:
        arrays = list(stored.values())
    count = len(names) + 1
    batches = []
    for start in range(0, len(arrays), count):
        *inputs, targets = arrays[start : start + count]
        batches.append((dict(zip(names, inputs, strict=True)), targets))
    return batches


def torch_block(python, what, arrays, settings, examples):
    """Prepares the side of PyTorch, in a process of the Python that has it."""
    script = pathlib.Path(__file__).with_name("peers_torch.py")
    command = [python, script, what, arrays, settings]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if not process.stdout.readline():
        raise UserError(f"{python}: {script.name} failed; its error is above")

    def block():
        process.stdin.write("block\n")
        process.stdin.flush()
        return Block(examples, **json.loads(process.stdout.readline()))

    return block


if __name__ == "__main__":
    cli.run(main)
