"""Times BiDAF and seq2seq beside the same networks written in PyTorch: training, a question, and
beam search.

python -m colloquy.benchmarks.peers --squad=build/squad --chat=build/dailydialog
--torch_python=/path/to/venv/bin/python \
    --out=results/benchmarks/peers.json/torch

`--torch_python` is a Python that has `torch` and `numpy`. There `benchmarks/peers_torch.py`
computes equal batches in float32 with as many threads. Sizes of the layers are the defaults of the
models here; the networks differ in that the LSTM and GRU of PyTorch have two biases. A question is
one on its own, after its passage; each operation of ours has one core then, as in serve.py. Beam
search keeps 5 replies of up to 30 words. The machine must be quiet: PyTorch's threads spin while
they wait, and when other work leaves both on one core, each operation takes 8 ms.
"""

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
NETWORKS = {
    "bidaf": (
        "bidaf",
        {"training": 60, "question": 1},
        ("words", "characters", "context", "query"),
    ),
    "seq2seq": (
        "seq2seq,attention=luong_dot",
        {"training": 64, "beam search": 16},
        ("source", "target_in"),
    ),
}
"""Side of `benchmarks.turns`, examples per batch for each kind of work, and inputs; the last but
one is the longest.
"""
SIZES = ("vocabulary_size", "embedding_dim", "hidden", "dropout")
CHARACTERS = ("characters", "character_dim", "character_filters", "character_width")
"""Fields of the configs that the networks of `benchmarks/peers_torch.py` take, and that BiDAF takes
too.
"""


def main():
    if not shutil.which(FLAGS.torch_python):
        raise UserError(f"--torch_python={FLAGS.torch_python} is no program")
    paths = {"bidaf": FLAGS.squad, "seq2seq": FLAGS.chat}
    if not any(paths.values()):
        raise UserError("expected --squad or --chat")
    kinds = [
        (name, what, size)
        for name in NETWORKS
        if paths[name]
        for what, size in NETWORKS[name][1].items()
    ]
    rows = [compare(name, paths[name], what, size) for name, what, size in kinds]
    report(rows, threads=runtime.available_cpus())


def compare(network, path, what, size):
    with tempfile.TemporaryDirectory() as directory:
        arrays = str(pathlib.Path(directory) / "batches.npz")
        settings = write_batches(arrays, network, path, size)
        ours = our_block, (what, network, path, arrays, FLAGS.seed)
        theirs = torch_block, (FLAGS.torch_python, what, arrays, settings, FLAGS.steps * size)
        ours, theirs = alternate({"ours": ours, "torch": theirs}, FLAGS.blocks).values()
    row = {"side": NETWORKS[network][0], "what": what, "examples_per_batch": size}
    row |= {
        "milliseconds": 1000 * size / median(ours),
        "torch_milliseconds": 1000 * size / median(theirs),
    }
    row |= {"ratio": ratio(ours, theirs), "ratio_of_cpu": ratio(ours, theirs, "per_cpu_second")}
    return {**row, "gigabytes": ours[-1].gigabytes}


def write_batches(arrays, network, path, size):
    """Writes the batches of a comparison and returns the settings of
    `benchmarks/peers_torch.py`.
    """
    side, _, names = NETWORKS[network]
    _, task, dataset, config, training = configure(side, path)
    rng, split = np.random.default_rng(FLAGS.seed), dataset.splits["train"]
    every = task.training_batches(split, config, training.replace(batch_size=size), rng)
    some = (
        every[i]
        for i in rng.choice(len(every), size=min(len(every), 20 * FLAGS.steps), replace=False)
    )
    collated = (task.collate(split, config, batch, 4) for batch in some)
    full = sorted(
        (batch for batch in collated if len(batch[1]) == size),
        key=lambda batch: batch[0][names[-2]].size,
    )
    stored = []
    for i in range(FLAGS.steps):
        inputs, targets = full[int((i + 0.5) / FLAGS.steps * len(full))]
        stored += [*(inputs[name] for name in names), targets]
    np.savez(arrays, *stored)
    sizes = {
        field: getattr(config, field)
        for field in (*SIZES, *(CHARACTERS if network == "bidaf" else ()))
    }
    settings = {
        "network": network,
        "sizes": sizes,
        "rate": training.learning_rate,
        "clip": training.gradient_clip,
    }
    settings |= {
        "ema": getattr(training, "ema", 0),
        "threads": runtime.available_cpus(),
        "arrays": len(names) + 1,
    }
    return json.dumps(settings)


def our_block(what, network, path, arrays, seed):
    """A side of `alternate`: computes the batches once."""
    from colloquy.data.vocabulary import EOS_ID, UNK_ID

    runtime.import_keras()

    from colloquy.engine.parallel import share_cores
    from colloquy.models.decoding import Decoder, Decoding
    from colloquy.tasks.generation.search import columns

    side, _, names = NETWORKS[network]
    if what == "question":
        share_cores()
    model, *_ = build(side, path, seed)
    decoding = Decoding(beam=5)
    search = (
        Decoder(model, decoding.beam, decoding.max_length, EOS_ID, UNK_ID)
        if what == "beam search"
        else None
    )
    with np.load(arrays) as stored:
        every = list(stored.values())
    batches = [every[i : i + len(names) + 1] for i in range(0, len(every), len(names) + 1)]

    def block():
        for *arrays, targets in batches:
            inputs = dict(zip(names, arrays, strict=True))
            if what == "training":
                model.train_on_batch(inputs, targets)
            elif what == "beam search":
                search.predict_on_batch(
                    {"source": inputs["source"], **columns([decoding] * len(targets))}
                )
            else:
                model.predict_on_batch(inputs)
        return sum(len(batch[-1]) for batch in batches)

    return block


def torch_block(python, what, arrays, settings, examples):
    """The same in PyTorch, in a process of the Python that has it."""
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
