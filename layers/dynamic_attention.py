"""Attention inside a recurrent layer, word after word: BiDAF's ablation "dynamic attention".

Shape suffixes:  B batch   T context words   J query words   D features of both   H units
"""

import keras
from keras import ops

from colloquy.layers.attention import Attention
from colloquy.layers.attention_cell import AttentionCell
from colloquy.layers.masking import mask_or_all_real, zero_padding
from colloquy.layers.padding_last import apply_padding_last


class ReadingCell(AttentionCell):
    """A recurrent cell that attends to a query at each word, by the word and by its own state.

        e_tj = v . tanh(W_s [h_t; s_{t-1}] + W_h u_j),   a_t = softmax(e_t),   u~_t = sum_j a_tj u_j
        s_t  = cell([h_t; u~_t; h_t * u~_t], s_{t-1})

    Arguments are those of `AttentionCell`. The input is `h_t`, float `(B, D)`; the memory is the
    query `u`.
    """

    def build_for(self, inputs_size, memory_size):
        units = self.cell.output_size
        self.attention.build((None, None, inputs_size + units), (None, None, memory_size))
        self.cell.build((None, inputs_size + 2 * memory_size))
        self.built = True

    def step(self, h, cell_states, prepared):
        s_before = cell_states[0]
        query = ops.concatenate([h, s_before], axis=-1)
        u_tilde, weights = self.attention.attend_once(query, prepared)
        x = ops.concatenate([h, u_tilde, h * u_tilde], axis=-1)
        s, states_after = self.cell(x, cell_states)
        return s, u_tilde, weights, states_after


def reverse_words(x, mask):
    """Reverses the words of each example, float `(B, T, D)`; padding stays after them.

    With 3 words and 1 padding, the result has the words of the places `[2, 1, 0, 3]`.

    >>> x = np.array([[[5.0], [6.0], [9.0]]])
    >>> y = reverse_words(x, np.array([[True, True, False]]))
    >>> keras.ops.convert_to_numpy(y)[0, :, 0].tolist()
    [6.0, 5.0, 9.0]
    """
    index_T = ops.arange(ops.shape(mask)[1], dtype="int32")
    length_B1 = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
    place_BT = ops.where(mask, length_B1 - 1 - index_T, index_T)
    return ops.take_along_axis(x, place_BT[..., None], axis=1)


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
        policy = self.dtype_policy
        for name in ("forward", "backward"):
            attention = Attention("additive", units, name=f"{name}_attention", dtype=policy)
            lstm = keras.layers.LSTMCell(units, name=f"{name}_lstm", dtype=policy)
            cell = ReadingCell(lstm, attention, name=f"{name}_cell", dtype=policy)
            rnn = keras.layers.RNN(cell, return_sequences=True, name=name, dtype=policy)
            self.directions.append(rnn)

    def build(self, context_shape, query_shape):
        for rnn in self.directions:
            rnn.cell.build_for(context_shape[-1], query_shape[-1])
            rnn.build(context_shape)

    def call(self, context, query, context_mask=None, query_mask=None):
        context_mask = mask_or_all_real(context_mask, context)
        query_mask = mask_or_all_real(query_mask, query)

        def read(rnn, context):
            zeros_BH = ops.zeros((ops.shape(context)[0], self.units), context.dtype)
            prepared = rnn.cell.attention.prepare(query, query_mask)
            # No mask: with JAX, Keras takes none beside states like these. Padding comes after the
            # words, see `apply_padding_last`, so it changes the state of no word.
            s_and_u = rnn(context, initial_state=[zeros_BH, zeros_BH, *prepared])
            return s_and_u[..., : self.units]

        def read_both_ways(context, mask):
            forward, backward = self.directions
            forward_BTH = read(forward, context)
            backward_BTH = read(backward, reverse_words(context, mask))
            return ops.concatenate([forward_BTH, reverse_words(backward_BTH, mask)], axis=-1)

        both_BTH = apply_padding_last(read_both_ways, context, context_mask)
        return zero_padding(both_BTH, context_mask[..., None])
