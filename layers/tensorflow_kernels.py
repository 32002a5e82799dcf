"""Operations of TensorFlow missing from `keras.ops`.

This is the one file of `layers/` and `models/` that imports it.

Shape suffixes:  B batch   T steps   D features of the input   H units   G gates, 4H   R rows
"""

import keras

from colloquy.layers.masking import zero_padding

PARTS = 4
"""Parts of a sequence's steps, each one operation in `_states_by_operation`."""


def has_kernels(dtype):
    """True if `bilstm` and `normalize_rows` are faster for a dtype: on TensorFlow without a GPU."""
    if keras.config.backend() != "tensorflow":
        return False
    if keras.backend.standardize_dtype(dtype) not in ("float32", "bfloat16"):
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

    x_TBD = tf.transpose(x_BTD, (1, 0, 2))
    mask_TB = tf.transpose(mask_BT)
    forward_TBH = lstm(x_TBD, mask_TB, *forward, backwards=False, training=training)
    backward_TBH = lstm(x_TBD, mask_TB, *backward, backwards=True, training=training)
    both_TBH = tf.concat([forward_TBH, backward_TBH], axis=-1)
    return tf.transpose(both_TBH, (1, 0, 2))


def lstm(x_TBD, mask_TB, kernel, recurrent_kernel, bias, backwards, training):
    """One direction of `bilstm`, `(T, B, H)`; its states are float32.

    Training runs a loop over the steps. Keras's loop multiplies the input by its weights in each
    step, and adds to their gradient in each step. Here one product does so for all steps at once;
    that of the gradient has the dtype of `x_TBD`. Inference runs the operation `BlockLSTMV2`, which
    is faster for a single sequence.
    """
    import tensorflow as tf

    compute_states = _states_by_loop if training else _states_by_operation

    @tf.custom_gradient
    def run(x_TBD, w_DG, w_HG, b_G):
        h_TBH, *cells_and_gates = compute_states(
            tf.cast(x_TBD, "float32"),
            mask_TB,
            tf.cast(w_DG, "float32"),
            tf.cast(w_HG, "float32"),
            tf.cast(b_G, "float32"),
            backwards,
        )

        def gradient(g_TBH):
            d_TBG = _gate_gradients(
                tf.cast(g_TBH, "float32"),
                mask_TB,
                *cells_and_gates,
                tf.cast(w_HG, "float32"),
                backwards,
            )
            b_gradient = tf.cast(tf.reduce_sum(d_TBG, axis=(0, 1)), b_G.dtype)
            d_TBG = tf.cast(d_TBG, x_TBD.dtype)
            h_before_TBH = tf.cast(_before(h_TBH, backwards), x_TBD.dtype)
            return (
                tf.tensordot(d_TBG, w_DG, [[2], [1]]),
                _weight_gradient(x_TBD, d_TBG),
                _weight_gradient(h_before_TBH, d_TBG),
                b_gradient,
            )

        return tf.cast(h_TBH, x_TBD.dtype), gradient

    weights = [tf.convert_to_tensor(x) for x in (kernel, recurrent_kernel, bias)]
    return run(x_TBD, *weights)


def _weight_gradient(x_TBD, d_TBG):
    """`x^T d` over all steps; `tensordot` would transpose the arrays in memory."""
    import tensorflow as tf

    x_RD = tf.reshape(x_TBD, (-1, x_TBD.shape[-1]))
    d_RG = tf.reshape(d_TBG, (-1, d_TBG.shape[-1]))
    return tf.matmul(x_RD, d_RG, transpose_a=True)


def _before(states_TBH, backwards):
    """The states that each step begins with."""
    import tensorflow as tf

    zeros_1BH = tf.zeros_like(states_TBH[:1])
    if backwards:
        return tf.concat([states_TBH[1:], zeros_1BH], axis=0)
    return tf.concat([zeros_1BH, states_TBH[:-1]], axis=0)


