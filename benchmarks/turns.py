"""Comparisons of speed: both sides run alternately, each in a process and memory of its own."""

import concurrent.futures
import contextlib
import dataclasses
import json
import multiprocessing
import pathlib
import statistics
import time

from absl import flags

from colloquy.base import runtime
from colloquy.base.files import atomic_file
from colloquy.metrics.tables import markdown

FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class Block:
    """Steps of a side that are timed together."""

    examples: float
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self):
        return self.examples / self.seconds


def alternate(sides, blocks):
    """Runs one block of each side after the other, repeatedly.

    Args:
        sides: `{name: (function, arguments)}`. In the side's process the function prepares its work
            and returns another without arguments, which computes a block and returns its number of
            examples. The first function must be importable, the arguments plain.
        blocks: Timed blocks of each side; one more before them compiles.

    Returns:
        `{name: list of Block}`.
    """
    pools = {}
    blocks_by_side = {name: [] for name in sides}
    with contextlib.ExitStack() as stack:
        for name, (function, arguments) in sides.items():
            context = multiprocessing.get_context("spawn")
            pools[name] = stack.enter_context(concurrent.futures.ProcessPoolExecutor(1, context))
            pools[name].submit(_prepare, function, arguments).result()
        for _ in range(1 + blocks):
            for name, pool in pools.items():
                blocks_by_side[name].append(pool.submit(_time_block).result())
    return {name: blocks[1:] for name, blocks in blocks_by_side.items()}


def _prepare(function, arguments):
    _prepare.compute = function(*arguments)  # kept in the process of the side


def _time_block():
    cpu_start = time.process_time()
    start = time.perf_counter()
    examples = _prepare.compute()
    seconds = time.perf_counter() - start
    return Block(examples, seconds, cpu_seconds=time.process_time() - cpu_start)


def median(blocks):
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
        place = int((number + 0.5) / count * len(items))
        chosen.append(items[place])
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


def build(name, settings, path, seed):
    """Builds the compiled model of a side.

    Args:
        name: A key of `models.MODELS`.
        settings: `{field: value}`, as `--set` takes them.
        path: A prepared dataset.
        seed: That of the weights.

    Returns:
        Model, task, dataset and `Training`.
    """
    runtime.import_keras()

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
    keras.utils.set_random_seed(seed)
    model = spec.build(config)
    task.initialise(model, dataset, training)
    optimizer = task.optimizer(training, 10_000)
    model.compile(optimizer=optimizer, loss=task.loss(training), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model, task, dataset, training


# === Records ===


def define_flags(blocks, steps):
    """Defines the flags of a benchmark that calls `alternate`, with defaults of two."""
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


def report(rows, **measurements):
    """Prints rows, dicts whose keys are columns, and writes them with the rest of the record."""
    if FLAGS.out:
        _write_record({**measurements, "rows": rows})
    for name, value in measurements.items():
        print(f"{name}: {value}")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = []
    for row in rows:
        lines.append([_format(row.get(column, "")) for column in columns])
    print(markdown(columns, lines))


def _write_record(measurements):
    """Writes a record to `--out`.

    It has the command, the measurements to four digits, the hardware and the commit.
    """
    runtime.import_keras()

    from colloquy.engine.provenance import command, hardware, revision

    file, _, name = FLAGS.out.partition(".json/")
    path = pathlib.Path(f"{file}.json")
    records = {}
    if path.exists():
        records = json.loads(path.read_text(encoding="utf-8"))
    records[name] = {
        "command": command(),
        **json.loads(json.dumps(measurements), parse_float=_round),
        "note": FLAGS.note,
        "hardware": hardware(),
        **revision(),
    }
    with atomic_file(path) as file:
        json.dump(records, file, indent=1)


def _round(text):
    return float(f"{float(text):.4g}")


def _format(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
