"""Device placement and precision: one device, or JAX data parallelism over several.

A batch has the same examples and its loss the same value however many devices share it, up to
rounding.
"""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from colloquy.base import machine, runtime
from colloquy.base.files import PathLike, UserError
from colloquy.data.batching import XLA_MULTIPLE
from colloquy.data.sequences import round_up

HOSTS = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
"""Environment variable that names the hosts of a training; see docs/devices.md."""


def open_devices(devices: str) -> "OneDevice":
    """Opens the devices to train on. Call it first of all.

    Args:
        devices: `one`, or `all`: every GPU, else CPU device, of all hosts.

    Raises:
        UserError: The backend cannot use them.
    """
    if keras.config.backend() == "jax":
        return JaxDevices(several=_join_jax(devices))
    runtime.check_devices(devices)
    return OneDevice()


def _join_jax(devices):
    """Joins the hosts; returns whether there are several devices."""
    if devices == "one":
        if os.environ.get(HOSTS):
            raise UserError(
                f"{HOSTS} names several hosts, so --devices=all is needed. Received: --devices=one"
            )
        return False
    import jax

    if os.environ.get(HOSTS) and not jax.distributed.is_initialized():
        try:
            keras.distribution.initialize()
        except (ValueError, RuntimeError) as error:
            raise UserError(f"the hosts of {HOSTS} could not be joined: {error}") from error
    return len(keras.distribution.list_devices()) > 1


class OneDevice:
    """The one device that Keras chooses by itself."""

    count = 1  # devices that share a batch
    first = True  # this process writes the run; one of several hosts does

    def scope(self) -> contextlib.AbstractContextManager:
        """Context to build and train the model in."""
        return contextlib.nullcontext()

    def part_of(self, batch: Any, counts: Any, batch_size: int) -> Any:
        """The arrays of a batch that this process computes; here all of them.

        Args:
            batch: `(inputs, targets)`.
            counts: `engine.task.Task.loss_counts`, which several devices need.
            batch_size: That of a whole batch.

        Returns:
            `(inputs, targets)`; with weights if there are several devices.
        """
        return batch

    def train_step(self, model: keras.Model, batches: Any) -> Callable:
        """Returns a function that trains a compiled model on one of `batches`.

        The function returns the loss, which stays on the device until it is read.
        """
        if keras.config.backend() == "tensorflow":
            return _tensorflow_train_step(model, batches.element_spec)

        def train_on_batch(batch):
            model.reset_metrics()  # else the loss is a mean over steps
            return model.train_on_batch(*batch)

        return train_on_batch

    def evaluation_model(self, build: Callable[[], keras.Model], jit: str) -> keras.Model | None:
        """A copy of the model on one device, made by `build`, to score in its place.

        `None`: the model itself is scored.
        """
        return None

    @contextlib.contextmanager
    def workdir(self, path: PathLike, resume: bool) -> Iterator[PathLike]:
        """The directory that this process writes into.

        It is `path`, or a copy to throw away if another host writes that.
        """
        if self.first:
            yield path
            return
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / pathlib.Path(path).name
            if resume:
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns(".*"))
            yield copy


def _tensorflow_train_step(model, batch_spec):
    """Makes one graph for batches of every size, so a resumed training computes by the same one."""
    import tensorflow as tf

    @tf.function(input_signature=[batch_spec], jit_compile=model.jit_compile)
    def train_step(batch):
        inputs, targets = batch
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            loss = model.compute_loss(inputs, targets, logits)
            scaled_loss = model.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled_loss, model.trainable_weights)
        model.optimizer.apply(gradients, model.trainable_weights)
        return loss

    return train_step


class JaxDevices(OneDevice):
    """One device of JAX, or all devices of all hosts, which compute one program.

    The program is that of `keras.distribution.DataParallel`. JAX compiles a step for every shape,
    so all batches are padded to the same number of examples. Each process makes the whole batch and
    computes its part.
    """

    process = 0
    processes = 1

    def __init__(self, several: Any) -> None:
        self.distribution = None
        if several:
            import jax

            self.distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
            self.count = self.distribution.num_model_replicas
            self.process, self.processes = jax.process_index(), jax.process_count()
            self.first = self.process == 0

    def scope(self) -> contextlib.AbstractContextManager:
        return self.distribution.scope() if self.distribution else super().scope()

    def part_of(self, batch: Any, counts: Any, batch_size: int) -> Any:
        inputs, targets = batch
        padded_size = round_up(batch_size, self.count)
        arrays = pad_batch(inputs, targets, counts, padded_size, self.count)

        def own_part(array):
            return np.split(array, self.processes)[self.process]

        return keras.tree.map_structure(own_part, arrays)

    def evaluation_model(self, build: Callable[[], keras.Model], jit: str) -> keras.Model | None:
        if not self.distribution:
            return None
        model = build()
        choose_xla(model, jit)
        return model


