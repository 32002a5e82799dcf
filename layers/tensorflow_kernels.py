"""Operations of TensorFlow for CPUs: layer normalisation, and a bidirectional LSTM.

This is the one file of `layers/` and `models/` that imports TensorFlow.

The LSTM:

    a_t           = x_t W + h_{t-1} U + b
    i_t, f_t, o_t = sigmoid(a_t)              input gate, forget gate, output gate
    n_t           = tanh(a_t)                 new content
    c_t           = f_t c_{t-1} + i_t n_t     cell
    h_t           = o_t tanh(c_t)             output

`a_t` has 4H columns, H for each of i, f, n and o, in this order. `backwards` means that a text is
read from its last word to its first: then the step before t is t + 1. A name that begins with `d`
is a gradient: `dc` is that of `c`.

Shape suffixes:
    R rows   D features of the input   T steps   B sequences   H units   G columns of `a`, 4H
    P parts of the steps   N words of a part
"""

from typing import Any, NamedTuple

import keras

from colloquy.layers.masking import zero_padding

# Other backends run without TensorFlow, and `has_kernels` is False there.
if keras.config.backend() == "tensorflow":
    import tensorflow as tf

PARTS = 4
"""`lstm_outputs` cuts the steps into this number of parts."""


def has_kernels(dtype):
    """True where this file is faster than `keras.ops`.

    That is on TensorFlow without a GPU, in float32 and bfloat16.
    """
    if keras.config.backend() != "tensorflow":
        return False
    if keras.backend.standardize_dtype(dtype) not in ("float32", "bfloat16"):
        return False
    return not tf.config.list_physical_devices("GPU")


def normalize_rows(x_RD, gamma_D, beta_D, epsilon):
    """Layer normalisation: each row of `x` gets mean 0 and variance 1, then `gamma` and `beta`.

    The result has the dtype of `x_RD`, float32 or bfloat16.

    Batch normalisation gives mean 0 and variance 1 to each channel of a batch of images. Here the
    rows are the channels of one image. TensorFlow's graph optimizer replaces such a batch
    normalisation with `gamma` and `beta` by one operation of oneDNN, in a seventh of the time of
    separate operations for the mean, the difference and so on.
    """
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


# === LSTM ===


class States(NamedTuple):
    """The values of an LSTM at all steps, float32 `(T, B, H)` each."""

    h: Any
    c: Any
    i: Any
    f: Any
    o: Any
    n: Any


def bilstm(x_BTD, mask_BT, forward, backward, training):
    """Computes `keras.layers.Bidirectional` of two LSTMs.

    Args:
        x_BTD: float32 or bfloat16, finite also at padding.
        mask_BT: `True` = real. Padding comes after the words.
        forward, backward: The weights of each `keras.layers.LSTM`: `W` `(D, 4H)`, `U` `(H, 4H)`
            and `b` `(4H,)`.

    Returns:
        `(B, T, 2H)` of the dtype of `x_BTD`, zeros at padding.
    """
    x_TBD = tf.transpose(x_BTD, (1, 0, 2))
    mask_TB = tf.transpose(mask_BT)
    forward_TBH = _lstm(x_TBD, mask_TB, forward, backwards=False, training=training)
    backward_TBH = _lstm(x_TBD, mask_TB, backward, backwards=True, training=training)
    both_TBH = tf.concat([forward_TBH, backward_TBH], axis=-1)
    return tf.transpose(both_TBH, (1, 0, 2))


def _lstm(x_TBD, mask_TB, weights, backwards, training):
    """One direction: the outputs `h`, `(T, B, H)`.

    A loop is faster for the many sequences of a training batch, the operation for a single one.
    Both have the gradient of the loop: TensorFlow's own gradient of the operation is not that of
    Keras's LSTM.
    """

    @tf.custom_gradient
    def compute(x_TBD, W_DG, U_HG, b_G):
        arguments = [tf.cast(array, "float32") for array in (x_TBD, W_DG, U_HG, b_G)]
        if training:
            states = _states_by_loop(*arguments, mask_TB, backwards)
            h_TBH = states.h
        else:
            states = None
            h_TBH = _outputs_by_operation(*arguments, mask_TB, backwards)

        def gradient(dh_TBH):
            loop_states = states or _states_by_loop(*arguments, mask_TB, backwards)
            return _gradients(dh_TBH, loop_states, x_TBD, W_DG, U_HG, b_G, mask_TB, backwards)

        return tf.cast(h_TBH, x_TBD.dtype), gradient

    return compute(x_TBD, *[tf.convert_to_tensor(array) for array in weights])


