"""A recurrent cell that attends to a memory.

Shape suffixes:
    B batch   S entries of the memory   D features of an entry   Q units of the cell
    E features of the input
"""

import keras
from keras import ops


class AttentionCell(keras.layers.Layer):
    """A recurrent cell that attends to a memory before each step (Bahdanau et al. 2015, A.1.2).

        c_t = attention(s_{t-1}, h),    s_t = cell([y_{t-1}; c_t], s_{t-1})

    With a GRU whose reset gate comes first (`reset_after=False`), as Bahdanau's:

        r_t = sigmoid(W_yr y_{t-1} + W_sr s_{t-1} + W_cr c_t + b_r)
        z_t = sigmoid(W_yz y_{t-1} + W_sz s_{t-1} + W_cz c_t + b_z)
        s~_t = tanh(W_ys y_{t-1} + W_ss (r_t * s_{t-1}) + W_cs c_t + b_s)
        s_t = z_t * s_{t-1} + (1 - z_t) * s~_t

    `keras.layers.RNN` gives a cell only an input and states. So what `Attention.prepare` makes of
    the memory, three arrays, comes as three more states after the cell's own. No step changes them.

    Args:
        cell: `keras.layers.GRUCell` or `LSTMCell`; its first state is `s`.
        attention: An `Attention`, `layers.attention`.

    Call arguments:
        inputs: `y_{t-1}`, float `(B, E)`.
        states: The cell's states, float `(B, Q)` each, then the three of the memory.

    Returns:
        `[s_t; c_t]`, float `(B, Q + D)`.
        The states after the step.
    """

    def __init__(self, cell, attention, **kwargs):
        super().__init__(**kwargs)
        self.cell = cell
        self.attention = attention
        # `RNN` needs the size only of states that it makes itself, and the last three never are.
        self.state_size = [*keras.tree.flatten(cell.state_size), -1, -1, -1]

    def build_for(self, inputs_size, memory_size):
        """Builds the cell, as the first part of the `build` of the layer that holds it.

        `RNN.build` does not know the size of the memory, and skips a cell that is built.
        """
        self.attention.build((None, None, self.cell.output_size), (None, None, memory_size))
        self.cell.build((None, inputs_size + memory_size))
        self.built = True

    def step(self, y, cell_states, prepared):
        """One step, with the result of `Attention.prepare`.

        Returns `s_t`, `c_t`, the attention weights and the cell's states after the step.
        """
        c, weights = self.attention.attend_once(cell_states[0], prepared)
        s, states_after = self.cell(ops.concatenate([y, c], axis=-1), cell_states)
        return s, c, weights, states_after

    def call(self, inputs, states):
        cell_states = states[:-3]
        prepared = states[-3:]
        s, c, _, states_after = self.step(inputs, cell_states, prepared)
        return ops.concatenate([s, c], axis=-1), [*states_after, *prepared]
