"""Times BiDAF and seq2seq beside the same networks written in PyTorch: training, a question, beam search.

python -m benchmarks.peers --squad=build/squad --chat=build/dailydialog --torch_python=/path/to/venv/bin/python \
    --out=results/benchmarks/peers.json

`--torch_python` is a Python that has `torch` and `numpy`. There `benchmarks/peers_torch.py` computes equal batches in
float32 with as many threads. Sizes of the layers are the defaults of the models here; the networks differ in that the
LSTM and GRU of PyTorch have two biases. A question is one on its own, after its passage; beam search keeps five
hypotheses of at most 30 words for each source. Medians over blocks that are computed in turn.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

from absl import flags
from rich.console import Console
from rich.table import Table

from base import cli, runtime
from base.files import UserError
from benchmarks.turns import Block, build, define_flags, in_turn, make_model_config, write_record

FLAGS = flags.FLAGS
flags.DEFINE_string("squad", None, "Prepared SQuAD; without it BiDAF is left out.")
flags.DEFINE_string("chat", None, "Prepared conversations; without them seq2seq is left out.")
flags.DEFINE_list("attention", ["luong_dot", "additive"], "Attention of the seq2seq models.")
flags.DEFINE_string("torch_python", None, "A Python that has torch and numpy.", required=True)
SEARCH = {"beam": 5, "length": 30}
BATCH_SIZES = {"training": {"bidaf": 60, "seq2seq": 64}, "question": {"bidaf": 1}, "beam search": {"seq2seq": 16}}
INPUTS = {"bidaf": ["words", "characters", "context", "query"], "seq2seq": ["source", "target_in"]}
define_flags(blocks=5, steps=3)


def main():
    sides = [("bidaf", FLAGS.squad)] if FLAGS.squad else []
    sides += [(f"seq2seq,attention={kind}", FLAGS.chat) for kind in FLAGS.attention] if FLAGS.chat else []
    if not sides:
        raise UserError("expected --squad or --chat")
    table, rows = Table("", "", "ms per batch", "PyTorch", "times as fast", "by CPU time"), []
    for side, path in sides:
        network = side.split(",")[0]
        for what in (what for what, sizes in BATCH_SIZES.items() if network in sizes):
            with tempfile.TemporaryDirectory() as directory:
                arrays = pathlib.Path(directory) / "batches.npz"
                settings = write_batches(arrays, side, path, what)
                ours = our_block, (what, side, path, str(arrays), FLAGS.seed)
                theirs = torch_block, (FLAGS.torch_python, what, str(arrays), settings)
                found = in_turn([ours, theirs], FLAGS.blocks)
            milliseconds = [1000 * BATCH_SIZES[what][network] / timed.speed for timed in found]
            ratios = found[0].ratio(found[1]), found[0].ratio(found[1], "cpu_speed")
            row = {"side": side, "what": what, "examples_per_batch": BATCH_SIZES[what][network]}
            row |= {"milliseconds": milliseconds[0], "torch_milliseconds": milliseconds[1]}
            rows.append({**row, "ratio": ratios[0], "ratio_of_cpu": ratios[1], "gigabytes": found[0].gigabytes})
            table.add_row(side, what, *(f"{x:,.1f}" for x in milliseconds), *(f"{ratio:.2f}" for ratio in ratios))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    write_record(FLAGS.out, "peers", rows=rows, threads=runtime.available_cpus(), note=FLAGS.note)


def write_batches(arrays, side, path, what):
    """Writes the batches of a comparison and returns the settings of `benchmarks/peers_torch.py`."""
    import numpy as np

    from data.vocabulary import EOS_ID, UNK_ID

    config, task, dataset, training, _ = make_model_config(side, path)
    network, rng = side.split(",")[0], np.random.default_rng(FLAGS.seed)
    size = BATCH_SIZES[what][network]
    every = task.training_batches(dataset.splits["train"], config, training.replace(batch_size=size), rng)
    some = (every[i] for i in rng.choice(len(every), size=min(len(every), 20 * FLAGS.steps), replace=False))
    collated = (task.collate(dataset.splits["train"], config, batch, 4) for batch in some)
    full = sorted((batch for batch in collated if len(batch[1]) == size), key=_cells)
    chosen = [full[int((i + 0.5) / FLAGS.steps * len(full))] for i in range(FLAGS.steps)]
    stored = {}
    for i, (inputs, targets) in enumerate(chosen):
        for j, array in enumerate([*(inputs[name] for name in INPUTS[network]), targets]):
            stored[f"{i}:{j}"] = array
    np.savez(arrays, **stored)
    c = config
    if network == "bidaf":
        sizes = {"words": c.vocabulary_size, "characters": c.characters, "filters": c.character_filters}
        sizes |= {"character_dim": c.character_dim, "width": c.character_width}
    else:
        sizes = {"vocabulary": c.vocabulary_size, "attention": c.attention}
    sizes |= {"embedding_dim": c.embedding_dim, "hidden": c.hidden, "dropout": c.dropout}
    search = {**SEARCH, "begin": c.vocabulary_size + 1, "eos": EOS_ID, "unknown": UNK_ID} if "beam" in what else {}
    rate = {"rate": training.learning_rate, "clip": training.gradient_clip, "ema": getattr(training, "ema", 0)}
    threads = {"threads": runtime.available_cpus(), "arrays": len(INPUTS[network]) + 1}
    return json.dumps({"network": network, "sizes": sizes, **search, **rate, **threads})


def _cells(batch):
    """Places of words in the longest of a batch's arrays: what a step costs grows with them."""
    inputs, _ = batch
    return inputs["context" if "context" in inputs else "source"].size


def our_block(what, side, path, arrays, seed):
    """In the process of a side: what computes the batches once and returns the examples per second."""
    import numpy as np

    from data.vocabulary import EOS_ID, UNK_ID
    from models.decoding import Decoder, Decoding

    model, *_ = build(side, path, seed)
    names = INPUTS[side.split(",")[0]]
    with np.load(arrays) as stored:
        number = 1 + max(int(name.split(":")[0]) for name in stored)
        batches = [[stored[f"{i}:{j}"] for j in range(len(names) + 1)] for i in range(number)]
    searched = Decoder(model, Decoding(SEARCH["beam"], max_length=SEARCH["length"]), EOS_ID, UNK_ID)

    def compute(*arrays):
        inputs = dict(zip(names, arrays, strict=False))
        if what == "training":
            model.train_on_batch(inputs, arrays[-1])
        elif what == "question":
            model.predict_on_batch(inputs)
        else:
            searched.predict_on_batch({"source": inputs["source"]})

    def block():
        started = time.perf_counter()
        for batch in batches:
            compute(*batch)
        return sum(len(batch[-1]) for batch in batches) / (time.perf_counter() - started)

    return block


def torch_block(python, what, arrays, settings):
    """The same by PyTorch, in a process of that Python."""
    import numpy as np

    script = pathlib.Path(__file__).with_name("peers_torch.py")
    process = subprocess.Popen(
        [python, script, what, arrays, settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if not process.stdout.readline():
        raise UserError(f"{python}: {script.name} failed; its error stands above")
    with np.load(arrays) as stored:
        examples = sum(len(stored[name]) for name in stored if name.endswith(f":{json.loads(settings)['arrays'] - 1}"))

    def block():
        process.stdin.write("block\n")
        process.stdin.flush()
        found = json.loads(process.stdout.readline())
        speed, cpu_speed = examples / found["seconds"], examples / found["cpu_seconds"]
        return Block(examples, speed, cpu_speed, 0, found["gigabytes"])

    return block


if __name__ == "__main__":
    cli.run(main)
