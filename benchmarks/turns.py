"""Comparisons of speed: sides that run alternately, each in its own process, so that its memory is
its own.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import json
import multiprocessing
import pathlib
import resource
import statistics
import sys
import time

from absl import flags

from colloquy.base import runtime
from colloquy.base.config import parse_assignments
from colloquy.base.files import UserError, atomic_file
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS
COUNTED = {
    "dialog": ("responses", lambda answers: (answers >= 0).sum()),
    "generation": ("target tokens", lambda target: (target > 0).sum()),
    "reading_comprehension": ("questions", len),
    "selection": ("pairs", lambda labels: labels.size),
}
"""Unit of each task, and the number of them in a batch's targets."""


@dataclasses.dataclass(frozen=True)
class Block:
    """Steps of a side that are timed together; `gigabytes` is the peak memory of its process so
    far.
    """

    examples: float
    seconds: float
    cpu_seconds: float
    gigabytes: float

    @property
    def per_second(self):
        return self.examples / self.seconds

    @property
    def per_cpu_second(self):
        """Examples per second of CPU time, which other work on the machine disturbs less."""
        return self.examples / self.cpu_seconds


def median(blocks):
    return statistics.median(block.per_second for block in blocks)


def ratio(blocks, others, field="per_second"):
    """Speed of one side divided by another's: the median over pairs of blocks that ran side by
    side.
    """
    pairs = zip(blocks, others, strict=True)
    return statistics.median(getattr(one, field) / getattr(other, field) for one, other in pairs)


def alternate(sides, blocks, warm_up=1):
    """Runs one block of each side after the other, repeatedly, after `warm_up` untimed ones, which
    compile.

    `sides` are `{name: (function, arguments)}`. In the side's process the function prepares its
    work and returns another without arguments that computes a block and returns its number of
    examples, or a `Block` that another process computed. The first must be importable, the
    arguments plain. Returns `{name: list of Block}`.
    """
    pools, found = {}, {name: [] for name in sides}
    with contextlib.ExitStack() as stack:
        for name, (function, arguments) in sides.items():
            pools[name] = stack.enter_context(new_process())
            pools[name].submit(_prepare, function, arguments).result()
        for _ in range(warm_up + blocks):
            for name, pool in pools.items():
                found[name].append(pool.submit(_run_prepared).result())
    return {name: timed[warm_up:] for name, timed in found.items()}


def _prepare(function, arguments):
    _prepare.block = function(*arguments)  # in the process of the side


def _run_prepared():
    return timed(_prepare.block)


def new_process():
    return concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


def in_process(function, *arguments):
    with new_process() as pool:
        return pool.submit(function, *arguments).result()


def timed(block):
    """Runs a function of `alternate`; returns its `Block`."""
    cpu, started = time.process_time(), time.perf_counter()
    found = block()
    if isinstance(found, Block):
        return found
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    return Block(
        found, seconds, cpu_seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    )


def memory(field, process="self"):
    """Megabytes of a process by a field of `/proc/PROCESS/status`, as `VmRSS`, `VmHWM` or
    `RssAnon`.
    """
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{field}:")) / 1024


# === Sides that train ===


def parse_side(text):
    """Splits `MODEL[,field=value...]` into the model's name and its settings.

    >>> parse_side("dam,levels=2,precision=bfloat16")
    ('dam', {'levels': '2', 'precision': 'bfloat16'})
    """
    from colloquy.models import MODELS  # Keras takes seconds to load

    name, *assignments = text.split(",")
    if name not in MODELS:
        raise UserError(
            f"expected MODEL[,field=value...] with one of {', '.join(MODELS)}. Received: {text}"
        )
    return name, parse_assignments(assignments, "a side")


