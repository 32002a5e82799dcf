"""Times the training of two models, or of one under two settings, side by side: same data, same batches, in turn.

python -m benchmarks.training_speed --data='build/babi/task*' --one=memma --other=memr
python -m benchmarks.training_speed --data=build/squad --one=bidaf --other=bidaf,precision=bfloat16

Either side has a process of its own, so that its memory is its own, and one waits while the other computes. A row gives
the medians over blocks of some steps, and their ratio.
"""

import glob
import itertools
import json
import multiprocessing
import pathlib
import resource
import shlex
import statistics
import sys
import time

from absl import flags
from rich.console import Console
from rich.table import Table

import cli

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Prepared dataset, or a quoted pattern of several.", required=True)
flags.DEFINE_string("one", None, "MODEL[,field=value...], fields as for train.py --set; or precision.", required=True)
flags.DEFINE_string("other", None, "What it is compared with.", required=True)
flags.DEFINE_integer("batch_size", None, "Examples a step; default: that of train.py.", lower_bound=1)
flags.DEFINE_integer("blocks", 6, "Timed blocks of each side.", lower_bound=1)
flags.DEFINE_integer("steps", 10, "Steps a block.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Of weights and batches.", lower_bound=0)
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
COUNTED = {
    "dialog": ("responses", lambda answers: int((answers >= 0).sum())),
    "generation": ("target tokens", lambda target: int((target > 0).sum())),
    "reading": ("questions", len),
    "selection": ("pairs", lambda labels: labels.size),
}
"""What is counted a second, and how many of a batch's targets these are."""


def main():
    from evaluation import commit, hardware
    from models import MODELS

    sides = FLAGS.one, FLAGS.other
    for side in sides:
        if side.partition(",")[0] not in MODELS:
            raise cli.UserError(f"--one and --other expect a model of {', '.join(MODELS)}. Received: {side}")
    paths = [path for path in sorted(glob.glob(FLAGS.data)) if pathlib.Path(path).is_dir()]
    if not paths:
        raise cli.UserError(f"--data expects directories that prepare.py made. Received: {FLAGS.data}")
    unit, _ = COUNTED[MODELS[FLAGS.one.partition(",")[0]].task]
    table = Table("", *(f"{side}: {what}" for side in sides for what in (f"{unit}/s", "GB")), "time of one to other")
    rows = {}
    for path in paths:
        rows[pathlib.Path(path).name] = measured = time_sides(sides, path)
        cells = [f"{value:,.{digits}f}" for speed, memory in measured for value, digits in ((speed, 0), (memory, 2))]
        table.add_row(pathlib.Path(path).name, *cells, f"{measured[1][0] / measured[0][0]:.2f}")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    if FLAGS.out:
        record = {
            "command": shlex.join(["python", "-m", "benchmarks.training_speed", *sys.argv[1:]]),
            "sides": sides,
            "unit": unit,
            "rows": {
                name: {"per_second": [speed for speed, _ in found], "peak_gigabytes": [memory for _, memory in found]}
                for name, found in rows.items()
            },
            "hardware": hardware(),
            "commit": commit(),
        }
        with cli.atomic_file(FLAGS.out) as file:
            json.dump(record, file, indent=1)


def time_sides(sides, path):
    """Times both sides on a dataset.

    Args:
        sides: Two texts, as of the flags.
        path: A prepared dataset.

    Returns:
        For each side the examples a second, the median over blocks, and the peak memory of its process in GB.
    """
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    for side in sides:
        here, there = context.Pipe()
        arguments = side, path, FLAGS.batch_size, FLAGS.steps, FLAGS.seed, there
        workers.append(context.Process(target=_work, args=arguments, daemon=True))
        workers[-1].start()
        pipes.append(here)
    found = [[] for _ in sides]
    try:
        for _ in range(1 + FLAGS.blocks):
            for pipe, of_side in zip(pipes, found, strict=True):
                pipe.send("block")
                of_side.append(pipe.recv())
    except EOFError:
        raise cli.UserError(f"one of {' and '.join(sides)} stopped; its error stands above") from None
    finally:
        for worker in workers:
            worker.terminate()
    return [
        (statistics.median(speed for speed, _ in of_side[1:]), max(memory for _, memory in of_side))
        for of_side in found  # the first block compiles
    ]


def _work(side, path, batch_size, steps, seed, pipe):
    """The process of a side: at each message it trains for a block and answers `(examples a second, peak GB)`."""
    import keras
    import numpy as np

    from models import MODELS
    from runs import make_config, set_precision
    from tasks import TASKS
    from training import Fit

    name, *assignments = side.split(",")
    settings = dict(assignment.split("=", 1) for assignment in assignments)
    set_precision(settings.pop("precision", "float32"))
    entry = MODELS[name]
    task = TASKS[entry.task]
    dataset = task.load_dataset(path)
    keras.utils.set_random_seed(seed)
    model = entry.build(make_config(entry.config, task.model_settings(dataset, settings)))
    training, split = task.Training(), dataset.splits["train"]
    task.initialise(model, dataset, training)
    fit = Fit(**task.FIT)
    optimizer = task.optimizer(training, fit.learning_rate, 10_000)
    model.compile(optimizer=optimizer, loss=task.loss(training), jit_compile=False)
    rng = np.random.default_rng(seed)
    size = batch_size or fit.batch_size
    batches = itertools.chain.from_iterable(
        task.training_batches(split, model.config, training, size, rng) for _ in itertools.count()
    )
    _, count = COUNTED[entry.task]
    while pipe.recv():
        started, examples = time.perf_counter(), 0
        for batch in itertools.islice(batches, steps):
            inputs, targets = task.collate(split, model.config, batch, 4)
            model.train_on_batch(inputs, targets)
            examples += count(targets)
        speed = examples / (time.perf_counter() - started)
        pipe.send((speed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))


if __name__ == "__main__":
    cli.run(main)