def _states_by_operation(x_TBD, mask_TB, w_DG, w_HG, b_G, backwards):
    """Outputs, cells, gates i, f, o and new contents of all steps, `(T, B, H)` each.

    The operation multiplies each step's input by all of the input's weights, and for one sequence
    most of its time is reading them. So the steps are cut into parts. If a part has few words, one
    product multiplies them all beforehand, and the operation gets these products as weights and a
    one-hot vector for each word: it then reads a small matrix at each step.
    """
    import tensorflow as tf

    lengths_B = tf.reduce_sum(tf.cast(mask_TB, "int32"), axis=0)
    T, B = tf.unstack(tf.shape(mask_TB))
    D, G = w_DG.shape
    H = w_HG.shape[0]

    def in_order(x_TBD):
        if not backwards:
            return x_TBD
        return tf.reverse_sequence(x_TBD, lengths_B, seq_axis=0, batch_axis=1)

    # One-hot vectors if a part has few words, and otherwise an array without rows: it costs
    # nothing, and the graph needs no branch.
    steps = -(-T // PARTS)
    is_few = steps * B < min(D, G)
    num_one_hot = tf.where(is_few, steps * B, 0)
    one_hot = tf.one_hot(tf.range(steps * B), num_one_hot)
    one_hot = tf.reshape(one_hot, (steps, B, num_one_hot))

    # With more features than gates, products replace all inputs. Otherwise only the one-hot vectors
    # need them.
    x_TBD = tf.pad(in_order(x_TBD), [(0, PARTS * steps - T), (0, 0), (0, 0)])
    multiplied = x_TBD if D > G else x_TBD[: tf.where(is_few, PARTS * steps, 0)]
    gates_TBG = tf.tensordot(multiplied, w_DG, 1)
    if D > G:
        x_TBD = gates_TBG
        w_DG = tf.eye(G)
    width = tf.where(is_few, 0, min(D, G))

    h_BH = tf.zeros((B, H))
    c_BH = tf.zeros((B, H))
    no_peephole_H = tf.zeros(H)
    results_by_part = []
    for i in range(PARTS):
        part = slice(i * steps, (i + 1) * steps)
        products = tf.reshape(gates_TBG[part], (-1, G))[:num_one_hot]
        results = tf.raw_ops.BlockLSTMV2(
            seq_len_max=tf.cast(steps, "int64"),
            x=tf.concat([x_TBD[part, :, :width], one_hot], axis=-1),
            w=tf.concat([w_DG[:width], products, w_HG], axis=0),
            b=b_G,
            cs_prev=c_BH,
            h_prev=h_BH,
            wci=no_peephole_H,
            wcf=no_peephole_H,
            wco=no_peephole_H,
            use_peephole=False,
            cell_clip=0.0,
        )
        c_BH = results.cs[-1]
        h_BH = results.h[-1]
        results_by_part.append((results.h, results.cs, results.i, results.f, results.o, results.ci))

    joined = []
    for parts in zip(*results_by_part, strict=True):
        joined.append(in_order(tf.concat(parts, axis=0)[:T]))
    h_TBH, c_TBH, *gates = joined
    is_real_TB1 = mask_TB[..., None]
    return zero_padding(h_TBH, is_real_TB1), zero_padding(c_TBH, is_real_TB1), *gates


def _states_by_loop(x_TBD, mask_TB, w_DG, w_HG, b_G, backwards):
    """The same as `_states_by_operation`, for any number of sequences."""
    import tensorflow as tf

    T, B = tf.unstack(tf.shape(mask_TB))
    H = w_HG.shape[0]
    x_TBG = tf.tensordot(x_TBD, w_DG, 1)
    is_real_TB1 = tf.cast(mask_TB, "float32")[..., None]

    def step(n, h_BH, c_BH, *arrays):
        t = T - 1 - n if backwards else n
        gates_BG = x_TBG[t] + tf.nn.bias_add(tf.matmul(h_BH, w_HG), b_G)
        i, f, _, o = tf.split(tf.sigmoid(gates_BG), 4, axis=1)
        new = tf.tanh(gates_BG[:, 2 * H : 3 * H])
        c_BH = is_real_TB1[t] * (f * c_BH + i * new)
        h_BH = o * tf.tanh(c_BH)
        results = (h_BH, c_BH, i, f, o, new)
        arrays = [array.write(t, x) for array, x in zip(arrays, results, strict=True)]
        return n + 1, h_BH, c_BH, *arrays

    zeros_BH = tf.zeros((B, H))
    arrays = [tf.TensorArray("float32", T, element_shape=(None, H)) for _ in range(6)]
    _, _, _, *arrays = tf.while_loop(
        cond=lambda n, *_: n < T,
        body=step,
        loop_vars=(0, zeros_BH, zeros_BH, *arrays),
        parallel_iterations=1,
    )
    return [array.stack() for array in arrays]


def _gate_gradients(g_TBH, mask_TB, c_TBH, i, f, o, new, w_HG, backwards):
    """The gradients of an LSTM's gates before their sigmoid or tanh, `(T, B, 4H)`.

    The steps are computed from the last to the first.
    """
    import tensorflow as tf

    T = tf.shape(g_TBH)[0]
    tanh_c = tf.tanh(c_TBH)
    is_real_TB1 = tf.cast(mask_TB, "float32")[..., None]

    # The derivative of the cell by each of its gates i, f and new, and of the output by o.
    per_gate = [
        tf.raw_ops.SigmoidGrad(y=i, dy=new),
        tf.raw_ops.SigmoidGrad(y=f, dy=_before(c_TBH, backwards)),
        tf.raw_ops.TanhGrad(y=new, dy=i),
        tf.raw_ops.SigmoidGrad(y=o, dy=tanh_c),
    ]
    to_gates_TBG = tf.concat(per_gate, axis=-1)
    to_cell_TBH = tf.raw_ops.TanhGrad(y=tanh_c, dy=o)

    def step(n, d_BG, dc_BH, array):
        t = n if backwards else T - 1 - n
        dh_BH = g_TBH[t] + tf.matmul(d_BG, w_HG, transpose_b=True)
        dc_BH = is_real_TB1[t] * (dc_BH + dh_BH * to_cell_TBH[t])
        d_BG = tf.concat([dc_BH, dc_BH, dc_BH, dh_BH], axis=-1) * to_gates_TBG[t]
        return n + 1, d_BG, dc_BH * f[t], array.write(t, d_BG)

    d_BG = tf.zeros_like(to_gates_TBG[0])
    dc_BH = tf.zeros_like(to_cell_TBH[0])
    *_, array = tf.while_loop(
        cond=lambda n, *_: n < T,
        body=step,
        loop_vars=(0, d_BG, dc_BH, tf.TensorArray("float32", T)),
        parallel_iterations=1,
    )
    return array.stack()


def normalize_rows(x_RD, gamma_D, beta_D, epsilon):
    """Layer normalisation of each row, with `gamma` and `beta`.

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
    h_RD = tf.reshape(h, tf.shape(x_RD))
    return h_RD * tf.cast(gamma_D, x_RD.dtype) + tf.cast(beta_D, x_RD.dtype)
