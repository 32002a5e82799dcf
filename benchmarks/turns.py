"""What the benchmarks share: sides that compute in turn, each in its own process, so that its memory is its own; DAM
without what makes it fast; and the record of what was measured."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import resource
import shlex
import statistics
import sys
import time
import traceback

from absl import flags

from base import runtime
from base.files import UserError, atomic_file


@dataclasses.dataclass(frozen=True)
class Block:
    """What a side did in one block."""

    examples: float
    """How many it was."""
    speed: float
    """Examples per second."""
    cpu_speed: float
    """Examples per second of CPU time, which other work on the machine disturbs less."""
    faults: int
    """Page faults: memory taken from the kernel anew."""
    gigabytes: float
    """Peak memory of the process so far."""


@dataclasses.dataclass(frozen=True)
class Side:
    """The timed blocks of a side; block `i` of one side was computed beside block `i` of the others."""

    blocks: list[Block]

    @property
    def speed(self):
        """Examples per second, the median over blocks."""
        return statistics.median(block.speed for block in self.blocks)

    @property
    def gigabytes(self):
        """Peak memory."""
        return max(block.gigabytes for block in self.blocks)

    def seconds(self, field="speed"):
        """Of a block, the mean over blocks."""
        return statistics.mean(block.examples / getattr(block, field) for block in self.blocks)

    def medians(self):
        """What a record says of a side."""
        fields = {"per_second": "speed", "per_cpu_second": "cpu_speed", "page_faults": "faults"}
        found = {name: statistics.median(getattr(b, field) for b in self.blocks) for name, field in fields.items()}
        return {**found, "gigabytes": self.gigabytes}

    def ratio(self, other, field="speed"):
        """How many times as fast it is as another side: the median over pairs of blocks."""
        pairs = zip(self.blocks, other.blocks, strict=True)
        return statistics.median(getattr(mine, field) / getattr(theirs, field) for mine, theirs in pairs)


def in_turn(sides, blocks, warm_up=1):
    """Times some sides: a block of each, one after the other, again and again.

    Args:
        sides: List of `(function, arguments)` or `(function, arguments, environment)`. In the side's process, which has
            these environment variables, the function prepares its work and returns another without arguments, that
            computes a block and returns how many examples per second it did, or a `Block` where it had another
            process do it. The first must be importable, the arguments plain.
        blocks: Timed blocks of each side.
        warm_up: Blocks that go before, which compile.

    Returns:
        A `Side` for each.

    Raises:
        UserError: where a side fails; its error stands on the terminal.
    """
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    for function, arguments, *environment in sides:
        here, there = context.Pipe()
        workers.append(context.Process(target=_serve, args=(function, arguments, there), daemon=True))
        with _environment(*environment):
            workers[-1].start()
        there.close()  # so that the end of the process is the end of the pipe
        pipes.append(here)
    found = [[] for _ in sides]
    try:
        for _ in range(warm_up + blocks):
            for pipe, of_side in zip(pipes, found, strict=True):
                pipe.send("block")
                of_side.append(pipe.recv())
    except (EOFError, ConnectionError):  # which a broken pipe is too
        raise UserError("a side of the comparison failed; its error stands above") from None
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()
    return [Side(of_side[warm_up:]) for of_side in found]


@contextlib.contextmanager
def _environment(changes=()):
    """Environment variables for a process that is started meanwhile: there they count as the user's."""
    kept = dict(os.environ)
    chosen = kept.get(runtime.CHOSEN, "").split(",")
    os.environ.update(changes, **{runtime.CHOSEN: ",".join(name for name in chosen if name not in changes)})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _serve(function, arguments, pipe):
    try:
        block = function(*arguments)
        while pipe.recv():
            before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            speed = block()
            if isinstance(speed, Block):
                pipe.send(speed)
                continue
            after, seconds = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - started
            cpu = sum(after[:2]) - sum(before[:2])
            faults = after.ru_minflt - before.ru_minflt
            pipe.send(Block(speed * seconds, speed, speed * seconds / cpu, faults, after.ru_maxrss / 2**20))
    except UserError as error:
        print(f"error: {error}", flush=True)
    except (EOFError, KeyboardInterrupt):
        pass
    except Exception:
        traceback.print_exc()


