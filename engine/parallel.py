"""Computes several batches of a model at once.

Two cores compute two batches sooner if each core computes one than if both share the work on each.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from colloquy.base import machine, runtime
from colloquy.data.streaming import THREADS, ahead
from colloquy.engine.cancellation import checkpoint

MAX_BATCHES_AT_ONCE = 4
"""Each batch takes memory of its own."""


def batches_at_once() -> int:
    """Returns the number of batches to compute at once.

    It is 1 on a GPU or on a backend other than TensorFlow, otherwise the number of cores, at most
    `MAX_BATCHES_AT_ONCE`.
    """
    if keras.config.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return 1
    return min(machine.available_cpus(), MAX_BATCHES_AT_ONCE)


def share_cores() -> None:
    """Limits each batch to its part of the cores, unless the user has set `TF_NUM_INTRAOP_THREADS`.

    Only for a process that does nothing but score. Call it before TensorFlow computes: later,
    TensorFlow raises a `RuntimeError`.
    """
    has_own_setting = runtime.user_value("TF_NUM_INTRAOP_THREADS") is not None
    if keras.config.backend() != "tensorflow" or has_own_setting:
        return
    import tensorflow as tf

    threads = machine.available_cpus() // batches_at_once()
    tf.config.threading.set_intra_op_parallelism_threads(threads)


def exclusive_calls() -> contextlib.AbstractContextManager:
    """Returns a context manager around calls of a model: a lock, or on TensorFlow, where calls may
    overlap, one that does nothing.

    On JAX, Keras donates the weights to the compiled `predict_on_batch`: until it returns, the
    model has none for another thread.
    """
    if keras.config.backend() == "tensorflow":
        return contextlib.nullcontext()
    return threading.Lock()


def compile_for_all_sizes(model: keras.Model, inputs: Any = None) -> None:
    """Makes one TensorFlow graph of a model's `predict_on_batch` for inputs of every size.

    Otherwise TensorFlow makes a graph for the first batch's size, and another when the size
    changes.

    Args:
        model: The model.
        inputs: `keras.KerasTensor`s of a model that is not functional; `None`: `model.input`.
    """
    if keras.config.backend() != "tensorflow":
        return
    import tensorflow as tf

    if inputs is None:
        inputs = model.input
    specs = keras.tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), inputs)
    model.make_predict_function()
    # `predict_on_batch` calls it so: with a list of one batch, which is a tuple of its inputs.
    model.predict_function.get_concrete_function([(specs,)])


def results_of(
    compute: Callable, make_inputs: Callable, batches: Sequence, progress: Callable = iter
) -> Iterator[tuple]:
    """Yields `(batch, compute(make_inputs(batch)))` for each of a list of batches, see `in_order`.

    Args:
        compute: A function of nested NumPy arrays.
        make_inputs: A function of a batch that returns nested NumPy arrays. Several threads call
            it.
        progress: Wraps the list, to show progress.

    >>> list(results_of(sum, lambda size: [7] * size, [2, 3]))
    [(2, 14), (3, 21)]
    """
    inputs = ahead(make_inputs, batches, THREADS)
    results = in_order(compute, inputs)
    yield from zip(progress(batches), results, strict=True)


def in_order(compute: Callable, inputs: Any) -> Iterator[Any]:
    """Yields `compute(x)` for each of some inputs, in their order.

    Where `batches_at_once` is above 1, threads compute the next ones meanwhile.

    >>> list(in_order(abs, [-3, 2, -1]))
    [3, 2, 1]
    """
    at_once = batches_at_once()
    results = map(compute, inputs) if at_once == 1 else ahead(compute, inputs, at_once)
    for result in results:
        yield result
        checkpoint()
