"""The devices of a training: one, or with JAX several that share each batch.

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

from colloquy.base.backend import check_devices
from colloquy.base.files import PathLike, UserError
from colloquy.data.sequences import round_up
from colloquy.engine.devices import choose_xla

HOSTS = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
"""Environment variable that names the hosts of a training; see docs/devices.md."""


def open_devices(devices: str) -> "Devices":
    """Opens the devices to train on. Call it before anything is computed.

    Args:
        devices: `one`, or `all`: every GPU of all hosts; without GPUs, every CPU device.

    Raises:
        UserError: The backend cannot use them.
    """
    if keras.config.backend() != "jax":
        check_devices(devices)
        return Devices()
    if devices == "one":
        if os.environ.get(HOSTS):
            raise UserError(
                f"{HOSTS} names several hosts, so --devices=all is needed. Received: --devices=one"
            )
        return OneJaxDevice()
    _join_hosts()
    if len(keras.distribution.list_devices()) > 1:
        return JaxDevices()
    return OneJaxDevice()


def _join_hosts():
    """Connects this process to those of the other hosts, if there are any."""
    import jax

    if os.environ.get(HOSTS) and not jax.distributed.is_initialized():
        try:
            keras.distribution.initialize()
        except (ValueError, RuntimeError) as error:
            raise UserError(f"the hosts of {HOSTS} could not be joined: {error}") from error


class Devices:
    """The devices of a training: here the one that Keras chooses by itself."""

    count = 1
    """The number of devices that share a batch."""

    def scope(self) -> contextlib.AbstractContextManager:
        """Context to build and train the model in."""
        return contextlib.nullcontext()

    def part_of(self, batch: Any, count_terms: Any, batch_size: int) -> Any:
        """The arrays of a batch that this process computes; here all of them.

        Args:
            batch: `(inputs, targets)`.
            count_terms: `engine.task.Task.loss_counts`, by which JAX weights padded batches.
            batch_size: Examples of a full batch; the last ones of an epoch may be smaller.

        Returns:
            `(inputs, targets)`; with JAX `(inputs, targets, weights)`.
        """
        return batch

    def train_step(self, model: keras.Model, batches: Any) -> Callable:
        """Returns a function that trains a compiled model on one of `batches`.

        The function returns the loss, which stays on the device until it is read.
        """
        if keras.config.backend() == "tensorflow":
            return _tensorflow_train_step(model, batches.element_spec)

        def train_on_batch(batch):
            # Without the reset, the loss would be a mean over all steps so far.
            model.reset_metrics()
            return model.train_on_batch(*batch)

        return train_on_batch

    def evaluation_model(self, build: Callable, jit: str) -> keras.Model | None:
        """Makes a second model by `build`, if the trained one cannot score dev itself.

        It scores dev with the weights of the trained one. Here `None`: no second model is needed.
        """
        return None

    @contextlib.contextmanager
    def workdir(self, path: PathLike, resume: bool) -> Iterator[PathLike]:
        """The directory that this process writes the run into; here `path`."""
        yield path


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


class OneJaxDevice(Devices):
    """One device of JAX, which compiles a step for every shape: all batches get the same size."""

    def part_of(self, batch: Any, count_terms: Any, batch_size: int) -> Any:
        return pad_batch(batch, count_terms, batch_size, multiple=1)


class JaxDevices(Devices):
    """All devices of JAX on all hosts, by `keras.distribution.DataParallel`.

    Each host has one process. It makes the whole batch and computes its part.
    """

    def __init__(self) -> None:
        import jax

        self.distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
        self.count = self.distribution.num_model_replicas
        self.process = jax.process_index()
        self.processes = jax.process_count()

    def scope(self) -> contextlib.AbstractContextManager:
        return self.distribution.scope()

    def part_of(self, batch: Any, count_terms: Any, batch_size: int) -> Any:
        padded_size = round_up(batch_size, self.count)
        padded_batch = pad_batch(batch, count_terms, padded_size, multiple=self.count)

        def own_part(array):
            return np.split(array, self.processes)[self.process]

        return keras.tree.map_structure(own_part, padded_batch)

    def evaluation_model(self, build: Callable, jit: str) -> keras.Model | None:
        # Each process scores all of dev by itself, on one device. Inside of `scope` this model
        # would be on all devices, so it is built outside.
        model = build()
        choose_xla(model, jit)
        return model

    @contextlib.contextmanager
    def workdir(self, path: PathLike, resume: bool) -> Iterator[PathLike]:
        """The first process writes into `path`, the others into a directory that is removed."""
        if self.process == 0:
            yield path
            return
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / pathlib.Path(path).name
            if resume:
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns(".*"))
            yield copy


# === Padding of batches ===


def pad_batch(batch: tuple, count_terms: Callable, padded_size: int, multiple: int) -> tuple:
    """Pads a batch with examples of weight 0.

    The loss sums the weighted terms and divides by the number of all terms, padding included. So
    the weight of a real example is `all terms / real terms`, and the loss stays the mean over the
    real ones.

    Args:
        batch: `(inputs, targets)`, nested arrays and an array `(B, ...)`.
        count_terms: See `engine.task.Task.loss_counts`.
        padded_size: Examples of the padded batch: the size of arrays of B items.
        multiple: Other arrays, such as the distinct words of a batch, are padded to a multiple.

    Returns:
        `(inputs, targets, weights)`, weights float32 `(padded_size,)`.

    >>> batch = (np.array([[5], [6]]), np.array([1, 0]))
    >>> _, targets, weights = pad_batch(batch, np.ones_like, padded_size=3, multiple=1)
    >>> targets.tolist(), weights.tolist()
    ([1, 0, 0], [1.5, 1.5, 0.0])
    """
    inputs, targets = batch
    size = len(targets)

    def pad(array):
        length = padded_size if len(array) == size else round_up(len(array), multiple)
        padding = np.zeros((length - len(array), *array.shape[1:]), array.dtype)
        return np.concatenate([array, padding])

    padded_targets = pad(targets)
    real_terms = count_terms(targets).sum()
    all_terms = count_terms(padded_targets).sum()
    weights = np.zeros(len(padded_targets), np.float32)
    weights[:size] = all_terms / max(real_terms, 1.0)
    return keras.tree.map_structure(pad, inputs), padded_targets, weights
