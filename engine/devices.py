"""Device placement and precision: one device, or JAX data parallelism over all devices of several
hosts.

A batch has the same examples and its loss the same value however many devices share it, up to
rounding.
"""

import contextlib
import os
import pathlib
import shutil
import tempfile

import keras
import numpy as np

from colloquy.base import runtime
from colloquy.base.files import UserError
from colloquy.data.batching import XLA_MULTIPLE
from colloquy.engine.optimizers import sum_by_row

HOSTS = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
"""Environment variable that names the hosts of a training; see docs/devices.md."""


def open_devices(devices):
    """Opens the devices to train on, `one` or `all`: every GPU, else CPU device, of all hosts. Call
    it first of all.

    A backend that cannot use them is a `UserError`.
    """
    backend = keras.config.backend()
    if backend == "jax":
        return JaxDevices(several=_join_jax(devices))
    if devices == "all":
        raise UserError(f"--devices=all needs KERAS_BACKEND=jax. Received: {backend}")
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

    def scope(self):
        """Context to build and train the model in."""
        return contextlib.nullcontext()

    def part_of(self, batch, counts, batch_size):
        """The arrays of a batch that this process computes, `(inputs, targets)` or with weights;
        here all of them.

        Several devices need `counts`, see `engine.task.Task.loss_counts`, and the `batch_size` of a
        whole batch.
        """
        return batch

    def train_step(self, model, batches):
        """Returns a function of one of `batches` that trains a compiled model on it and returns
        `{"loss": value}`.

        On TensorFlow it is one graph for batches of every size, so a resumed training computes by
        the same graph. With `log=True` it adds `gradient_norm`, the global norm before clipping,
        which takes 4 % of a step; else that is 0.
        """
        if keras.config.backend() != "tensorflow":

            def train_on_batch(batch, log=False):
                model.reset_metrics()  # else the loss is a mean over steps
                return {"loss": model.train_on_batch(*batch)}

            return train_on_batch
        import tensorflow as tf

        @tf.function(
            input_signature=[batches.element_spec, tf.TensorSpec((), bool)],
            jit_compile=model.jit_compile,
        )
        def train_step(batch, log=False):
            inputs, targets = batch
            with tf.GradientTape() as tape:
                loss = model.compute_loss(inputs, targets, model(inputs, training=True))
                scaled = model.optimizer.scale_loss(loss)
            gradients = tape.gradient(scaled, model.trainable_weights)
            norm = tf.cond(
                log,
                lambda: tf.linalg.global_norm([sum_by_row(each) for each in gradients]),
                lambda: 0.0,
            )
            norm /= model.optimizer.scale_loss(1.0)
            model.optimizer.apply(gradients, model.trainable_weights)
            return {"loss": loss, "gradient_norm": norm}

        return train_step

    def evaluation_model(self, build, jit):
        """A copy of the model on one device, made by `build`, to score in its place; `None`: the
        model itself.
        """

    @contextlib.contextmanager
    def workdir(self, path, resume):
        """The directory that this process writes into: `path`, or a copy to throw away if another
        host writes that.
        """
        if self.first:
            yield path
            return
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / pathlib.Path(path).name
            if resume:
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns(".*", "tensorboard"))
            yield copy


class JaxDevices(OneDevice):
    """One device of JAX, or all devices of all hosts, which compute one program:
    `keras.distribution.DataParallel`.

    JAX compiles a step for every shape, so all batches are filled up to the same number of
    examples. Each process makes the whole batch and computes its part.
    """

    process, processes = 0, 1

    def __init__(self, several):
        self.distribution = None
        if several:
            import jax

            self.distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
            self.count = self.distribution.num_model_replicas
            self.process, self.processes = jax.process_index(), jax.process_count()
            self.first = self.process == 0

    def scope(self):
        return self.distribution.scope() if self.distribution else super().scope()

    def part_of(self, batch, counts, batch_size):
        whole = -(-batch_size // self.count) * self.count
        arrays = filled_up(*batch, counts, whole, self.count)
        return keras.tree.map_structure(
            lambda array: np.split(array, self.processes)[self.process], arrays
        )

    def evaluation_model(self, build, jit):
        if not self.distribution:
            return None
        model = build()
        choose_xla(model, jit)
        return model


def filled_up(inputs, targets, counts, whole, multiple):
    """Fills a batch up with examples of padding that have no weight: the mean of the weighted
    losses stays the same.

    Arrays with an item for each example are filled up to `whole`, others, such as the distinct
    words of a batch, to a multiple of `multiple`. Returns `(inputs, targets, weights)`, weights
    float32 `(whole,)`.

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


def has_gpu():
    """True if a GPU computes."""
    if keras.config.backend() == "torch":  # whose devices Keras does not list
        import torch

        return torch.cuda.is_available()
    return any(
        "gpu" in device.lower() or "cuda" in device.lower()
        for device in keras.distribution.list_devices()
    )


def choose_xla(model, jit):
    """Makes a model compile by XLA or not; `auto`: with a GPU, and with JAX, which would else
    compute op by op.

    Returns the multiple that lengths of batches are rounded up to.
    """
    model.jit_compile = jit == "on" or (
        jit == "auto" and (keras.config.backend() == "jax" or has_gpu())
    )
    return XLA_MULTIPLE if model.jit_compile else 4


def set_precision(precision):
    """Makes layers built from now on compute in `float32`, `bfloat16` or `float16`, with float32
    weights.
    """
    where = f"{keras.config.backend()} on a {'GPU' if has_gpu() else 'CPU'}"
    runtime.announce(f"runtime: {runtime.describe()}; {where}, computing in {precision}")
    keras.config.set_dtype_policy("float32" if precision == "float32" else f"mixed_{precision}")


def set_seed(seed):
    """Seeds every random number generator, as Keras does, but without loading TensorFlow for it on
    other backends.
    """
    own = keras.config.backend() == "tensorflow"
    with contextlib.nullcontext() if own else runtime.without("tensorflow"):
        keras.utils.set_random_seed(seed)