def define_flags(blocks, steps):
    """The flags of a benchmark whose sides are timed in turn; `blocks` and `steps` are defaults."""
    flags.DEFINE_integer("blocks", blocks, "Timed blocks of each side.", lower_bound=1)
    flags.DEFINE_integer("steps", steps, "Steps per block.", lower_bound=1)
    flags.DEFINE_integer("seed", 1, "Of weights and batches.", lower_bound=0)
    flags.DEFINE_string("note", None, "What else the machine did meanwhile, for the record.")
    flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")


def use_plain_layers():
    """Gives every DAM made hereafter in this process Keras's own layer normalisation."""
    import keras

    from layers import attentive_module

    attentive_module.LayerNorm = keras.layers.LayerNormalization


def write_record(path, script, **measured):
    """Writes what a benchmark measured as JSON, with its command, the hardware and the commit.

    Args:
        path: The file; `None`: nothing is written.
        script: Name of the benchmark's module in this package.
        **measured: What it found, in this order.
    """
    from engine.provenance import hardware, revision  # TensorFlow takes seconds to load

    if path:
        command = shlex.join(["python", "-m", f"benchmarks.{script}", *sys.argv[1:]])
        record = {"command": command, **measured, "hardware": hardware(), **revision()}
        with atomic_file(path) as file:
            json.dump(record, file, indent=1)


def parse_side(text):
    """`MODEL[,field=value...]` as the model's name and its settings.

    >>> parse_side("dam,levels=2,precision=bfloat16")
    ('dam', {'levels': '2', 'precision': 'bfloat16'})
    """
    name, *assignments = text.split(",")
    for assignment in assignments:
        if "=" not in assignment:
            raise UserError(f"expected MODEL[,field=value...]. Received: {text}")
    return name, dict(assignment.split("=", 1) for assignment in assignments)


def side_of_recipe(name):
    """A recipe as `benchmarks.turns.parse_side` takes it, and its batch size."""
    from tasks import RECIPES

    if name not in RECIPES:
        raise UserError(f"--recipe expects one of {', '.join(RECIPES)}. Received: {name}")
    recipe = RECIPES[name]
    settings = {"precision": "float32", **recipe.config, **recipe.training}
    side = ",".join([recipe.model, *(f"{field}={value}" for field, value in settings.items())])
    return side, recipe.training["batch_size"]


def make_model_config(side, path):
    """The config of a side's model, its task, its dataset, the task's `Training`, and its row of `models.MODELS`."""
    from models import MODELS
    from tasks import TASKS

    name, settings = parse_side(side)
    spec = MODELS[name]
    task = TASKS[spec.task]
    dataset = task.load_dataset(path)
    config, training = task.configure(spec, dataset, {"precision": "float32", **settings})
    return config, task, dataset, training, spec


def build(side, path, seed):
    """The model of a side, compiled for training, in its precision.

    Args:
        side: As `parse_side` takes it; `precision` and `compatibility` are fields too.
        path: A prepared dataset.
        seed: Of the weights.

    Returns:
        The model, its task, the dataset and the task's `Training`.
    """
    import keras

    from engine.devices import set_precision

    config, task, dataset, training, spec = make_model_config(side, path)
    set_precision(training.precision)
    keras.utils.set_random_seed(seed)
    model = spec.build(config)
    task.initialise(model, dataset, training)
    optimizer = task.optimizer(training, 10_000, model.config)
    model.compile(optimizer=optimizer, loss=task.loss(training), jit_compile=False)
    return model, task, dataset, training
