"""Times BiDAF and seq2seq beside the same networks written in PyTorch: training, a question, beam search.

python -m benchmarks.peers --squad=build/squad --chat=build/dailydialog --torch_python=/path/to/venv/bin/python \
    --out=results/benchmarks/peers.json

`--torch_python` is a Python that has `torch` and `numpy`. There `benchmarks/peers_torch.py` computes equal batches in
float32 with as many threads. Sizes of the layers are the defaults of the models here; the networks differ in that the
LSTM and GRU of PyTorch have two biases. A question is one on its own, after its passage; beam search keeps five
hypotheses of at most 30 words for each source.
"""

import json
import pathlib
import subprocess
import tempfile

import numpy as np
from absl import flags

from base import cli, runtime
from base.files import UserError
from benchmarks.turns import Block, alternate, build, configure, define_flags, median, ratio, report
from data.vocabulary import EOS_ID, UNK_ID

FLAGS = flags.FLAGS
flags.DEFINE_string("squad", None, "Prepared SQuAD; without it BiDAF is left out.")
flags.DEFINE_string("chat", None, "Prepared conversations; without them seq2seq is left out.")
flags.DEFINE_list("attention", ["luong_dot", "additive"], "Attention of the seq2seq models.")
flags.DEFINE_string("torch_python", None, "A Python that has torch and numpy.", required=True)
define_flags(blocks=5, steps=3)
SEARCH = {"beam": 5, "length": 30}
BATCH_SIZES = {
    "bidaf": {"training": 60, "question": 1},
    "seq2seq": {"training": 64, "beam search": 16},
}
INPUTS = {"bidaf": ("words", "characters", "context", "query"), "seq2seq": ("source", "target_in")}


def main():
    sides = [("bidaf", FLAGS.squad)] if FLAGS.squad else []
    sides += [(f"seq2seq,attention={kind}", FLAGS.chat) for kind in FLAGS.attention] if FLAGS.chat else []
    if not sides:
        raise UserError("expected --squad or --chat")
    rows = []
    for side, path in sides:
        for what, size in BATCH_SIZES[side.split(",")[0]].items():
            with tempfile.TemporaryDirectory() as directory:
                arrays = pathlib.Path(directory) / "batches.npz"
                settings = write_batches(arrays, side, path, what, size)
                ours = our_block, (what, side, path, str(arrays), FLAGS.seed)
                theirs = torch_block, (FLAGS.torch_python, what, str(arrays), settings)
                ours, theirs = alternate({"ours": ours, "torch": theirs}, FLAGS.blocks).values()
            row = {"side": side, "what": what, "examples_per_batch": size}
            row |= {"milliseconds": 1000 * size / median(ours), "torch_milliseconds": 1000 * size / median(theirs)}
            row |= {"ratio": ratio(ours, theirs), "ratio_of_cpu": ratio(ours, theirs, "per_cpu_second")}
            rows.append({**row, "gigabytes": ours[-1].gigabytes})
    report("peers", rows, threads=runtime.available_cpus())


def write_batches(arrays, side, path, what, size):
    """Writes the batches of a comparison and returns the settings of `benchmarks/peers_torch.py`."""
    _, task, dataset, config, training = configure(side, path)
    network, rng, split = side.split(",")[0], np.random.default_rng(FLAGS.seed), dataset.splits["train"]
    every = task.training_batches(split, config, training.replace(batch_size=size), rng)
    some = (every[i] for i in rng.choice(len(every), size=min(len(every), 20 * FLAGS.steps), replace=False))
    collated = (task.collate(split, config, batch, 4) for batch in some)
    longest = INPUTS[network][-2]  # what a step costs grows with it
    full = sorted((batch for batch in collated if len(batch[1]) == size), key=lambda batch: batch[0][longest].size)
    stored = {}
    for i in range(FLAGS.steps):
        inputs, targets = full[int((i + 0.5) / FLAGS.steps * len(full))]
        for j, array in enumerate([*(inputs[name] for name in INPUTS[network]), targets]):
            stored[f"{i}:{j}"] = array
    np.savez(arrays, **stored)
    settings = {"network": network, "sizes": sizes_of(network, config)}
    if what == "beam search":
        settings |= {**SEARCH, "begin": config.vocabulary_size + 1, "eos": EOS_ID, "unknown": UNK_ID}
    settings |= {"rate": training.learning_rate, "clip": training.gradient_clip, "ema": getattr(training, "ema", 0)}
    return json.dumps({**settings, "threads": runtime.available_cpus(), "arrays": len(INPUTS[network]) + 1})


def sizes_of(network, config):
    """Arguments of a network in `benchmarks/peers_torch.py`."""
    names = {"words": "vocabulary_size", "characters": "characters", "filters": "character_filters"}
    names |= {"character_dim": "character_dim", "width": "character_width"}
    if network == "seq2seq":
        names = {"vocabulary": "vocabulary_size", "attention": "attention"}
    names |= {name: name for name in ("embedding_dim", "hidden", "dropout")}
    return {name: getattr(config, field) for name, field in names.items()}


def read_batches(arrays):
    """The batches that `write_batches` wrote, lists of arrays."""
    with np.load(arrays) as stored:
        places = [tuple(map(int, name.split(":"))) for name in stored]
        steps, count = (1 + max(numbers) for numbers in zip(*places, strict=True))
        return [[stored[f"{i}:{j}"] for j in range(count)] for i in range(steps)]


def our_block(what, side, path, arrays, seed):
    """A side of `alternate`: computes the batches once."""
    from models.decoding import Decoder, Decoding

    model, *_ = build(side, path, seed)
    batches, names = read_batches(arrays), INPUTS[side.split(",")[0]]
    if what == "beam search":
        decoding = Decoding(beam=SEARCH["beam"], max_length=SEARCH["length"])
        decoder = Decoder(model, decoding, EOS_ID, UNK_ID)

    def block():
        for *arrays, targets in batches:
            inputs = dict(zip(names, arrays, strict=True))
            if what == "training":
                model.train_on_batch(inputs, targets)
            elif what == "question":
                model.predict_on_batch(inputs)
            else:
                decoder.predict_on_batch({"source": inputs["source"]})
        return sum(len(batch[-1]) for batch in batches)

    return block


def torch_block(python, what, arrays, settings):
    """The same by PyTorch, in a process of that Python."""
    script = pathlib.Path(__file__).with_name("peers_torch.py")
    command = [python, script, what, arrays, settings]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if not process.stdout.readline():
        raise UserError(f"{python}: {script.name} failed; its error stands above")
    examples = sum(len(batch[-1]) for batch in read_batches(arrays))

    def block():
        process.stdin.write("block\n")
        process.stdin.flush()
        return Block(examples, **json.loads(process.stdout.readline()))

    return block


if __name__ == "__main__":
    cli.run(main)
