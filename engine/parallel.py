"""Computes several batches of a model at once.

On two cores, two batches side by side take less time than one after the other on both.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import keras

from colloquy.base import machine, runtime
from colloquy.data.batching import THREADS, ahead
from colloquy.engine.cancellation import checkpoint

MAX_BATCHES_AT_ONCE = 4  # each takes memory of its own


def batches_at_once() -> int:
    """The number of batches to compute at once: one on GPUs and on other backends than TensorFlow,
    else one per core, at most four.
    """
    if keras.config.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return 1
    return min(machine.available_cpus(), MAX_BATCHES_AT_ONCE)


def share_cores() -> None:
    """Limits each batch to its part of the cores, unless the user has set `TF_NUM_INTRAOP_THREADS`.

    It is for a process that only scores. Call it before TensorFlow computes.
    """
    has_own_setting = runtime.user_value("TF_NUM_INTRAOP_THREADS") is not None
    if keras.config.backend() != "tensorflow" or has_own_setting:
        return
    import tensorflow as tf

    threads = machine.available_cpus() // batches_at_once()
    tf.config.threading.set_intra_op_parallelism_threads(threads)


def exclusive_calls() -> AbstractContextManager:
    """Returns a context that lets one thread at a time call a model; on TensorFlow, all threads.

    On JAX, Keras gives the weights to the compiled `predict_on_batch`: until it returns, the model
    has none for another thread.
    """
    if keras.config.backend() == "tensorflow":
        return contextlib.nullcontext()
    return threading.Lock()


def compile_for_all_sizes(model: keras.Model, inputs: Any = None) -> None:
    """Makes one TensorFlow graph of a model's `predict_on_batch` for inputs of every size.

    By itself TensorFlow makes a graph for the size of the first batch, and again for others.

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
    model.predict_function.get_concrete_function([(specs,)])


def results_of(
    compute: Callable,
    make_inputs: Callable,
    batches: Any,
    model: keras.Model | None = None,
    progress: Callable = iter,
) -> Iterator[tuple]:
    """Yields `(batch, compute(make_inputs(batch)))` for each of a list of batches, see `in_order`.

    Args:
        compute: A function of nested NumPy arrays.
        make_inputs: See `make_batch` of `data.batching.stream_batches`.
        model: See `in_order`.
        progress: Wraps the list, to show progress.

    >>> [int(total) for _, total in results_of(sum, lambda size: 7 * np.ones(size), [2, 3])]
    [14, 21]
    """
    if not len(batches):
        return
    inputs = ahead(make_inputs, batches, THREADS)
    results = in_order(compute, inputs, model)
    yield from zip(progress(batches), results, strict=True)


def in_order(compute: Callable, inputs: Any, model: keras.Model | None = None) -> Iterator[Any]:
    """Yields `compute(x)` for each of some inputs, in their order.

    Where `batches_at_once` is above 1, threads compute the next ones meanwhile. `model` is the
    functional model whose `predict_on_batch` `compute` calls; it is compiled first.

    >>> list(in_order(abs, [-3, 2, -1]))
    [3, 2, 1]
    """
    if model is not None:
        compile_for_all_sizes(model)
    at_once = batches_at_once()
    results = map(compute, inputs) if at_once == 1 else ahead(compute, inputs, at_once)
    for result in results:
        yield result
        checkpoint()
