"""Attention inside a recurrent layer, word after word: BiDAF's ablation "dynamic attention".

Shape suffixes:  B batch   T context words   J query words   D features of both   H units
"""

import keras
from keras import ops

from colloquy.layers.attention import Attention, AttentionCell
from colloquy.layers.masking import mask_or_all_real, zero_padding
from colloquy.layers.unpadding import apply_padding_last


@keras.saving.register_keras_serializable("colloquy")
class ReadingCell(AttentionCell):
    """A recurrent cell that attends to a query at each word, by the word and by its own state.

        e_tj = v . tanh(W_s [h_t; s_{t-1}] + W_h u_j),   a_t = softmax(e_t),   u~_t = sum_j a_tj u_j
        s_t  = cell([h_t; u~_t; h_t * u~_t], s_{t-1})

    Arguments are those of `layers.attention.AttentionCell`; the input is `h_t`, float `(B, D)`, the
    memory the query.
    """

    def call(self, inputs, states, training=None):
        cell_states = states[:-3]
        memory_states = states[-3:]
        keys, query, mask = memory_states
        h_and_s = ops.concatenate([inputs, states[0]], axis=-1)
        u_B1D, _ = self.attention(h_and_s[:, None, :], query, mask != 0, keys)
        u = u_B1D[:, 0]
        x = ops.concatenate([inputs, u, inputs * u], axis=-1)
        s, cell_states = self.cell(x, cell_states, training=training)
        return s, [*cell_states, *memory_states]

    def build_for(self, inputs_size, memory_size):
        self.attention.build(
            (None, None, inputs_size + self.cell.output_size), (None, None, memory_size)
        )
        self.cell.build((None, inputs_size + 2 * memory_size))
        self.built = True


def reverse_words(x, mask):
    """Reverses the words of each example, float `(B, T, D)`; padding stays after them.

    >>> x = np.array([[[5.0], [6.0], [9.0]]])
    >>> y = reverse_words(x, np.array([[True, True, False]]))
    >>> keras.ops.convert_to_numpy(y)[0, :, 0].tolist()
    [6.0, 5.0, 9.0]
    """
    index_T = ops.arange(ops.shape(mask)[1], dtype="int32")
    length_B1 = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
    source_BT = ops.where(mask, length_B1 - 1 - index_T, index_T)
    return ops.take_along_axis(x, source_BT[..., None], axis=1)


@keras.saving.register_keras_serializable("colloquy")
class DynamicBiLSTM(keras.layers.Layer):
    """A bidirectional LSTM that attends to a query at every word.

    Seo et al. 2017, section 4; Wang and Jiang 2016.

    Args:
        units: H, in each direction.

    Call arguments:
        context: Float `(B, T, D)`.
        query: Float `(B, J, D)`.
        context_mask: Boolean `(B, T)`, `True` = real; padding may be anywhere. `None`: the
            implicit mask of `context`, or else every word is real.
        query_mask: Likewise, `(B, J)`.

    Returns:
        Float `(B, T, 2H)`, zeros at padding.
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
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

    def build(self, context_shape, query_shape, *_, **__):
        for rnn in self.directions:
            rnn.cell.build_for(context_shape[-1], query_shape[-1])
            rnn.built = True

    def call(self, context, query, context_mask=None, query_mask=None, training=None):
        context_mask = mask_or_all_real(context_mask, context)
        query_mask = mask_or_all_real(query_mask, query)
        zeros = ops.zeros((ops.shape(context)[0], self.units), context.dtype)

        # No mask is passed, because JAX's loop takes none beside a memory. Padding comes last, so
        # it reaches no real word.
        def read(rnn, context):
            keys = rnn.cell.attention.keys(query)
            memory = [keys, query, ops.cast(query_mask, query.dtype)]
            return rnn(context, initial_state=[zeros, zeros, *memory], training=training)

        def read_both_ways(context, mask):
            forward, backward = self.directions
            backward_BTH = reverse_words(read(backward, reverse_words(context, mask)), mask)
            return ops.concatenate([read(forward, context), backward_BTH], axis=-1)

        both = apply_padding_last(read_both_ways, context, context_mask)
        return zero_padding(both, context_mask[..., None])
