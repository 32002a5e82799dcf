"""What TensorFlow computes in one operation and `keras.ops` has no name for; the one file here that imports it.

Shape suffixes:  B batch   T steps   D features of the input   H units   R rows
"""

import keras


def can_run_block_lstm(dtype):
    """Whether `block_bilstm` is there for this dtype and faster: on TensorFlow, in float32, without a GPU."""
    if keras.config.backend() != "tensorflow" or keras.backend.standardize_dtype(dtype) != "float32":
        return False
    return _on_cpu()


def _on_cpu():
    import tensorflow as tf

    return not tf.config.list_physical_devices("GPU")


def block_bilstm(x_BTD, mask_BT, forward, backward):
    """What `keras.layers.Bidirectional` of two LSTMs computes, each direction in one operation instead of a loop.

    Args:
        x_BTD: Float32.
        mask_BT: Boolean, `True` = real; padding stands at the end.
        forward, backward: Kernel `(D, 4H)`, recurrent kernel `(H, 4H)` and bias `(4H,)` of a `keras.layers.LSTM`.

    Returns:
        Float32 `(B, T, 2H)`, arbitrary but finite at padding.
    """
    import tensorflow as tf

    lengths = tf.reduce_sum(tf.cast(mask_BT, "int32"), axis=1)

    def reverse(x_TBD):
        """Turns the real steps of each sequence round."""
        return tf.reverse_sequence(x_TBD, lengths, seq_axis=0, batch_axis=1)

    x_TBD = tf.transpose(x_BTD, (1, 0, 2))
    both = block_lstm(x_TBD, *forward), reverse(block_lstm(reverse(x_TBD), *backward))
    return tf.transpose(tf.concat(both, axis=-1), (1, 0, 2))


def block_lstm(x_TBD, kernel, recurrent_kernel, bias):
    """An LSTM's outputs, float32 `(T, B, H)`, with the gradient that TensorFlow has for it and does not register."""
    import tensorflow as tf

    def gates(w):
        i, f, c, o = tf.split(w, 4, axis=-1)
        return tf.concat([i, c, f, o], axis=-1)  # the operation's order

    @tf.custom_gradient
    def run(x, w, b):
        H = b.shape[0] // 4
        zeros_BH, no_peephole_H = tf.zeros((tf.shape(x)[1], H)), tf.zeros(H)
        given = {
            **{"seq_len_max": tf.shape(x, out_type="int64")[0], "x": x, "w": w, "b": b, "use_peephole": False},
            **{"cs_prev": zeros_BH, "h_prev": zeros_BH},
            **dict.fromkeys(("wci", "wcf", "wco"), no_peephole_H),
        }
        found = tf.raw_ops.BlockLSTM(forget_bias=0.0, cell_clip=0.0, **given)

        def gradient(g):
            states = found._asdict()
            found_gradients = tf.raw_ops.BlockLSTMGrad(cs_grad=tf.zeros_like(g), h_grad=g, **given, **states)
            return found_gradients.x_grad, found_gradients.w_grad, found_gradients.b_grad

        return found.h, gradient

    return run(x_TBD, gates(tf.concat([kernel, recurrent_kernel], axis=0)), gates(tf.convert_to_tensor(bias)))


def can_normalize_rows(dtype):
    """Whether `normalize_rows` is there for this dtype and faster: on TensorFlow, without a GPU."""
    if keras.config.backend() != "tensorflow" or keras.backend.standardize_dtype(dtype) not in ("float32", "bfloat16"):
        return False
    return _on_cpu()


def normalize_rows(x_RD, gamma_D, beta_D, epsilon):
    """Layer normalisation: each row less its mean, over its standard deviation, times `gamma`, plus `beta`.

    Batch normalisation with the rows as channels is the form of it that TensorFlow's graph optimizer knows: it makes
    one operation of these lines, oneDNN's, which computes in float32 whatever the dtype, where the number of rows is
    not part of the graph. That takes a seventh of the time of seven operations.

    Args:
        x_RD: Float32 or bfloat16.
        gamma_D, beta_D: Of any float dtype.
        epsilon: Added to the variance.

    Returns:
        `(R, D)` of the dtype of `x_RD`.
    """
    import tensorflow as tf

    rows = tf.shape(x_RD)[:1]
    h, *_ = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x_RD, (1, -1, x_RD.shape[-1], 1)),
        scale=tf.fill(rows, 1.0),
        offset=tf.fill(rows, 0.0),
        mean=tf.zeros([0]),
        variance=tf.zeros([0]),
        epsilon=epsilon,
        data_format="NCHW",
        is_training=True,
    )
    return tf.reshape(h, tf.shape(x_RD)) * tf.cast(gamma_D, x_RD.dtype) + tf.cast(beta_D, x_RD.dtype)
