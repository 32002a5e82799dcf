"""The one file that hands batches to the framework: `tf.data` on TensorFlow, plain Python elsewhere."""

import keras


def stream_of(make_arrays, first, last):
    """Streams the arrays of steps, the next ones made while one is computed.

    Args:
        make_arrays: Pure function of a step that returns nested dicts or tuples of NumPy arrays, whose structure, ranks
            and dtypes are the same at every step; sizes need not be. Two threads call it.
        first, last: The steps are `range(first, last)`.

    Returns:
        On TensorFlow a `tf.data.Dataset` whose element has open sizes; on other backends an iterator of arrays.
    """
    if keras.config.backend() != "tensorflow":
        return map(make_arrays, range(first, last))
    import tensorflow as tf

    example = make_arrays(first)
    like = tf.nest.flatten(example)

    def flat(step):
        return tf.nest.flatten(make_arrays(int(step)))

    def arrays_of(step):
        arrays = tf.numpy_function(flat, [step], [array.dtype for array in like])
        for array, same in zip(arrays, like, strict=True):
            array.set_shape([None] * same.ndim)
        return tf.nest.pack_sequence_as(example, arrays)

    options = tf.data.Options()
    options.autotune.enabled = False  # nothing to tune, and its thread sleeps ever longer, which the end waits for
    steps = tf.data.Dataset.range(first, last)
    return steps.map(arrays_of, num_parallel_calls=2, deterministic=True).prefetch(4).with_options(options)