def _outputs_by_operation(x_TBD, W_DG, U_HG, b_G, mask_TB, backwards):
    """`h` for inference. The operation only reads forwards, so texts are reversed and put back."""
    lengths_B = tf.reduce_sum(tf.cast(mask_TB, "int32"), axis=0)

    def reverse_words(array):
        return tf.reverse_sequence(array, lengths_B, seq_axis=0, batch_axis=1)

    if backwards:
        h_TBH = reverse_words(lstm_outputs(reverse_words(x_TBD), W_DG, U_HG, b_G))
    else:
        h_TBH = lstm_outputs(x_TBD, W_DG, U_HG, b_G)
    return zero_padding(h_TBH, mask_TB[..., None])


def _states_by_loop(x_TBD, W_DG, U_HG, b_G, mask_TB, backwards):
    """`States` by a loop over the steps. One product before it multiplies all inputs by `W`."""
    T, B = tf.unstack(tf.shape(mask_TB))
    H = U_HG.shape[0]
    xW_TBG = tf.tensordot(x_TBD, W_DG, 1)
    is_real_TB1 = tf.cast(mask_TB, "float32")[..., None]

    def step(steps_done, h_BH, c_BH, arrays):
        t = T - 1 - steps_done if backwards else steps_done
        a_BG = xW_TBG[t] + tf.nn.bias_add(tf.matmul(h_BH, U_HG), b_G)

        # One sigmoid for all columns is fast. Those of `n` are not used: `n` needs a tanh.
        i, f, _, o = tf.split(tf.sigmoid(a_BG), 4, axis=1)
        n = tf.tanh(a_BG[:, 2 * H : 3 * H])
        # At padding c is 0, and therefore h is 0, too.
        c_BH = is_real_TB1[t] * (f * c_BH + i * n)
        h_BH = o * tf.tanh(c_BH)

        values = States(h_BH, c_BH, i, f, o, n)
        arrays = [array.write(t, value) for array, value in zip(arrays, values, strict=True)]
        return steps_done + 1, h_BH, c_BH, arrays

    zeros_BH = tf.zeros((B, H))
    arrays = [tf.TensorArray("float32", T, element_shape=(None, H)) for _ in States._fields]
    *_, arrays = tf.while_loop(
        cond=lambda steps_done, *_: steps_done < T,
        body=step,
        loop_vars=(0, zeros_BH, zeros_BH, arrays),
        parallel_iterations=1,
    )
    return States(*[array.stack() for array in arrays])


def _gradients(dh_TBH, states, x_TBD, W_DG, U_HG, b_G, mask_TB, backwards):
    """The gradients of `x`, `W`, `U` and `b`, from that of `h`.

        dx_t = da_t W^T     dW = sum_t x_t^T da_t     dU = sum_t h_{t-1}^T da_t     db = sum_t da_t

    Each product is over all steps at once, in the dtype of `x_TBD`.
    """
    dh_TBH = tf.cast(dh_TBH, "float32")
    U_float32_HG = tf.cast(U_HG, "float32")
    da_float32_TBG = _gradient_of_a(dh_TBH, states, U_float32_HG, mask_TB, backwards)
    db_G = tf.reduce_sum(da_float32_TBG, axis=(0, 1))

    da_TBG = tf.cast(da_float32_TBG, x_TBD.dtype)
    h_before_TBH = tf.cast(_step_before(states.h, backwards), x_TBD.dtype)
    dx_TBD = tf.tensordot(da_TBG, W_DG, [[2], [1]])
    dW_DG = _sum_of_products(x_TBD, da_TBG)
    dU_HG = _sum_of_products(h_before_TBH, da_TBG)
    return dx_TBD, dW_DG, dU_HG, tf.cast(db_G, b_G.dtype)


