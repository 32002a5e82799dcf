"""Comparisons of speed: both sides run alternately, each in a process and memory of its own."""

import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
import statistics
import time

from colloquy.base import backend

SEED = 1
"""Seed of weights and batches."""

# In the process of a side: the function that computes a block.
_block = None


@dataclasses.dataclass(frozen=True)
class Block:
    """Steps of a side that are timed together."""

    examples: float
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self):
        return self.examples / self.seconds


def alternate(sides, num_blocks):
    """Runs one block of each side after the other, repeatedly.

    Args:
        sides: `{name: prepare}`. `prepare` is called once, in the process of its side, and returns
            the function `block`. `block` is called for each block, computes its steps and returns
            their number of examples. `prepare` must be picklable: an importable function, or a
            `functools.partial` of one.
        num_blocks: Timed blocks of each side; one more before them compiles.

    Returns:
        `{name: list of Block}`.
    """
    pools = {}
    blocks_by_side = {name: [] for name in sides}
    with contextlib.ExitStack() as stack:
        for name, prepare in sides.items():
            context = multiprocessing.get_context("spawn")
            pools[name] = stack.enter_context(concurrent.futures.ProcessPoolExecutor(1, context))
            pools[name].submit(_prepare, prepare).result()
        for _ in range(1 + num_blocks):
            for name, pool in pools.items():
                blocks_by_side[name].append(pool.submit(_time_block).result())
    return {name: blocks[1:] for name, blocks in blocks_by_side.items()}


def _prepare(prepare):
    global _block
    _block = prepare()


def _time_block():
    cpu_start = time.process_time()
    start = time.perf_counter()
    examples = _block()
    seconds = time.perf_counter() - start
    return Block(examples, seconds, cpu_seconds=time.process_time() - cpu_start)


def median(blocks):
    """Returns the median speed of blocks, in examples per second."""
    return statistics.median(block.per_second for block in blocks)


def ratio(blocks, others):
    """Returns the speed of one side divided by another's.

    It is the median over pairs of blocks that ran side by side.
    """
    ratios = []
    for block, other in zip(blocks, others, strict=True):
        ratios.append(block.per_second / other.per_second)
    return statistics.median(ratios)


def spread(items, count):
    """Chooses `count` of a list's items: the middle of each of `count` equal parts."""
    chosen = []
    for number in range(count):
        chosen.append(items[int((number + 0.5) / count * len(items))])
    return chosen


def memory(field, process="self"):
    """Returns megabytes of a process by a field of `/proc/PROCESS/status`.

    Fields are `VmRSS`, `VmHWM`, `RssAnon` and others.
    """
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
    raise KeyError(field)


def build(name, settings, path):
    """Builds the compiled model of a side.

    Args:
        name: A key of `models.MODELS`.
        settings: `{field: value}`, as `--set` takes them.
        path: A prepared dataset.

    Returns:
        Model, task, dataset and `Training`.
    """
    backend.import_keras()

    import keras

    from colloquy.engine.devices import set_precision
    from colloquy.engine.settings import build_config
    from colloquy.models import MODELS
    from colloquy.tasks import TASKS

    spec = MODELS[name]
    task = TASKS[spec.task]
    dataset = task.load_dataset(path)
    model_settings, training = task.split_settings(spec, {"precision": "float32", **settings})
    config = build_config(task, spec, dataset, model_settings)
    set_precision(training.precision)
    keras.utils.set_random_seed(SEED)
    model = spec.build(config)
    task.initialise(model, dataset, training)
    optimizer = task.optimizer(training, 10_000)
    model.compile(optimizer=optimizer, loss=task.loss(training), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model, task, dataset, training