def configure(side, path):
    """The row of `models.MODELS`, task, dataset, config and `Training` of a side for a prepared
    dataset.
    """
    from colloquy.models import MODELS
    from colloquy.tasks import TASKS

    name, settings = parse_side(side)
    spec = MODELS[name]
    task = TASKS[spec.task]
    dataset = task.load_dataset(path)
    settings = {"precision": "float32", **settings}
    model_settings, training = task.split_settings(spec, settings)
    config = task.build_config(spec, dataset, model_settings)
    return spec, task, dataset, config, training


def build(side, path, seed):
    """The compiled model of a side, its task, dataset and `Training`; the seed is that of the
    weights.
    """
    runtime.import_keras()

    import keras

    from colloquy.engine.devices import set_precision

    spec, task, dataset, config, training = configure(side, path)
    set_precision(training.precision)
    keras.utils.set_random_seed(seed)
    model = spec.build(config)
    task.initialise(model, dataset, training)
    model.compile(
        optimizer=task.optimizer(training, 10_000, config),
        loss=task.loss(training),
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)
    return model, task, dataset, training


def open_training(side, path, seed):
    """A training like that of train.py.

    Returns task, model, a function that makes the arrays of a step, the stream of batches, and one
    that trains on one.
    """
    from colloquy.data.batching import Epochs, stream_batches
    from colloquy.engine.devices import OneDevice

    model, task, dataset, training = build(side, path, seed)
    split = dataset.splits["train"]
    epochs = Epochs(functools.partial(task.training_batches, split, model.config, training), seed)

    def make_arrays(step):
        return task.collate(split, model.config, epochs.batch(step), 4)

    batches = stream_batches(make_arrays, 0, sys.maxsize)
    return task, model, make_arrays, iter(batches), OneDevice().train_step(model, batches)


def training_block(side, path, steps, seed):
    """A side of `alternate`: trains for `steps` steps."""
    import numpy as np

    task, *_, stream, train_on = open_training(side, path, seed)

    def block():
        examples = 0
        for batch in itertools.islice(stream, steps):
            logs = train_on(batch)
            examples += int(COUNTED[task.name][1](np.asarray(batch[1])))
        float(logs["loss"])  # waits for the device
        return examples

    return block


# === Records ===


def define_flags(blocks, steps):
    """The flags of a benchmark that calls `alternate`; `blocks` and `steps` are defaults."""
    flags.DEFINE_integer("blocks", blocks, "Timed blocks of each side.", lower_bound=1)
    flags.DEFINE_integer("steps", steps, "Steps per block.", lower_bound=1)
    flags.DEFINE_integer("seed", 1, "Seed of weights and batches.", lower_bound=0)
    define_record_flags()


def define_record_flags():
    flags.DEFINE_string("note", None, "Other work on the machine meanwhile, for the record.")
    flags.DEFINE_string(
        "out", None, "FILE.json/NAME: file of records, and the name in it of the new one."
    )
    flags.register_validator(
        "out", lambda out: out is None or out.partition(".json/")[2], "expected FILE.json/NAME"
    )


def records():
    """The file that `--out` names, its records by name, and the name of the new one."""
    file, _, name = FLAGS.out.partition(".json/")
    path = pathlib.Path(f"{file}.json")
    return path, json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}, name


def write_record(**measured):
    """Writes a record to `--out`, if given: the command, the measurements to four digits, the
    hardware, the commit.
    """
    runtime.import_keras()

    from colloquy.engine.provenance import command, hardware, revision

    if FLAGS.out:
        path, found, name = records()
        measured = json.loads(
            json.dumps(measured), parse_float=lambda text: float(f"{float(text):.4g}")
        )
        found[name] = {
            "command": command(),
            **measured,
            "note": FLAGS.note,
            "hardware": hardware(),
            **revision(),
        }
        with atomic_file(path) as file:
            json.dump(found, file, indent=1)


def report(rows, **measured):
    """Prints rows, dicts whose keys are columns, and writes them with the rest of the record."""
    write_record(**measured, rows=rows)
    for name, value in measured.items():
        print(f"{name}: {value}")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    print(markdown(columns, [[_shown(row.get(column, "")) for column in columns] for row in rows]))


def _shown(value):
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)
