"""Which devices a training computes on: one, or all of a host, or with JAX all of several hosts.

A batch has the same examples and its loss the same value however many devices share it, so several learn what one
learns, but for rounding, and with TensorFlow for dropout, of which each draws its own.

Letters: B examples of a batch
"""

import contextlib
import functools
import os
import pathlib
import shutil
import tempfile

import keras
import numpy as np

from base.files import UserError
from data.stream import as_dataset

DEVICES = ("one", "all")
HOSTS = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
"""Environment variable that names the hosts of a training; see docs/devices.md."""


def open_devices(devices, jit="auto"):
    """The devices to train on. To be called before anything computes.

    Args:
        devices: `one`, or `all`: every GPU, else every CPU device, of this host, or with JAX of all hosts.
        jit: As of `engine.xla.choose_xla`.

    Returns:
        A `OneDevice`.

    Raises:
        UserError: where this backend, or this `jit`, knows one device only.
    """
    backend = keras.config.backend()
    if backend == "jax":
        return _open_jax(devices)
    if devices == "one":
        return OneDevice()
    if backend != "tensorflow":
        raise UserError(f"--devices=all needs KERAS_BACKEND=tensorflow or jax. Received: {backend}")
    import tensorflow as tf

    names = [device.name for device in tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")]
    if len(names) == 1:
        return OneDevice()
    if jit == "on":
        raise UserError(f"--jit=on with TensorFlow is for one device. Received: --devices=all, which are {len(names)}")
    return Replicas(names)


def _open_jax(devices):
    if devices == "one":
        if os.environ.get(HOSTS):
            raise UserError(f"{HOSTS} names several hosts, which needs --devices=all. Received: --devices=one")
        return PaddedBatches()
    import jax

    if os.environ.get(HOSTS) and not jax.distributed.is_initialized():
        try:
            keras.distribution.initialize()
        except (ValueError, RuntimeError) as error:
            raise UserError(f"the hosts of {HOSTS} could not be joined: {error}") from error
    return Sharded() if len(keras.distribution.list_devices()) > 1 else PaddedBatches()


class OneDevice:
    """The one device that Keras chooses by itself."""

    count = 1
    """Devices that share a batch."""
    first = True
    """Whether this process is the one that writes the run; with several hosts one of them does."""
    xla = True
    """Whether a step can be compiled by XLA."""

    def scope(self):
        """A context in which model and optimizer are made and compiled."""
        return contextlib.nullcontext()

    def fitting(self):
        """A context in which `fit` is called."""
        return contextlib.nullcontext()

    def prepare(self, model):
        """Makes a model that was compiled in `scope` ready for `fit`."""
        model.optimizer.build(model.trainable_variables)  # else `fit` traces the first step twice

    def scorer(self, build):
        """The model that is scored in place of the trained one: `None`, or its copy on one device.

        Args:
            build: Makes a model.
        """
        return None

    def dataset(self, batches, collate, counts, batch_size):
        """What `fit` takes.

        Args:
            batches: Iterable of what `collate` takes.
            collate: Makes `(inputs, targets)` of a batch.
            counts: Of targets, how many of what the loss averages over each example has, float `(B,)`; see
                `engine.task.Task.loss_counts`.
            batch_size: Examples of a whole batch.
        """
        return as_dataset(map(collate, batches))

    @contextlib.contextmanager
    def workdir(self, path, resume):
        """The directory that this process writes into: `path`, or in another than the first one that is thrown away.

        Args:
            path: A run's directory, to which all hosts must have access where it is resumed.
            resume: Whether it holds a run.
        """
        if self.first:
            yield path
            return
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / pathlib.Path(path).name
            if resume:
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns(".*", "tensorboard"))
            yield copy


# === TensorFlow ===


class Replicas(OneDevice):
    """Devices of this host that have a copy of the model each: TensorFlow's `MirroredStrategy`.

    Each collates its own part of a batch, so that parts may differ in size.
    """

    xla = False

    def __init__(self, names):
        self.count, self.strategy = len(names), _strategy(tuple(names))

    def scope(self):
        return self.strategy.scope()

    def prepare(self, model):
        super().prepare(model)
        model._maybe_symbolic_build = lambda **_: None  # all is built, and it would add up parts of different sizes
        _sum_before_clipping(model.optimizer)

    def scorer(self, build):
        return build()

    def dataset(self, batches, collate, counts, batch_size):
        parts = (part for batch in batches for part in weighted_parts(batch, self.count, collate, counts))
        return self.strategy.distribute_datasets_from_function(lambda _: as_dataset(parts))


