"""Attention of a decoder on its encoder's memory.

Bahdanau et al. 2015; Luong et al. 2015; Vaswani et al. 2017.

Shape suffixes:
    B batch   T queries   S keys   Q features of a query   D features of a memory entry
    A units of the hidden layer
"""

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.masking import masked_softmax

SCORES = ("additive", "dot", "scaled_dot", "general")


@keras.saving.register_keras_serializable("colloquy")
class Attention(keras.layers.Layer):
    """The mean of a memory, weighted by how well each entry `h` answers a query `s`.

        a = softmax_h(score(s, h)),    c = sum_h a_h h

        additive     v . tanh(W_s s + W_h h)     Bahdanau et al. 2015, A.1.2
        dot          s . h                       Luong et al. 2015, eq. 8
        general      s . W h                     Luong et al. 2015, eq. 8
        scaled_dot   s . h / sqrt(D)             Vaswani et al. 2017, eq. 1

    `W_h h` and `W h` do not depend on the query: `keys` computes them once for all steps of a
    decoder.

    Args:
        score: One of `SCORES`.
        units: A; `None`: the size of the query.

    Call arguments:
        query: Float `(B, T, Q)`.
        memory: Float `(B, S, D)`; D = Q for `dot` and `scaled_dot`.
        memory_mask: Boolean `(B, S)`, `True` = real. A memory without real entries gives zeros.
            `None`: the implicit mask of `memory`, or else every entry is real.
        keys: The result of `keys(memory)`; `None`: it is computed.

    Returns:
        The contexts `c`, float `(B, T, D)`, with the implicit mask of `query`, and the weights `a`,
        float `(B, T, S)`.
    """

    def __init__(self, score="dot", units=None, **kwargs):
        super().__init__(**kwargs)
        check_choice("score", score, SCORES)
        self.supports_masking = True
        self.score = score
        self.units = units

    def build(self, query_shape, memory_shape, **_):
        Q = query_shape[-1]
        D = memory_shape[-1]
        if self.score in ("dot", "scaled_dot") and Q != D:
            raise ValueError(
                f"score={self.score!r} needs query and memory of one size. Received: {Q} and {D}"
            )
        if self.score == "additive":
            A = self.units or Q
            self.W_s = self.add_weight(name="W_s", shape=(Q, A), initializer="glorot_uniform")
            self.W_h = self.add_weight(name="W_h", shape=(D, A), initializer="glorot_uniform")
            self.v = self.add_weight(
                name="v", shape=(A,), initializer=keras.initializers.RandomUniform(-0.1, 0.1)
            )
        elif self.score == "general":
            self.W = self.add_weight(name="W", shape=(D, Q), initializer="glorot_uniform")

    def keys(self, memory):
        """The part of the score that depends on the memory alone.

        Returns float `(B, S, A)`, `(B, S, Q)` or the memory.
        """
        if self.score == "additive":
            kernel = self.W_h
        elif self.score == "general":
            kernel = self.W
        else:
            return memory
        # This method also runs outside of a call, where Keras does not cast weights to the
        # compute dtype.
        return ops.matmul(memory, ops.cast(kernel, memory.dtype))

    def call(self, query, memory, memory_mask=None, keys=None):
        keys_BSA = self.keys(memory) if keys is None else keys
        if self.score == "additive":
            query_BTA = ops.matmul(query, self.W_s)
            hidden_BTSA = ops.tanh(query_BTA[:, :, None] + keys_BSA[:, None])
            e_BTS = ops.matmul(hidden_BTSA, self.v[:, None])[..., 0]
        else:
            e_BTS = ops.einsum("btq,bsq->bts", query, keys_BSA)
            if self.score == "scaled_dot":
                e_BTS = e_BTS / memory.shape[-1] ** 0.5
        if memory_mask is not None:
            memory_mask = memory_mask[:, None, :]
        a_BTS = masked_softmax(e_BTS, memory_mask)
        return ops.matmul(a_BTS, memory), a_BTS


class AttentionCell(keras.layers.Layer):
    """A recurrent cell that attends to a memory before each step (Bahdanau et al. 2015, A.1.2).

        c_t = attention(s_{t-1}, h),    s_t = cell([y_{t-1}; c_t], s_{t-1})

    With a GRU whose reset gate comes first (`reset_after=False`), as Bahdanau's:

        r_t = sigmoid(W_yr y_{t-1} + W_sr s_{t-1} + W_cr c_t + b_r)
        z_t = sigmoid(W_yz y_{t-1} + W_sz s_{t-1} + W_cz c_t + b_z)
        s~_t = tanh(W_ys y_{t-1} + W_ss (r_t * s_{t-1}) + W_cs c_t + b_s)
        s_t = z_t * s_{t-1} + (1 - z_t) * s~_t

    The memory's keys, the memory and its mask are three more states of `keras.layers.RNN`, which no
    step changes.

    Args:
        cell: `keras.layers.GRUCell` or `LSTMCell`; its first state is `s`.
        attention: An `Attention`.
        with_context: A step also returns `c_t`.

    Call arguments:
        inputs: `y_{t-1}`, float `(B, E)`.
        states: The cell's states, float `(B, Q)` each, then the memory's keys, the memory, float
            `(B, S, D)`, and its mask `(B, S)`, 1 = real.

    Returns:
        `s_t`, float `(B, Q)`, or `[s_t; c_t]`, `(B, Q + D)`, and the list of states.
    """

    def __init__(self, cell, attention, with_context=False, **kwargs):
        super().__init__(**kwargs)
        self.cell = cell
        self.attention = attention
        self.with_context = with_context
        self.state_size = [*as_list(cell.state_size), -1, -1, -1]
        self.output_size = cell.output_size

    def attend(self, states):
        """`c_t`, float `(B, D)`, and the weights, float `(B, S)`."""
        s = states[0]
        keys, memory, mask = states[-3:]
        c_B1D, a_B1S = self.attention(s[:, None, :], memory, mask != 0, keys)
        return c_B1D[:, 0], a_B1S[:, 0]

    def call(self, inputs, states, training=None):
        cell_states = states[:-3]
        memory_states = states[-3:]
        c, _ = self.attend(states)
        x = ops.concatenate([inputs, c], axis=-1)
        s, cell_states = self.cell(x, cell_states, training=training)
        output = ops.concatenate([s, c], axis=-1) if self.with_context else s
        return output, [*as_list(cell_states), *memory_states]

    def build_for(self, inputs_size, memory_size):
        """Makes the weights for inputs and memories of these sizes."""
        self.attention.build((None, None, self.cell.output_size), (None, None, memory_size))
        self.cell.build((None, inputs_size + memory_size))
        self.output_size = self.cell.output_size
        if self.with_context:
            self.output_size += memory_size
        self.built = True


def as_list(states):
    return list(states) if isinstance(states, (list, tuple)) else [states]
