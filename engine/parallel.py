"""Evaluation of several batches at once.

Two batches on a core each take less time than one after the other on both cores.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import keras

from colloquy.base import runtime
from colloquy.data.batching import THREADS, ahead
from colloquy.engine.checkpoints import checkpoint

MOST = 4  # batches at once: each takes memory


def batches_at_once() -> int:
    """Batches that are computed at once: at most one per core; 1 on a GPU and on other backends."""
    if keras.config.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return 1
    return min(runtime.available_cpus(), MOST)


def share_cores() -> None:
    """Gives each batch its part of the cores; `TF_NUM_INTRAOP_THREADS` wins.

    Call it before TensorFlow computes.
    """
    has_own_setting = runtime.user_value("TF_NUM_INTRAOP_THREADS") is not None
    if keras.config.backend() != "tensorflow" or has_own_setting:
        return
    import tensorflow as tf

    threads = runtime.available_cpus() // batches_at_once()
    tf.config.threading.set_intra_op_parallelism_threads(threads)


def exclusive_calls() -> AbstractContextManager:
    """A context for the calls of a model by several threads: a lock, but on TensorFlow none.

    On JAX a model lacks its weights while `predict_on_batch` computes.
    """
    if keras.config.backend() == "tensorflow":
        return contextlib.nullcontext()
    return threading.Lock()


def compile_for_all_sizes(model: keras.Model, inputs: Any = None) -> None:
    """Makes one graph of a model's `predict_on_batch` for inputs of every size.

    It is made before the first batch. By itself TensorFlow makes one for the first size, and
    further ones for others. `inputs` are those of a model that is not functional, as
    `keras.KerasTensor`s.
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
    """Yields `(batch, compute(make_inputs(batch)))` for each of a list of batches, several of them
    computed at once.

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
    """Yields `compute(x)` for each of some inputs, in their order, and computes the next ones
    meanwhile.

    A functional `model`, whose `predict_on_batch` it calls, is compiled first.

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