def _gradient_of_a(dh_TBH, states, U_HG, mask_TB, backwards):
    """The gradient of `a`, `(T, B, 4H)`, by a loop from the last step that was read to the first.

        dh_t = dh_TBH[t] + da_{t+1} U^T
        dc_t = dc_{t+1} f_{t+1} + dh_t o_t (1 - tanh(c_t)^2)
        da_t = [dc_t; dc_t; dc_t; dh_t] * derivatives of [c; c; c; h] by the columns i, f, n, o

    All derivatives are computed before the loop.
    """
    T = tf.shape(dh_TBH)[0]
    is_real_TB1 = tf.cast(mask_TB, "float32")[..., None]
    _, c, i, f, o, n = states
    tanh_c = tf.tanh(c)

    # SigmoidGrad is dy y (1 - y), and TanhGrad is dy (1 - y^2).
    derivatives = [
        tf.raw_ops.SigmoidGrad(y=i, dy=n),
        tf.raw_ops.SigmoidGrad(y=f, dy=_step_before(c, backwards)),
        tf.raw_ops.TanhGrad(y=n, dy=i),
        tf.raw_ops.SigmoidGrad(y=o, dy=tanh_c),
    ]
    derivatives_TBG = tf.concat(derivatives, axis=-1)
    h_by_c_TBH = tf.raw_ops.TanhGrad(y=tanh_c, dy=o)

    def step(steps_done, da_next_BG, dc_from_next_BH, da_array):
        # `da_next` is da_{t+1}, and `dc_from_next` is dc_{t+1} f_{t+1}.
        t = steps_done if backwards else T - 1 - steps_done
        dh_BH = dh_TBH[t] + tf.matmul(da_next_BG, U_HG, transpose_b=True)
        dc_BH = is_real_TB1[t] * (dc_from_next_BH + dh_BH * h_by_c_TBH[t])
        da_BG = tf.concat([dc_BH, dc_BH, dc_BH, dh_BH], axis=-1) * derivatives_TBG[t]
        return steps_done + 1, da_BG, dc_BH * f[t], da_array.write(t, da_BG)

    zeros_BG = tf.zeros_like(derivatives_TBG[0])
    zeros_BH = tf.zeros_like(h_by_c_TBH[0])
    *_, da_array = tf.while_loop(
        cond=lambda steps_done, *_: steps_done < T,
        body=step,
        loop_vars=(0, zeros_BG, zeros_BH, tf.TensorArray("float32", T)),
        parallel_iterations=1,
    )
    return da_array.stack()


def _step_before(values_TBH, backwards):
    """For each step the values of the step read before it: `[1, 2, 3] -> [0, 1, 2]`.

    Backwards, the step before t is t + 1: `[1, 2, 3] -> [2, 3, 0]`.
    """
    zeros_1BH = tf.zeros_like(values_TBH[:1])
    if backwards:
        return tf.concat([values_TBH[1:], zeros_1BH], axis=0)
    return tf.concat([zeros_1BH, values_TBH[:-1]], axis=0)


def _sum_of_products(x_TBD, da_TBG):
    """`x_t^T da_t`, summed over all steps and sequences, `(D, 4H)`.

    `tf.tensordot` would give the same, but transpose both arrays in memory first.
    """
    x_RD = tf.reshape(x_TBD, (-1, x_TBD.shape[-1]))
    da_RG = tf.reshape(da_TBG, (-1, da_TBG.shape[-1]))
    return tf.matmul(x_RD, da_RG, transpose_a=True)


def lstm_outputs(x_TBD, W_DG, U_HG, b_G):
    """The outputs of an LSTM, `(T, B, H)`, float32.

    TensorFlow's operation `BlockLSTMV2` is called for one part of the steps at a time.
    """
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
