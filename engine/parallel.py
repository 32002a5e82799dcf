"""Several batches at once in evaluation: two on a core each take less time than one after the other
on both.
"""

import keras

from colloquy.base import runtime
from colloquy.data.batching import ahead

MOST = 4  # batches at once: each takes memory


def batches_at_once():
    """Batches that are computed at once: at most one per core; 1 on a GPU and on other backends."""
    if keras.config.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return 1 if tf.config.list_physical_devices("GPU") else min(runtime.available_cpus(), MOST)


def share_cores():
    """Gives each batch its part of the cores, before TensorFlow computes; `TF_NUM_INTRAOP_THREADS`
    wins.
    """
    if keras.config.backend() == "tensorflow" and runtime.given("TF_NUM_INTRAOP_THREADS") is None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(
            runtime.available_cpus() // batches_at_once()
        )


def compile_for_all_sizes(model, inputs=None):
    """Makes one graph of a model's `predict_on_batch` for inputs of every size, before the first
    batch: by itself TensorFlow makes one for the first size, and further ones for others. `inputs`
    are those of a model that is not functional, as `keras.KerasTensor`s."""
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        inputs = model.input if inputs is None else inputs
        specs = keras.tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), inputs)
        model.make_predict_function()
        model.predict_function.get_concrete_function([(specs,)])


def results_of(compute, make_inputs, batches, model=None, progress=iter):
    """Yields `(batch, compute(make_inputs(batch)))` for each of a list of batches, several of them
    computed at once.

    Several threads call `make_inputs`, for the next batches. `model` is as in `in_order`;
    `progress` wraps the list.

    >>> [int(total) for _, total in results_of(sum, lambda size: 7 * np.ones(size), [2, 3])]
    [14, 21]
    """
    if len(batches):
        inputs = ahead(make_inputs, batches, MOST)
        yield from zip(progress(batches), in_order(compute, inputs, model), strict=True)


def in_order(compute, inputs, model=None):
    """Yields `compute(each)` for each of some inputs, in their order, and computes the next ones
    meanwhile.

    A functional `model`, whose `predict_on_batch` it calls, is compiled first.

    >>> list(in_order(abs, [-3, 2, -1]))
    [3, 2, 1]
    """
    if model is not None:
        compile_for_all_sizes(model)
    at_once = batches_at_once()
    return ahead(compute, inputs, at_once) if at_once > 1 else map(compute, inputs)
