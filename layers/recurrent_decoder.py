"""The recurrent decoder of a seq2seq model.

Cho et al. 2014; Bahdanau et al. 2015; Luong et al. 2015.

Shape suffixes:
    B batch   S source words   T target words   E features of a word   H units
    D features of a memory entry
"""

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.attention import Attention, AttentionCell, as_list
from colloquy.layers.gradients import Dense
from colloquy.layers.masking import mask_or_all_real
from colloquy.layers.recurrent_encoder import STATES, make_recurrent

BEFORE = {"additive": "additive", "dot": "dot"}
"""Attention before the decoder's step, with its score of `layers.attention.Attention`."""
AFTER = {"luong_dot": "dot", "general": "general", "scaled_dot": "scaled_dot"}
"""Attention after it."""


@keras.saving.register_keras_serializable("colloquy")
class RecurrentDecoder(keras.layers.Layer):
    """Writes a sequence word after word, attending to the encoder's memory at each.

    `"additive"` and `"dot"` attention come before the step, with `s_{t-1}` as the query, and reach
    the gates of the first layer, see `layers.attention.AttentionCell`; the output is the state.
    `"luong_dot"`, `"general"` and `"scaled_dot"` come after the last layer's step, and the output
    is Luong's attentional vector, eq. 5:

        c_t = attention(s_t, h),    s~_t = tanh(W_c [c_t; s_t])

    With `"none"` every step sees the encoder's last state besides the word (Cho et al. 2014, eq.
    7).

    Args:
        cell, units, layers, dropout: See `RecurrentEncoder`.
        attention: `"none"`, or one of `BEFORE` and `AFTER`.
        output: `"state"`: the output above. `"all"`: with the word before and the context `c_t`, or
            without attention the encoder's last state: `[s_t; y_{t-1}; c_t]`.

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
        policy = self.dtype_policy
        stack = [
            make_recurrent(cell, units, name=f"layer_{i}", dtype=policy) for i in range(layers)
        ]
        # Files of weights contain this name, so it cannot change.
        self.look = None
        if attention != "none":
            score = {**BEFORE, **AFTER}[attention]
            self.look = Attention(score, name="attention", dtype=policy)
        if attention in BEFORE:
            cell_before = AttentionCell(
                _make_cell(cell, units, name="cell", dtype=policy),
                self.look,
                with_context=output == "all",
                name="attention_cell",
                dtype=policy,
            )
            stack[0] = keras.layers.RNN(
                cell_before, return_sequences=True, name="layer_0", dtype=policy
            )
        elif attention in AFTER:
            self.readout = Dense(
                units, activation="tanh", use_bias=False, name="readout", dtype=policy
            )
        # The list is assigned when it is full, because Keras tracks the layers that it holds then.
        self.stack = stack
        self.drop = keras.layers.Dropout(dropout, dtype=policy)

    def build(self, y_shape, memory_shape, **_):
        E = y_shape[-1]
        D = memory_shape[-1]
        first, *others = self.stack
        if self.attention in BEFORE:
            first.cell.build_for(E, D)
            first.built = True
        elif self.attention == "none":
            first.build((None, None, E + self.units))
        else:
            first.build((None, None, E))
        for layer in others:
            layer.build((None, None, self.units))
        if self.attention in AFTER:
            self.look.build((None, None, self.units), memory_shape)
            self.readout.build((None, None, self.units + D))

    def call(self, y, memory, memory_mask=None, states=None, training=None):
        memory_mask = mask_or_all_real(memory_mask, memory)
        if states is None:
            zeros = ops.zeros((ops.shape(y)[0], self.units), y.dtype)
            states = [zeros] * (len(self.stack) * STATES[self.cell])
        states = _states_by_layer(self.cell, states)
        x = y
        c = None
        if self.attention == "none":
            summary = states[-1][0][:, None, :]
            c = ops.broadcast_to(summary, (*ops.shape(y)[:2], self.units))
            x = ops.concatenate([y, c], axis=-1)

        for i, layer in enumerate(self.stack):
            if i > 0:
                x = self.drop(x, training=training)
            if i == 0 and self.attention in BEFORE:
                memory_states = [
                    self.look.keys(memory),
                    memory,
                    ops.cast(memory_mask, memory.dtype),
                ]
                initial_state = [*states[0], *memory_states]
                s_and_c = layer(x, initial_state=initial_state, training=training)
                x = s_and_c[..., : self.units]
                c = s_and_c[..., self.units :]
            else:
                x, *_ = layer(x, initial_state=states[i], training=training)

        if self.attention in AFTER:
            c, _ = self.look(x, memory, memory_mask)
            x = self.readout(ops.concatenate([c, x], axis=-1))
        return self._output(x, y, c)

    def encoder_cache(self, memory, mask, states):
        """The inputs of all steps: the memory's keys, the memory, its mask and the last state."""
        keys = memory if self.look is None else self.look.keys(memory)
        [summary, *_] = _states_by_layer(self.cell, states)[-1]
        return [keys, memory, ops.cast(mask, memory.dtype), summary]

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
        keys, memory, mask, summary = cache
        memory_states = [keys, memory, mask]
        x = y
        c = summary
        weights = None
        if self.attention == "none":
            x = ops.concatenate([x, summary], axis=-1)

        states_after = []
        states_by_layer = _states_by_layer(self.cell, states)
        for i, (layer, layer_states) in enumerate(zip(self.stack, states_by_layer, strict=True)):
            if i == 0 and self.attention in BEFORE:
                cell_states = [*layer_states, *memory_states]
                c, weights = layer.cell.attend(cell_states)
                s_and_c, cell_states = layer.cell(x, cell_states)
                x = s_and_c[:, : self.units]
                states_after += cell_states[:-3]
            else:
                x, layer_states = layer.cell(x, layer_states)
                states_after += as_list(layer_states)

        if self.attention in AFTER:
            c_B1D, weights_B1S = self.look(x[:, None, :], memory, mask != 0, keys)
            c = c_B1D[:, 0]
            weights = weights_B1S[:, 0]
            x = self.readout(ops.concatenate([c, x], axis=-1))
        return self._output(x, y, c), states_after, weights

    def _output(self, x, y, c):
        if self.output_kind == "all":
            return ops.concatenate([x, y, c], axis=-1)
        return x

    def compute_output_shape(self, y_shape, memory_shape, **_):
        size = self.units
        if self.output_kind == "all":
            context_size = self.units if self.attention == "none" else memory_shape[-1]
            size += y_shape[-1] + context_size
        return (*y_shape[:2], size)


def _make_cell(cell, units, **options):
    if cell == "gru":
        return keras.layers.GRUCell(units, reset_after=False, **options)
    return keras.layers.LSTMCell(units, **options)


def _states_by_layer(cell, states):
    size = STATES[cell]
    return [list(states[i : i + size]) for i in range(0, len(states), size)]
