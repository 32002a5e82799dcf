"""What TensorFlow computes in one pass over memory and `keras.ops` has no name for.

Each function computes what the `keras.ops` beside its call compute, and says when it cannot.

Shape suffixes:  R rows   D features
"""

import keras


def can_normalize_rows(dtype):
    """Whether `normalize_rows` is there for this dtype and faster: on TensorFlow, on a CPU."""
    if keras.config.backend() != "tensorflow" or keras.backend.standardize_dtype(dtype) not in ("float32", "bfloat16"):
        return False
    import tensorflow as tf

    return not tf.config.list_physical_devices("GPU")


def normalize_rows(x_RD, gamma_D, beta_D, epsilon):
    """Layer normalisation: each row less its mean, over its standard deviation, times `gamma`, plus `beta`.

    Batch normalisation with the rows as channels is the one form of it that TensorFlow's graph optimizer knows: it
    makes a single operation of these lines (oneDNN's, which computes in float32), where the number of rows is not part
    of the graph.
    """
    import tensorflow as tf

    rows = tf.shape(x_RD)[0]
    h, *_ = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x_RD, (1, -1, x_RD.shape[-1], 1)),
        scale=tf.fill([rows], 1.0),
        offset=tf.fill([rows], 0.0),
        mean=tf.zeros([0]),
        variance=tf.zeros([0]),
        epsilon=epsilon,
        data_format="NCHW",
        is_training=True,
    )
    return tf.reshape(h, tf.shape(x_RD)) * tf.cast(gamma_D, x_RD.dtype) + tf.cast(beta_D, x_RD.dtype)
