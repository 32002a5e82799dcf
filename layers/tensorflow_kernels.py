"""Operations of TensorFlow missing from `keras.ops`; the one file of `layers/` and `models/` that
imports it.

Shape suffixes:  B batch   T steps   D features of the input   H units   G gates, 4H   R rows
"""

import functools

import keras

from colloquy.layers.masking import zero_padding

PARTS = 4  # parts of a sequence's steps, each one operation in `_states_by_operation`


def has_kernels(dtype):
    """True if `bilstm` and `normalize_rows` exist for a dtype and are faster: on TensorFlow without
    a GPU.
    """
    if keras.config.backend() != "tensorflow" or keras.backend.standardize_dtype(dtype) not in (
        "float32",
        "bfloat16",
    ):
        return False
    import tensorflow as tf

    return not tf.config.list_physical_devices("GPU")


def bilstm(x_BTD, mask_BT, forward, backward, training=False):
    """`keras.layers.Bidirectional` of two LSTMs, with zeros at padding, which is at the end.

    `forward` and `backward` are kernel `(D, 4H)`, recurrent kernel `(H, 4H)` and bias `(4H,)` of a
    `keras.layers.LSTM`. The result, `(B, T, 2H)`, has the dtype of `x_BTD`, float32 or bfloat16;
    the input is finite also at padding.
    """
    import tensorflow as tf

    x_TBD, mask_TB = tf.transpose(x_BTD, (1, 0, 2)), tf.transpose(mask_BT)
    compute = functools.partial(lstm, x_TBD, mask_TB, training=training)
    both = compute(*forward, backwards=False), compute(*backward, backwards=True)
    return tf.transpose(tf.concat(both, axis=-1), (1, 0, 2))


def lstm(x_TBD, mask_TB, kernel, recurrent_kernel, bias, backwards, training):
    """One direction of `bilstm`, `(T, B, H)`; its states are float32.

    A training batch takes a loop. Keras's own multiplies by the input's weights in each step, and
    its gradient adds to theirs in each. Here such products are of all steps at once, the gradient's
    in the dtype of `x_TBD`. An answer takes the operation `BlockLSTMV2`, which is faster for a
    single sequence.
    """
    import tensorflow as tf

    @tf.custom_gradient
    def run(x, w_x, w_h, b):
        weights = (tf.cast(each, "float32") for each in (w_x, w_h, b))
        states_of = _states_by_loop if training else _states_by_operation
        h_TBH, *states = states_of(tf.cast(x, "float32"), mask_TB, *weights, backwards)

        def gradient(g):
            d_TBG = _gate_gradients(
                tf.cast(g, "float32"), mask_TB, *states, tf.cast(w_h, "float32"), backwards
            )
            b_grad = tf.reduce_sum(d_TBG, axis=(0, 1))
            d = tf.cast(d_TBG, x.dtype)

            def weights_grad(y, d):  # `tensordot` would transpose them in memory
                return tf.matmul(
                    *(tf.reshape(each, (-1, each.shape[-1])) for each in (y, d)), transpose_a=True
                )

            w_h_grad = weights_grad(tf.cast(_before(h_TBH, backwards), x.dtype), d)
            return (
                tf.tensordot(d, w_x, [[2], [1]]),
                weights_grad(x, d),
                w_h_grad,
                tf.cast(b_grad, b.dtype),
            )

        return tf.cast(h_TBH, x.dtype), gradient

    return run(x_TBD, *map(tf.convert_to_tensor, (kernel, recurrent_kernel, bias)))


def _before(states_TBH, backwards):
    """The states that each step begins with."""
    import tensorflow as tf

    none = tf.zeros_like(states_TBH[:1])
    return tf.concat([states_TBH[1:], none] if backwards else [none, states_TBH[:-1]], axis=0)


