"""Several batches at once in evaluation.

An operation that two cores share waits for the slower one, and many are too small to be shared: two batches on a core
each are done sooner than one after the other on both.
"""

import collections
import concurrent.futures
import itertools

import keras

from base import runtime
from data.stream import stream_of

MOST = 4  # batches at once: each takes memory


def batches_at_once():
    """Batches that `results_of` computes at once: at most one per core; 1 on a GPU and on other backends."""
    if keras.config.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return 1 if tf.config.list_physical_devices("GPU") else min(runtime.available_cpus(), MOST)


def share_cores():
    """Gives each of the batches at once its part of the cores; call it before TensorFlow computes anything.

    The user's `TF_NUM_INTRAOP_THREADS` wins.
    """
    if keras.config.backend() == "tensorflow" and runtime.given("TF_NUM_INTRAOP_THREADS") is None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(runtime.available_cpus() // batches_at_once())


def compile_for_all_sizes(model):
    """Makes one graph of a functional model's `predict_on_batch` for inputs of every size.

    TensorFlow begins with the sizes of the first batch and traces again when another batch differs.
    """
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        inputs = keras.tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), model.input)
        model.make_predict_function()
        model.predict_function.get_concrete_function([(inputs,)])


def results_of(compute, make_inputs, batches, model=None, progress=iter):
    """Yields `(batch, compute(make_inputs(batch)))` for each batch, several of them computed at once.

    Args:
        compute: Function of the arrays.
        make_inputs: Makes the arrays of a batch, see `data.stream.stream_of`.
        batches: A list.
        model: As in `in_order`.
        progress: Wraps the list, to show how far it is.

    >>> [int(total) for _, total in results_of(sum, lambda size: 7 * np.ones(size), [2, 3])]
    [14, 21]
    """
    if not len(batches):
        return
    arrays = stream_of(lambda step: make_inputs(batches[step]), 0, len(batches))
    if hasattr(arrays, "as_numpy_iterator"):
        arrays = arrays.as_numpy_iterator()
    yield from zip(progress(batches), in_order(compute, arrays, model), strict=True)


def in_order(compute, inputs, model=None):
    """Yields `compute(each)` for each of some inputs, in their order, and computes the next ones meanwhile.

    Args:
        compute: A function.
        inputs: Iterable.
        model: The functional model whose `predict_on_batch` it calls, which is compiled first. `None`: the first input
            is computed alone, so that whatever is compiled is compiled once.

    >>> list(in_order(abs, [-3, 2, -1]))
    [3, 2, 1]
    """
    inputs, at_once = iter(inputs), batches_at_once()
    if model is None:
        yield from map(compute, itertools.islice(inputs, 1))
    else:
        compile_for_all_sizes(model)
    if at_once == 1:
        yield from map(compute, inputs)
        return
    pool, waiting = concurrent.futures.ThreadPoolExecutor(at_once), collections.deque()
    try:
        for each in inputs:
            waiting.append(pool.submit(compute, each))
            if len(waiting) > at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
