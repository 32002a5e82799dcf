"""Operations of TensorFlow missing from `keras.ops`; the one file of `layers/` and `models/` that imports it.

Shape suffixes:  B batch   T steps   D features of the input   H units   R rows
"""

import keras


def has_kernels(dtype):
    """True if `block_bilstm` and `normalize_rows` exist for a dtype and are faster: on TensorFlow without a GPU."""
    if keras.config.backend() != "tensorflow" or keras.backend.standardize_dtype(dtype) not in ("float32", "bfloat16"):
        return False
    import tensorflow as tf

    return not tf.config.list_physical_devices("GPU")


def block_bilstm(x_BTD, mask_BT, forward, backward):
    """`keras.layers.Bidirectional` of two LSTMs, each direction in one operation instead of a loop.

    `forward` and `backward` are kernel `(D, 4H)`, recurrent kernel `(H, 4H)` and bias `(4H,)` of a `keras.layers.LSTM`.
    The result, `(B, T, 2H)`, has the dtype of `x_BTD`, float32 or bfloat16; at padding, which is at the end, it is
    arbitrary but finite.
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
    """An LSTM's outputs `(T, B, H)`, of the dtype of `x_TBD`; its states are float32.

    TensorFlow's own gradient multiplies by `x` and by the weights in each step and takes four times as long as the
    outputs. Here only the gradient of the state is computed step by step; the products are of all steps at once, in the
    dtype of `x_TBD`.
    """
    import tensorflow as tf

    @tf.custom_gradient
    def run(x, w_x, w_h, b):
        H = w_h.shape[0]
        zeros_BH, no_peephole_H = tf.zeros((tf.shape(x)[1], H)), tf.zeros(H)
        read, weights = _as_narrow_as_the_gates(tf.cast(x, "float32"), tf.cast(w_x, "float32"))
        found = tf.raw_ops.BlockLSTMV2(
            seq_len_max=tf.shape(x, out_type="int64")[0],
            x=read,
            w=tf.concat([weights, tf.cast(w_h, "float32")], axis=0),
            b=tf.cast(b, "float32"),
            cs_prev=zeros_BH,
            h_prev=zeros_BH,
            **dict.fromkeys(("wci", "wcf", "wco"), no_peephole_H),
            use_peephole=False,
            cell_clip=0.0,
        )

        def gradient(g):
            d_TBG = _lstm_gate_gradients(tf.cast(g, "float32"), found, tf.cast(w_h, "float32"))
            b_grad = tf.reduce_sum(d_TBG, axis=(0, 1))
            d = tf.cast(d_TBG, x.dtype)

            def weights_grad(y, d):  # `tensordot` would transpose them in memory
                return tf.matmul(*(tf.reshape(each, (-1, each.shape[-1])) for each in (y, d)), transpose_a=True)

            w_h_grad = weights_grad(tf.cast(found.h[:-1], x.dtype), d[1:])
            return tf.tensordot(d, w_x, [[2], [1]]), weights_grad(x, d), w_h_grad, tf.cast(b_grad, b.dtype)

        return tf.cast(found.h, x.dtype), gradient

    return run(x_TBD, *map(tf.convert_to_tensor, (kernel, recurrent_kernel, bias)))


def _as_narrow_as_the_gates(x_TBD, w_DG):
    """Input and weights of the operation: `x` and `w`, or of one sequence wider than the gates `x w` and the identity.

    A step of one sequence takes as long as reading its weights, which are fewer then; several sequences share the
    reading. Sizes of 0 leave one pair out: `tf.cond` would hang in `serving.models.Served.by_one_thread`.
    """
    import tensorflow as tf

    D, G = w_DG.shape
    if D <= G:
        return x_TBD, w_DG
    one = tf.cast(tf.shape(x_TBD)[1] == 1, "int32")
    d, g = D * (1 - one), G * one
    product = tf.tensordot(x_TBD, w_DG[:, :g], 1)
    return tf.concat([x_TBD[..., :d], product], axis=-1), tf.concat([w_DG[:d], tf.eye(G)[:g]], axis=0)


def _lstm_gate_gradients(g_TBH, found, w_hG):
    """The gradients of an LSTM's gates before their sigmoid or tanh, `(T, B, 4H)`, from the last step to the first.

    `found` are the outputs of `BlockLSTMV2`: the gates i, f, o, the new content ci, the cell cs, its tanh co.
    """
    import tensorflow as tf

    before = tf.concat([tf.zeros_like(found.cs[:1]), found.cs[:-1]], axis=0)
    to_gates = [  # of the cell's gradient, and for o of the output's
        tf.raw_ops.SigmoidGrad(y=found.i, dy=found.ci),
        tf.raw_ops.SigmoidGrad(y=found.f, dy=before),
        tf.raw_ops.TanhGrad(y=found.ci, dy=found.i),
        tf.raw_ops.SigmoidGrad(y=found.o, dy=found.co),
    ]
    to_gates, to_cell = tf.concat(to_gates, axis=-1), tf.raw_ops.TanhGrad(y=found.co, dy=found.o)
    T = tf.shape(g_TBH)[0]

    def step(t, h_BG, c_BH, result):
        h_BH = g_TBH[t] + tf.matmul(h_BG, w_hG, transpose_b=True)
        c_BH = c_BH + h_BH * to_cell[t]
        d_BG = tf.concat([c_BH, c_BH, c_BH, h_BH], axis=-1) * to_gates[t]
        return t - 1, d_BG, c_BH * found.f[t], result.write(t, d_BG)

    start = T - 1, tf.zeros_like(to_gates[0]), tf.zeros_like(to_cell[0]), tf.TensorArray("float32", T)
    *_, result = tf.while_loop(lambda t, *_: t >= 0, step, start, parallel_iterations=1)
    return result.stack()


def normalize_rows(x_RD, gamma_D, beta_D, epsilon):
    """Layer normalisation: each row less its mean, over its standard deviation, times `gamma`, plus `beta`.

    Batch normalisation with the rows as channels is the form that TensorFlow's graph optimizer knows: it makes one
    operation of these lines, oneDNN's, which computes in float32 whatever the dtype, if the number of rows is not part
    of the graph. That takes a seventh of the time of seven operations.

    The result has the dtype of `x_RD`, float32 or bfloat16.
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
