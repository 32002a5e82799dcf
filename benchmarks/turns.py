"""What the benchmarks share: sides that compute in turn, each in its own process, so that its memory is its own; DAM
without what makes it fast; and the record of what was measured."""

import json
import multiprocessing
import resource
import shlex
import statistics
import sys
import traceback

from base.files import UserError, atomic_file


def in_turn(sides, blocks):
    """Times some sides: a block of each, one after the other, again and again.

    Args:
        sides: List of `(function, arguments)`. In the side's process the function sets things up and returns
            another without arguments, which computes a block and returns how many examples per second it did. The first
            must be importable, the arguments plain.
        blocks: Timed blocks of each side; one more goes before, which compiles.

    Returns:
        For each side the median over its blocks and the peak memory of its process in GB.

    Raises:
        UserError: where a side fails; its error stands on the terminal.
    """
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    for function, arguments in sides:
        here, there = context.Pipe()
        workers.append(context.Process(target=_serve, args=(function, arguments, there), daemon=True))
        workers[-1].start()
        there.close()  # so that the end of the process is the end of the pipe
        pipes.append(here)
    found = [[] for _ in sides]
    try:
        for _ in range(1 + blocks):
            for pipe, of_side in zip(pipes, found, strict=True):
                pipe.send("block")
                of_side.append(pipe.recv())
    except (EOFError, BrokenPipeError):
        raise UserError("a side of the comparison failed; its error stands above") from None
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()
    return [
        (statistics.median(speed for speed, _ in of_side[1:]), max(memory for _, memory in of_side))
        for of_side in found
    ]


def _serve(function, arguments, pipe):
    try:
        block = function(*arguments)
        while pipe.recv():
            speed = block()
            pipe.send((speed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))
    except UserError as error:
        print(f"error: {error}", flush=True)
    except (EOFError, KeyboardInterrupt):
        pass
    except Exception:
        traceback.print_exc()


def use_plain_layers():
    """Gives every DAM made hereafter in this process Keras's own layer normalisation, and a product a sentence.

    That is how Keras layers compute it unaided: weights, and sentences that several attend to, are multiplied with each
    sentence alone.
    """
    import keras

    from layers import attentive_module, row_products

    attentive_module.LayerNorm = keras.layers.LayerNormalization
    attentive_module.matrix_product = lambda x, product: product(x)
    row_products._shared_axis = lambda x, y: None


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

    from engine.runs import set_precision
    from engine.settings import make_config
    from engine.training import Fit, expand_compatibility
    from models import MODELS
    from tasks import TASKS

    name, settings = parse_side(side)
    set_precision(settings.pop("precision", "float32"))
    entry = MODELS[name]
    task = TASKS[entry.task]
    dataset = task.load_dataset(path)
    keras.utils.set_random_seed(seed)
    settings = expand_compatibility(entry, task, settings)
    known = entry.config.__dataclass_fields__
    chosen = {field: value for field, value in settings.items() if field in known}
    training = make_config(task.Training, {field: value for field, value in settings.items() if field not in known})
    model = entry.build(make_config(entry.config, task.model_settings(dataset, chosen)))
    task.initialise(model, dataset, training)
    optimizer = task.optimizer(training, Fit(**task.fit).learning_rate, 10_000)
    model.compile(optimizer=optimizer, loss=task.loss(training), jit_compile=False)
    return model, task, dataset, training