@functools.cache  # a second strategy would number its sums as the first one did, and TensorFlow would mix them up
def _strategy(names):
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(names)


def _sum_before_clipping(optimizer):
    """Lets an optimizer sum gradients over the replicas before it does anything: Keras would clip those of each."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer, which checks them
    apply, sum_over_replicas = optimizer.apply, inner._all_reduce_sum_gradients

    def apply_sum(grads, trainable_variables):
        pairs = sum_over_replicas(zip(grads, trainable_variables, strict=True))
        return apply([gradient for gradient, _ in pairs], trainable_variables)

    optimizer.apply = apply_sum
    inner._all_reduce_sum_gradients = lambda pairs: pairs


def weighted_parts(batch, count, collate, counts):
    """Cuts a batch into parts, the weighted mean of whose losses is the loss of the batch.

    Args:
        batch: Arrays with an item for each example, alone or in tuples with what holds for all examples.
        count: How many parts; of fewer examples some parts are the first one again, with weight 0.
        collate, counts: As of `OneDevice.dataset`.

    Yields:
        `(inputs, targets, weights)`, weights float32 `(B,)`.

    >>> parts = weighted_parts(np.array([5, 6, 7, 8]), 3, lambda x: (x, x), np.ones_like)
    >>> [(inputs.tolist(), weights.tolist()) for inputs, _, weights in parts]
    [([5, 6], [1.5, 1.5]), ([7], [0.75]), ([8], [0.75])]
    """
    size = next(len(x) for x in keras.tree.flatten(batch) if isinstance(x, np.ndarray))
    parts = []
    for rows in np.array_split(np.arange(size), count):
        kept = rows if len(rows) else [0]
        part = keras.tree.map_structure(lambda x, kept=kept: x[kept] if isinstance(x, np.ndarray) else x, batch)
        inputs, targets = collate(part)
        parts.append((inputs, targets, counts(targets).sum() if len(rows) else 0.0))
    total = max(sum(found for *_, found in parts), 1.0)
    for inputs, targets, found in parts:
        yield inputs, targets, np.full(len(targets), count * found / total, np.float32)


# === JAX ===


class PaddedBatches(OneDevice):
    """One device of JAX, which compiles a step for every shape: all batches are filled up to the same examples."""

    def prepare(self, model):
        super().prepare(model)
        model._symbolic_build = lambda **_: None  # all is built, and it would take a batch from the generator

    def dataset(self, batches, collate, counts, batch_size):
        whole = -(-batch_size // self.count) * self.count
        return (self._mine(filled_up(*collate(batch), counts, whole, self.count)) for batch in batches)

    def _mine(self, arrays):
        return arrays


class Sharded(PaddedBatches):
    """All devices of all hosts, which compute one program: `keras.distribution.DataParallel`.

    Each process makes the whole batch and hands in what its own devices compute.
    """

    def __init__(self):
        self.distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
        self.count = self.distribution.num_model_replicas
        import jax

        self.process, self.processes = jax.process_index(), jax.process_count()
        self.first = self.process == 0

    def scope(self):
        return self.distribution.scope()

    fitting = scope

    def scorer(self, build):
        return build()

    def _mine(self, arrays):
        def part(array):
            return np.split(array, self.processes)[self.process]

        return keras.tree.map_structure(part, arrays)


def filled_up(inputs, targets, counts, whole, multiple):
    """Fills a batch up with examples of padding that weigh nothing.

    Args:
        inputs: Arrays; those with an item for each example are filled up to `whole`, others, as the distinct words of a
            batch, to a multiple of `multiple`.
        targets: Array with an item for each example.
        counts: As of `OneDevice.dataset`.

    Returns:
        `(inputs, targets, weights)`, weights float32 `(B,)`: the mean of the weighted losses is what it was.

    >>> _, targets, weights = filled_up(np.array([[5], [6]]), np.array([1, 0]), np.ones_like, 3, 1)
    >>> targets.tolist(), weights.tolist()
    ([1, 0, 0], [1.5, 1.5, 0.0])
    """
    size = len(targets)

    def fill(array):
        length = whole if len(array) == size else -(-len(array) // multiple) * multiple
        return np.pad(array, [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1))

    filled = fill(targets)
    weights = np.zeros(len(filled), np.float32)
    weights[:size] = counts(filled).sum() / max(counts(targets).sum(), 1.0)
    return keras.tree.map_structure(fill, inputs), filled, weights
