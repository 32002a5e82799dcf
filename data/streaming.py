"""Makes the next batches of a training while one is computed.

`tf.data` makes them on TensorFlow, threads of Python elsewhere.
"""

import collections
import concurrent.futures
import contextvars
from collections.abc import Callable, Iterable, Iterator
from typing import Any

THREADS = 2
"""Batches that are made at once."""
PREFETCHED = 4
"""Finished batches that wait, on TensorFlow."""


def stream_batches(make_batch: Callable[[int], Any], first_step: int, last_step: int) -> Any:
    """Streams the batches of the steps `range(first_step, last_step)`, and makes the next ones
    while one is computed.

    Args:
        make_batch: A pure function of a step that returns nested dicts or tuples of NumPy arrays.
            Their structure, ranks and dtypes are the same at every step. Several threads call it.

    Returns:
        On TensorFlow a `tf.data.Dataset` whose elements have open sizes, elsewhere an iterator of
        NumPy arrays.
    """
    import keras  # takes seconds; preparing needs none of it

    if keras.config.backend() == "tensorflow":
        return _stream_from_tensorflow(make_batch, first_step, last_step)
    return ahead(make_batch, range(first_step, last_step), THREADS)


def _stream_from_tensorflow(make_batch, first_step, last_step):
    import tensorflow as tf

    structure = make_batch(first_step)
    arrays = tf.nest.flatten(structure)
    dtypes = [array.dtype for array in arrays]

    def make_arrays(step):
        return tf.nest.flatten(make_batch(int(step)))

    def make_tensors(step):
        tensors = tf.numpy_function(make_arrays, [step], dtypes)
        for tensor, array in zip(tensors, arrays, strict=True):
            tensor.set_shape([None] * array.ndim)
        return tf.nest.pack_sequence_as(structure, tensors)

    options = tf.data.Options()
    # There is nothing to tune. The tuning thread sleeps longer each time, and closing the stream
    # waits for it.
    options.autotune.enabled = False
    return (
        tf.data.Dataset.range(first_step, last_step)
        .map(make_tensors, num_parallel_calls=THREADS, deterministic=True)
        .prefetch(PREFETCHED)
        .with_options(options)
    )


def ahead(function: Callable, inputs: Iterable, threads: int) -> Iterator:
    """Yields `function(x)` for each of some inputs, in their order, while threads compute the next
    ones. The threads see the caller's context variables, such as those of `engine.cancellation`.

    >>> list(ahead(abs, [-3, 2, -1], 2))
    [3, 2, 1]
    """
    pool = concurrent.futures.ThreadPoolExecutor(threads)
    waiting: collections.deque = collections.deque()
    try:
        for x in inputs:
            waiting.append(pool.submit(contextvars.copy_context().run, function, x))
            # While the caller uses a result, all threads have one of the next to compute.
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