def pad_batch(
    inputs: dict[str, np.ndarray],
    targets: np.ndarray,
    counts: Callable[[np.ndarray], np.ndarray],
    padded_size: int,
    multiple: int,
) -> tuple:
    """Pads a batch with examples that have no weight: the mean of the weighted losses stays equal.

    Args:
        inputs: Nested arrays.
        targets: Array `(B, ...)`.
        counts: See `engine.task.Task.loss_counts`.
        padded_size: Size of arrays with an item for each example.
        multiple: Sizes of other arrays, such as the distinct words of a batch, become multiples.

    Returns:
        `(inputs, targets, weights)`, weights float32 `(padded_size,)`.

    >>> _, targets, weights = pad_batch(np.array([[5], [6]]), np.array([1, 0]), np.ones_like, 3, 1)
    >>> targets.tolist(), weights.tolist()
    ([1, 0, 0], [1.5, 1.5, 0.0])
    """
    size = len(targets)

    def pad(array):
        if len(array) == size:
            length = padded_size
        else:
            length = round_up(len(array), multiple)
        return _pad_first_axis(array, length)

    padded_targets = pad(targets)
    terms = counts(targets).sum()
    padded_terms = counts(padded_targets).sum()
    weights = np.zeros(len(padded_targets), np.float32)
    weights[:size] = padded_terms / max(terms, 1.0)
    return keras.tree.map_structure(pad, inputs), padded_targets, weights


def _pad_first_axis(array, length):
    padding = [(0, 0)] * array.ndim
    padding[0] = (0, length - len(array))
    return np.pad(array, padding)


def has_gpu() -> bool:
    """True if a GPU computes."""
    if keras.config.backend() == "torch":  # whose devices Keras does not list
        import torch

        return torch.cuda.is_available()
    for device in keras.distribution.list_devices():
        name = device.lower()
        if "gpu" in name or "cuda" in name:
            return True
    return False


def choose_xla(model: keras.Model, jit: str) -> int:
    """Makes a model compile by XLA or not.

    Args:
        jit: `on`, `off`, or `auto`: with a GPU, and with JAX, which would else compute op by op.

    Returns:
        The multiple that lengths of batches are rounded up to.
    """
    if jit == "auto":
        model.jit_compile = keras.config.backend() == "jax" or has_gpu()
    else:
        model.jit_compile = jit == "on"
    return XLA_MULTIPLE if model.jit_compile else 4


PRECISIONS = ("auto", "float32", "bfloat16", "float16")


def choose_precision(precision: str, gains: bool = True) -> str:
    """Chooses the precision to compute in, and warns once if the CPU only emulates it.

    Args:
        precision: One of `PRECISIONS`; any but `"auto"` is returned as it is.
        gains: Whether bfloat16 makes the model faster; `"auto"` is float32 otherwise.
    """
    if precision not in PRECISIONS:
        raise UserError(f"precision: expected {', '.join(PRECISIONS)}. Received: {precision}")
    gpu = has_gpu()
    has_bfloat16 = gpu or machine.bfloat16_instructions() is not None
    if precision == "auto":
        return "bfloat16" if gains and has_bfloat16 else "float32"
    if precision == "bfloat16" and not has_bfloat16:
        runtime.announce(
            "warning: this CPU emulates bfloat16, several times slower than float32; "
            "--precision=auto avoids it"
        )
    if precision == "float16" and not gpu:
        runtime.announce(
            "warning: float16 is for GPUs; a CPU emulates most of it, several times slower than "
            "float32"
        )
    return precision


def set_precision(precision: str) -> None:
    """Makes layers built from now on compute in `float32`, `bfloat16` or `float16`.

    Their weights stay float32.
    """
    device = "GPU" if has_gpu() else "CPU"
    where = f"{keras.config.backend()} on a {device}"
    runtime.announce(f"runtime: {runtime.describe()}; {where}, computing in {precision}")
    policy = "float32" if precision == "float32" else f"mixed_{precision}"
    keras.config.set_dtype_policy(policy)


def set_seed(seed: int) -> None:
    """Seeds every random number generator, as Keras does.

    Other backends do not load TensorFlow for it.
    """
    hides_tensorflow: contextlib.AbstractContextManager = contextlib.nullcontext()
    if keras.config.backend() != "tensorflow":
        hides_tensorflow = runtime.without("tensorflow")
    with hides_tensorflow:
        keras.utils.set_random_seed(seed)
