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

    `keras.layers.RNN` gives a cell only an input and states. So the memory comes as three more
    states after the cell's own, which no step changes; `memory_states` makes them.

    Args:
        cell: `keras.layers.GRUCell` or `LSTMCell`; its first state is `s`.
        attention: An `Attention`.

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
        # `RNN` needs the sizes only of states that it makes itself, and the memory is never one.
        memory_sizes = [-1, -1, -1]
        self.state_size = [*keras.tree.flatten(cell.state_size), *memory_sizes]

    def build_for(self, inputs_size, memory_size):
        """Makes the weights of the cell.

        `RNN.build` knows no `memory_size`. The layer around calls this first, and then `RNN.build`,
        which leaves a cell alone that is built.
        """
        self.attention.build((None, None, self.cell.output_size), (None, None, memory_size))
        self.cell.build((None, inputs_size + memory_size))
        self.built = True

    def memory_states(self, memory, mask):
        """The keys of a memory, float `(B, S, D)`, the memory and its mask, with 1 for `True`."""
        return [self.attention.keys(memory), memory, ops.cast(mask, memory.dtype)]

    def attend(self, query, memory_states):
        """Attends by one query, float `(B, Q)`: returns `c`, `(B, D)`, and weights, `(B, S)`."""
        keys, memory, mask = memory_states
        c_B1D, a_B1S = self.attention(query[:, None, :], memory, mask != 0, keys)
        return c_B1D[:, 0], a_B1S[:, 0]

    def step(self, inputs, cell_states, memory_states, training=None):
        """One step: returns `s_t`, `c_t`, the attention weights and the cell's states after it."""
        c, weights = self.attend(cell_states[0], memory_states)
        x = ops.concatenate([inputs, c], axis=-1)
        s, states_after = self.cell(x, cell_states, training=training)
        return s, c, weights, states_after

    def call(self, inputs, states, training=None):
        cell_states = states[:-3]
        memory_states = states[-3:]
        s, c, _, states_after = self.step(inputs, cell_states, memory_states, training)
        return ops.concatenate([s, c], axis=-1), [*states_after, *memory_states]
