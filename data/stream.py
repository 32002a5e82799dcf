"""The one file that hands batches to the framework: `tf.data` on TensorFlow, plain Python elsewhere."""

import keras


def as_dataset(batches):
    """Wraps a generator of NumPy batches for `keras.Model.fit`.

    Args:
        batches: Iterable of nested dicts or tuples of arrays; their ranks and dtypes stay the same
            from one to the next, their shapes need not.

    Returns:
        On TensorFlow a `tf.data.Dataset` that prepares the next batches while one computes; on other
        backends a plain iterator.
    """
    batches = iter(batches)
    if keras.config.backend() != "tensorflow":
        return batches
    import tensorflow as tf

    first = next(batches)
    signature = tf.nest.map_structure(lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), first)

    def all_batches():
        yield first
        yield from batches

    options = tf.data.Options()
    options.autotune.enabled = False  # nothing to tune, and its thread sleeps ever longer, which the end waits for
    return tf.data.Dataset.from_generator(all_batches, output_signature=signature).prefetch(4).with_options(options)
