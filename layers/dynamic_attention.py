"""Attention inside a recurrent layer, word after word: BiDAF's ablation "dynamic attention".

Shape suffixes:  B batch   T context words   J query words   D features of both   H units
"""

import keras
from keras import ops

from colloquy.layers.attention import Attention, AttentionCell
from colloquy.layers.masking import zero_padding


@keras.saving.register_keras_serializable("colloquy")
class ReadingCell(AttentionCell):
    """A recurrent cell that attends to a query at each word, by the word and by its own state.

        e_tj = v . tanh(W_s [h_t; s_{t-1}] + W_h u_j),   a_t = softmax(e_t),   u~_t = sum_j a_tj u_j
        s_t  = cell([h_t; u~_t; h_t * u~_t], s_{t-1})

    Arguments are those of `layers.attention.AttentionCell`; the input is `h_t`, float `(B, D)`, the
    memory the query.
    """

    def call(self, inputs, states, training=None):
        s, (keys, query, mask) = states[0], states[-3:]
        asking = ops.concatenate([inputs, s], axis=-1)[:, None, :]
        u, _ = self.attention(asking, query, mask != 0, keys)
        u = u[:, 0]
        s, own = self.cell(
            ops.concatenate([inputs, u, inputs * u], axis=-1), states[:-3], training=training
        )
        return s, [*own, *states[-3:]]

    def build_for(self, inputs_size, memory_size):
        self.attention.build(
            (None, None, inputs_size + self.cell.output_size), (None, None, memory_size)
        )
        self.cell.build((None, inputs_size + 2 * memory_size))
        self.built = True


def reverse_words(x, mask):
    """Each example's own words, float `(B, T, D)`, from the last to the first; padding stays after
    them.

    >>> x = np.array([[[5.0], [6.0], [9.0]]])
    >>> keras.ops.convert_to_numpy(reverse_words(x, np.array([[True, True, False]])))[0, :, 0].tolist()
    [6.0, 5.0, 9.0]
    """
    t = ops.arange(ops.shape(mask)[1], dtype="int32")
    length = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
    return ops.take_along_axis(x, ops.where(mask, length - 1 - t, t)[..., None], axis=1)


@keras.saving.register_keras_serializable("colloquy")
class DynamicBiLSTM(keras.layers.Layer):
    """A bidirectional LSTM that attends to a query at every word (Seo et al. 2017, section 4; Wang
    and Jiang 2016).

    Args:
        units: H, in each direction.

    Call arguments:
        context: Float `(B, T, D)`.
        query: Float `(B, J, D)`.
        context_mask: Boolean `(B, T)`, `True` = real; padding is at the end.
        query_mask: Boolean `(B, J)`.

    Returns:
        Float `(B, T, 2H)`, zeros at padding.
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.directions = []
        for name in ("forward", "backward"):
            attention = Attention(
                "additive", units, name=f"{name}_attention", dtype=self.dtype_policy
            )
            lstm = keras.layers.LSTMCell(units, name=f"{name}_lstm", dtype=self.dtype_policy)
            cell = ReadingCell(lstm, attention, name=f"{name}_cell", dtype=self.dtype_policy)
            self.directions.append(
                keras.layers.RNN(cell, return_sequences=True, name=name, dtype=self.dtype_policy)
            )

    def build(self, context_shape, query_shape, *_):
        for rnn in self.directions:
            rnn.cell.build_for(context_shape[-1], query_shape[-1])
            rnn.built = True

    def call(self, context, query, context_mask, query_mask, training=None):
        zeros = ops.zeros((ops.shape(context)[0], self.units), context.dtype)

        # without a mask, which JAX's loop does not take beside a memory: padding comes last
        def read(rnn, context):
            extra = [rnn.cell.attention.keys(query), query, ops.cast(query_mask, query.dtype)]
            return rnn(context, initial_state=[zeros, zeros, *extra], training=training)

        forward, backward = self.directions
        back = reverse_words(read(backward, reverse_words(context, context_mask)), context_mask)
        return zero_padding(
            ops.concatenate([read(forward, context), back], axis=-1), context_mask[..., None]
        )
