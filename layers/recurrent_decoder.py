"""The recurrent decoder of a seq2seq model.

Cho et al. 2014; Bahdanau et al. 2015; Luong et al. 2015.

Shape suffixes:
    B batch   S source words   T target words   E features of a word   H units
    D features of a memory entry
"""

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.attention import Attention
from colloquy.layers.attention_cell import AttentionCell
from colloquy.layers.gradients import Dense
from colloquy.layers.masking import mask_or_all_real
from colloquy.layers.recurrent_encoder import STATES, make_recurrent

BEFORE = ("additive", "dot")
"""Kinds of attention before the decoder's step."""
AFTER = ("luong_dot", "general", "scaled_dot")
"""Kinds of attention after the step."""


@keras.saving.register_keras_serializable("colloquy")
class RecurrentDecoder(keras.layers.Layer):
    """Writes a sequence word after word, attending to the encoder's memory `h` at each.

    Each word is a step of a stack of GRUs or LSTMs. `y_{t-1}` is the word before, `s_t` the state
    of the last layer. The kinds of attention are

        before the step   c_t = attention(state of the first layer before the step, h)
                          input of the first layer: [y_{t-1}; c_t]
        after the step    c_t = attention(s_t, h)
                          output: s~_t = tanh(W_c [c_t; s_t])           (Luong et al. 2015, eq. 5)
        none              c_t = the encoder's last state, at all steps (Cho et al. 2014, eq. 7)
                          input of the first layer: [y_{t-1}; c_t]

    The output is `s_t`, but after the step Luong's `s~_t`.

    Args:
        cell, units, layers, dropout: See `RecurrentEncoder`.
        attention: `"none"`, or one of `BEFORE` and `AFTER`: a score of `layers.attention`, where
            `"luong_dot"` is the score `"dot"`.
        output: `"state"`: the output above; `"all"`: `[output; y_{t-1}; c_t]`.

    Call arguments:
        y: The word before each, float `(B, T, E)`.
        memory: Float `(B, S, D)`.
        memory_mask: Boolean `(B, S)`, `True` = real. `None`: the implicit mask of `memory`, or else
            every entry is real.
        states: List of the first states, float `(B, H)`, as the encoder's last. `None`: zeros.

    Returns:
        Float `(B, T, H)`, or with `"all"` `(B, T, H + E + D)`, with the implicit mask of `y`.
        `step` computes the same word by word, and returns states and attention weights.
    """

    def __init__(
        self,
        cell="gru",
        units=256,
        layers=1,
        attention="additive",
        dropout=0.0,
        output="state",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_choice("cell", cell, tuple(STATES))
        check_choice("attention", attention, ("none", *BEFORE, *AFTER))
        check_choice("output", output, ("state", "all"))
        self.supports_masking = True
        self.cell = cell
        self.units = units
        self.attention = attention
        self.output_kind = output
        dtype = self.dtype_policy
        stack = []
        for i in range(layers):
            stack.append(make_recurrent(cell, units, name=f"layer_{i}", dtype=dtype))
        # Files of weights contain the names of the attributes `look` (the attention), `readout`
        # (`W_c`) and `stack`, so these cannot change.
        if attention != "none":
            score = "dot" if attention == "luong_dot" else attention
            self.look = Attention(score, name="attention", dtype=dtype)
        if attention in BEFORE:
            # The first layer is replaced by one that attends. It was made, because a layer draws
            # the seeds of its initializers: without it, another model would result from a seed.
            if cell == "gru":
                own_cell = keras.layers.GRUCell(units, reset_after=False, name="cell", dtype=dtype)
            else:
                own_cell = keras.layers.LSTMCell(units, name="cell", dtype=dtype)
            attending = AttentionCell(own_cell, self.look, name="attention_cell", dtype=dtype)
            stack[0] = keras.layers.RNN(
                attending, return_sequences=True, name="layer_0", dtype=dtype
            )
        if attention in AFTER:
            self.readout = Dense(
                units, activation="tanh", use_bias=False, name="readout", dtype=dtype
            )
        # The list is assigned when it is full, because Keras tracks the layers that it holds then.
        self.stack = stack
        self.drop = keras.layers.Dropout(dropout, dtype=dtype)

    def build(self, y_shape, memory_shape):
        E = y_shape[-1]
        D = memory_shape[-1]
        first, *others = self.stack
        if self.attention in BEFORE:
            # This builds `look`, too.
            first.cell.build_for(E, D)
        first_size = E + self.units if self.attention == "none" else E
        first.build((None, None, first_size))
        for layer in others:
            layer.build((None, None, self.units))
        if self.attention in AFTER:
            self.look.build((None, None, self.units), memory_shape)
            self.readout.build((None, None, self.units + D))

    def call(self, y, memory, memory_mask=None, states=None):
        memory_mask = mask_or_all_real(memory_mask, memory)
        if states is None:
            zeros_BH = ops.zeros((ops.shape(y)[0], self.units), y.dtype)
            states = [zeros_BH] * (len(self.stack) * STATES[self.cell])
        first, *others = self.stack
        first_states, *others_states = self._by_layer(states)

        # The first layer
        if self.attention in BEFORE:
            # `AttentionCell` takes the prepared memory as states, and returns `[s; c]`.
            prepared = self.look.prepare(memory, memory_mask)
            s_and_c = first(y, initial_state=[*first_states, *prepared])
            s = s_and_c[..., : self.units]
            c = s_and_c[..., self.units :]
        elif self.attention == "none":
            c_B1H = self._last_state(states)[:, None, :]
            c = ops.broadcast_to(c_B1H, (*ops.shape(y)[:2], self.units))
            y_and_c = ops.concatenate([y, c], axis=-1)
            s, *_ = first(y_and_c, initial_state=first_states)
        else:
            s, *_ = first(y, initial_state=first_states)

        # The other layers
        for layer, layer_states in zip(others, others_states, strict=True):
            s, *_ = layer(self.drop(s), initial_state=layer_states)

        # The attention after the step
        if self.attention in AFTER:
            c, _ = self.look(s, memory, memory_mask)
            s = self.readout(ops.concatenate([c, s], axis=-1))
        return self._output(s, y, c)

    def encoder_cache(self, memory, mask, states):
        """What all steps read, a list of arrays `(B, ...)`.

        It is the result of `Attention.prepare`, or without attention `c`, the encoder's last state.
        """
        if self.attention == "none":
            return [self._last_state(states)]
        return self.look.prepare(memory, mask)

    def step(self, y, states, cache):
        """Computes one word, from the word before it.

        Args:
            y: The word before it, float `(B, E)`.
            states: As in the call.
            cache: The result of `encoder_cache`.

        Returns:
            The output, as in the call.
            The list of states.
            The attention weights `(B, S)`, or `None`.
        """
        first, *others = self.stack
        first_states, *others_states = self._by_layer(states)
        weights = None

        # The first layer
        if self.attention in BEFORE:
            s, c, weights, states_after = first.cell.step(y, first_states, cache)
        elif self.attention == "none":
            [c] = cache
            s, states_after = first.cell(ops.concatenate([y, c], axis=-1), first_states)
        else:
            s, states_after = first.cell(y, first_states)
        all_states_after = list(states_after)

        # The other layers
        for layer, layer_states in zip(others, others_states, strict=True):
            s, states_after = layer.cell(s, layer_states)
            all_states_after += states_after

        # The attention after the step
        if self.attention in AFTER:
            c, weights = self.look.attend_once(s, cache)
            s = self.readout(ops.concatenate([c, s], axis=-1))
        return self._output(s, y, c), all_states_after, weights

    def _by_layer(self, states):
        """Groups states by layer: `[h1, c1, h2, c2] -> [[h1, c1], [h2, c2]]` for LSTMs."""
        size = STATES[self.cell]
        return [list(states[i : i + size]) for i in range(0, len(states), size)]

    def _last_state(self, states):
        """`h` of the last layer: h2 of `[h1, c1, h2, c2]` for LSTMs."""
        return states[-STATES[self.cell]]

    def _output(self, s, y, c):
        if self.output_kind == "all":
            return ops.concatenate([s, y, c], axis=-1)
        return s

    def compute_output_shape(self, y_shape, memory_shape):
        size = self.units
        if self.output_kind == "all":
            context_size = self.units if self.attention == "none" else memory_shape[-1]
            size += y_shape[-1] + context_size
        return (*y_shape[:2], size)