def _states_by_operation(x_TBD, mask_TB, w_DG, w_HG, b_G, backwards):
    """Outputs, cells, gates i, f, o and new contents of all steps, `(T, B, H)` each.

    A step takes as long as reading its weights. So the words of a part of the steps, if they are
    few, are multiplied by those of the input all at once, and each word's one-hot vector reads its
    product, a row of the weights.
    """
    import tensorflow as tf

    lengths = tf.reduce_sum(tf.cast(mask_TB, "int32"), axis=0)

    def in_order(x_TBD):
        return tf.reverse_sequence(x_TBD, lengths, seq_axis=0, batch_axis=1) if backwards else x_TBD

    (T, B), (D, G), H = tf.unstack(tf.shape(mask_TB)), w_DG.shape, w_HG.shape[0]
    steps = -(-T // PARTS)
    few = steps * B < min(D, G)
    words = tf.where(few, steps * B, 0)  # an array of 0 rows costs nothing, and needs no branch
    one_hot = tf.reshape(tf.one_hot(tf.range(steps * B), words), (steps, B, words))
    x_TBD = tf.pad(in_order(x_TBD), [(0, PARTS * steps - T), (0, 0), (0, 0)])
    gates_TBG = tf.tensordot(x_TBD if D > G else x_TBD[: tf.where(few, PARTS * steps, 0)], w_DG, 1)
    if D > G:
        x_TBD, w_DG = gates_TBG, tf.eye(G)
    width = tf.where(few, 0, min(D, G))
    h_BH = c_BH = tf.zeros((B, H))
    no_peephole_H, parts = tf.zeros(H), []
    for i in range(PARTS):
        part = slice(i * steps, (i + 1) * steps)
        found = tf.raw_ops.BlockLSTMV2(
            seq_len_max=tf.cast(steps, "int64"),
            x=tf.concat([x_TBD[part, :, :width], one_hot], axis=-1),
            w=tf.concat([w_DG[:width], tf.reshape(gates_TBG[part], (-1, G))[:words], w_HG], axis=0),
            b=b_G,
            cs_prev=c_BH,
            h_prev=h_BH,
            **dict.fromkeys(("wci", "wcf", "wco"), no_peephole_H),
            use_peephole=False,
            cell_clip=0.0,
        )
        c_BH, h_BH = found.cs[-1], found.h[-1]
        parts.append((found.h, found.cs, found.i, found.f, found.o, found.ci))
    h, c, *gates = (in_order(tf.concat(each, axis=0)[:T]) for each in zip(*parts, strict=True))
    return zero_padding(h, mask_TB[..., None]), zero_padding(c, mask_TB[..., None]), *gates


def _states_by_loop(x_TBD, mask_TB, w_DG, w_HG, b_G, backwards):
    """The same as `_states_by_operation`, for any number of sequences."""
    import tensorflow as tf

    T, B, H = *tf.unstack(tf.shape(mask_TB)), w_HG.shape[0]
    x_TBG, real_TB1 = tf.tensordot(x_TBD, w_DG, 1), tf.cast(mask_TB, "float32")[..., None]

    def step(n, h_BH, c_BH, *results):
        t = T - 1 - n if backwards else n
        gates_BG = x_TBG[t] + tf.nn.bias_add(tf.matmul(h_BH, w_HG), b_G)
        i, f, _, o = tf.split(tf.sigmoid(gates_BG), 4, axis=1)
        new = tf.tanh(gates_BG[:, 2 * H : 3 * H])
        c_BH = real_TB1[t] * (f * c_BH + i * new)
        h_BH = o * tf.tanh(c_BH)
        written = zip(results, (h_BH, c_BH, i, f, o, new), strict=True)
        return n + 1, h_BH, c_BH, *(result.write(t, each) for result, each in written)

    start = (
        0,
        *[tf.zeros((B, H))] * 2,
        *(tf.TensorArray("float32", T, element_shape=(None, H)) for _ in range(6)),
    )
    _, _, _, *results = tf.while_loop(lambda n, *_: n < T, step, start, parallel_iterations=1)
    return [result.stack() for result in results]


def _gate_gradients(g_TBH, mask_TB, c_TBH, i, f, o, new, w_HG, backwards):
    """The gradients of an LSTM's gates before their sigmoid or tanh, `(T, B, 4H)`, from the last
    step to the first.
    """
    import tensorflow as tf

    tanh_c, real_TB1 = tf.tanh(c_TBH), tf.cast(mask_TB, "float32")[..., None]
    to_gates = [  # of the cell's gradient, and for o of the output's
        tf.raw_ops.SigmoidGrad(y=i, dy=new),
        tf.raw_ops.SigmoidGrad(y=f, dy=_before(c_TBH, backwards)),
        tf.raw_ops.TanhGrad(y=new, dy=i),
        tf.raw_ops.SigmoidGrad(y=o, dy=tanh_c),
    ]
    to_gates, to_cell = tf.concat(to_gates, axis=-1), tf.raw_ops.TanhGrad(y=tanh_c, dy=o)
    T = tf.shape(g_TBH)[0]

    def step(n, h_BG, c_BH, result):
        t = n if backwards else T - 1 - n
        h_BH = g_TBH[t] + tf.matmul(h_BG, w_HG, transpose_b=True)
        c_BH = real_TB1[t] * (c_BH + h_BH * to_cell[t])
        d_BG = tf.concat([c_BH, c_BH, c_BH, h_BH], axis=-1) * to_gates[t]
        return n + 1, d_BG, c_BH * f[t], result.write(t, d_BG)

    start = 0, tf.zeros_like(to_gates[0]), tf.zeros_like(to_cell[0]), tf.TensorArray("float32", T)
    *_, result = tf.while_loop(lambda n, *_: n < T, step, start, parallel_iterations=1)
    return result.stack()


def normalize_rows(x_RD, gamma_D, beta_D, epsilon):
    """Layer normalisation: each row less its mean, over its standard deviation, times `gamma`, plus
    `beta`.

    Batch normalisation with the rows as channels is the form that TensorFlow's graph optimizer
    knows: it makes one operation of these lines, oneDNN's, which computes in float32 whatever the
    dtype, if the number of rows is not part of the graph. That takes a seventh of the time of seven
    operations.

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
    return tf.reshape(h, tf.shape(x_RD)) * tf.cast(gamma_D, x_RD.dtype) + tf.cast(
        beta_D, x_RD.dtype
    )
