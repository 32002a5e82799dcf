"""Several batches at once, where a model answers and does not learn.

An operation that two cores share waits for the slower one, and many are too small to be shared: two batches on a core
each are done sooner than one after the other on both.
"""

import concurrent.futures
import itertools

import keras

from base import runtime

MOST = 4  # batches at once: each takes memory


def batches_at_once():
    """How many batches `in_order` computes at once: a core each at most; 1 on a GPU and on other backends."""
    if keras.config.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return 1 if tf.config.list_physical_devices("GPU") else min(runtime.available_cpus(), MOST)


def share_cores():
    """Gives each batch of `in_order` its part of the cores. To be called before TensorFlow computes anything.

    The user's `TF_NUM_INTRAOP_THREADS` wins.
    """
    if keras.config.backend() == "tensorflow" and runtime.given("TF_NUM_INTRAOP_THREADS") is None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(runtime.available_cpus() // batches_at_once())


def compile_for_all_sizes(model):
    """Makes one graph of a model's `predict_on_batch`, for inputs of every size, where TensorFlow would make several.

    TensorFlow begins with the sizes of the first batch and traces again for each that another batch has otherwise.

    Args:
        model: A functional `keras.Model`. On other backends nothing happens.
    """
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        inputs = keras.tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), model.input)
        model.make_predict_function()
        model.predict_function.get_concrete_function([(inputs,)])


def results_of(compute, make_inputs, batches, model=None, progress=iter):
    """Yields `(batch, compute(make_inputs(batch)))` for each batch; several are computed at once.

    Args:
        compute: Function of what `make_inputs` returns.
        make_inputs: Makes the arrays of a batch.
        batches: A list.
        model: As of `in_order`.
        progress: Wraps the list, to show how far it is.

    >>> list(results_of(abs, lambda batch: -3 * batch, [1, 2]))
    [(1, 3), (2, 6)]
    """
    return zip(progress(batches), in_order(lambda batch: compute(make_inputs(batch)), batches, model), strict=True)


def in_order(compute, batches, model=None):
    """Yields `compute(batch)` for each batch, in their order, and computes the next ones meanwhile.

    Args:
        compute: A function.
        batches: Iterable.
        model: The functional model whose `predict_on_batch` it calls, which is compiled before. `None`: the first batch
            is computed alone, so that whatever is compiled is compiled once.

    >>> list(in_order(abs, [-3, 2, -1]))
    [3, 2, 1]
    """
    batches = iter(batches)
    if model is None:
        yield from map(compute, itertools.islice(batches, 1))
    else:
        compile_for_all_sizes(model)
    if batches_at_once() == 1:
        yield from map(compute, batches)
        return
    pool = concurrent.futures.ThreadPoolExecutor(batches_at_once())
    try:
        yield from pool.map(compute, batches)
    finally:
        pool.shutdown(cancel_futures=True)
