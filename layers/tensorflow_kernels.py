"""Operations of TensorFlow for CPUs: layer normalisation, and an LSTM for inference.

Only this file and `layers.tensorflow_lstm` import TensorFlow in `layers/` and `models/`.

Shape suffixes:
    R rows   D features   T steps   B sequences   H units   G columns of the weights, 4H
    P parts of the steps   N words of a part
"""

import keras

PARTS = 4
"""`lstm_outputs` cuts the steps into this number of parts."""


def has_kernels(dtype):
    """True where this file and `layers.tensorflow_lstm` are faster than `keras.ops`.

    That is on TensorFlow without a GPU, in float32 and bfloat16.
    """
    if keras.config.backend() != "tensorflow":
        return False
    if keras.backend.standardize_dtype(dtype) not in ("float32", "bfloat16"):
        return False
    import tensorflow as tf

    return not tf.config.list_physical_devices("GPU")


def normalize_rows(x_RD, gamma_D, beta_D, epsilon):
    """Layer normalisation: each row of `x` gets mean 0 and variance 1, then `gamma` and `beta`.

    The result has the dtype of `x_RD`, float32 or bfloat16.

    Batch normalisation gives mean 0 and variance 1 to each channel of a batch of images. Here the
    rows are the channels of one image. TensorFlow's graph optimizer replaces such a batch
    normalisation with `gamma` and `beta` by one operation of oneDNN, in a seventh of the time of
    separate operations for the mean, the difference and so on.
    """
    import tensorflow as tf

    # The graph optimizer replaces these lines only if the number of rows is no constant.
    num_rows = tf.shape(x_RD)[:1]
    normalized_1RD1, *_ = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x_RD, (1, -1, x_RD.shape[-1], 1)),
        scale=tf.fill(num_rows, 1.0),
        offset=tf.fill(num_rows, 0.0),
        mean=tf.zeros([0]),
        variance=tf.zeros([0]),
        epsilon=epsilon,
        data_format="NCHW",
        is_training=True,
    )
    normalized_RD = tf.reshape(normalized_1RD1, tf.shape(x_RD))
    return normalized_RD * tf.cast(gamma_D, x_RD.dtype) + tf.cast(beta_D, x_RD.dtype)


def lstm_outputs(x_TBD, W_DG, U_HG, b_G):
    """The outputs of an LSTM, `(T, B, H)`, see `layers.tensorflow_lstm`, float32.

    TensorFlow's operation `BlockLSTMV2` is called for one part of the steps at a time.
    """
    import tensorflow as tf

    T, B = tf.unstack(tf.shape(x_TBD)[:2])
    H = U_HG.shape[0]
    # The steps of a part, rounded up. Zeros fill the last part.
    steps = (T + PARTS - 1) // PARTS
    x_TBD = tf.pad(x_TBD, [(0, PARTS * steps - T), (0, 0), (0, 0)])

    h_BH = tf.zeros((B, H))
    c_BH = tf.zeros((B, H))
    no_peephole_H = tf.zeros(H)
    h_of_parts = []
    inputs, weights = _inputs_and_weights(x_TBD, W_DG)
    for x, W in zip(inputs, weights, strict=True):
        values = tf.raw_ops.BlockLSTMV2(
            seq_len_max=tf.cast(steps, "int64"),
            x=x,
            w=tf.concat([W, U_HG], axis=0),
            b=b_G,
            cs_prev=c_BH,
            h_prev=h_BH,
            wci=no_peephole_H,
            wcf=no_peephole_H,
            wco=no_peephole_H,
            use_peephole=False,
            cell_clip=0.0,
        )
        h_BH = values.h[-1]
        c_BH = values.cs[-1]
        h_of_parts.append(values.h)
    return tf.concat(h_of_parts, axis=0)[:T]


def _inputs_and_weights(x_TBD, W_DG):
    """The inputs and weights that `BlockLSTMV2` multiplies in each part, two lists of `PARTS`.

    These could be `x` and `W`. But the operation reads all its weights at each step, and for one
    text this takes most of its time. So they are replaced by smaller ones with the same products:

        if a part has few words    its words' products `x W` are the weights, and the input of the
                                   n-th word is one-hot, so that it selects the n-th product
        or if D > 4H               the products are the inputs, and the weights change nothing
    """
    import tensorflow as tf

    T, B = tf.unstack(tf.shape(x_TBD)[:2])
    D, G = W_DG.shape
    num_words = T // PARTS * B

    def for_few_words():
        products_TBG = tf.tensordot(x_TBD, W_DG, 1)
        products_PNG = tf.reshape(products_TBG, (PARTS, num_words, G))
        one_hot_NN = tf.one_hot(tf.range(num_words), num_words)
        one_hot_TBN = tf.reshape(one_hot_NN, (-1, B, num_words))
        return [one_hot_TBN] * PARTS, tf.unstack(products_PNG)

    def for_many_words():
        if D > G:
            return tf.split(tf.tensordot(x_TBD, W_DG, 1), PARTS), [tf.eye(G)] * PARTS
        return tf.split(x_TBD, PARTS), [W_DG] * PARTS

    return tf.cond(num_words < min(D, G), for_few_words, for_many_words)
