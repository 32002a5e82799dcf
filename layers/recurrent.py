"""The recurrent encoder and decoder of a seq2seq model (Cho et al. 2014; Bahdanau et al. 2015;
Luong et al. 2015).

Shape suffixes:  B batch   S source words   T target words   E features of a word   H units   D of a
memory entry
"""

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.attention import Attention, AttentionCell
from colloquy.layers.bilstm import both_directions
from colloquy.layers.gradients import Dense
from colloquy.layers.masking import zero_padding

STATES = {"gru": 1, "lstm": 2}  # cells, with the number of their states
BEFORE = {"additive": "additive", "dot": "dot"}
"""Kinds of attention before the decoder's step, with their scores of
`layers.attention.Attention`.
"""
# kinds of attention after it
AFTER = {"luong_dot": "dot", "general": "general", "scaled_dot": "scaled_dot"}


def _recurrent(cell, units, **options):
    kind = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}[cell]
    return kind(units, return_sequences=True, return_state=True, **options)


def _states_by_layer(cell, states):
    size = STATES[cell]
    return [list(states[i : i + size]) for i in range(0, len(states), size)]


@keras.saving.register_keras_serializable("colloquy")
class RecurrentEncoder(keras.layers.Layer):
    """Reads a sequence by layers of GRUs or LSTMs.

    Args:
        cell: `"gru"` or `"lstm"`.
        units: H, of the memory and of the states.
        layers: Number of layers.
        bidirectional: Each layer reads in both directions.
        merge: How outputs and last states of the two directions are joined: `"concat"`, each with H
            / 2 units, or `"sum"`, each with H.
        dropout: Fraction dropped between layers.

    Call arguments:
        x: Float `(B, S, E)`.
        mask: Boolean `(B, S)`, `True` = real; padding is at the end and changes nothing.

    Returns:
        List: the memory, float `(B, S, H)`, zeros at padding; then the last states of each layer,
        float `(B, H)`, one for a GRU, two for an LSTM.
    """

    def __init__(
        self,
        cell="gru",
        units=256,
        layers=1,
        bidirectional=True,
        merge="concat",
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_choice("cell", cell, tuple(STATES))
        check_choice("merge", merge, ("concat", "sum"))
        halved = bidirectional and merge == "concat"
        if halved and units % 2:
            raise ValueError(
                f"units must be even where two directions are concatenated. Received: units={units}"
            )
        self.cell, self.units, self.bidirectional, self.merge = cell, units, bidirectional, merge
        self.stack = []
        for i in range(layers):
            layer = _recurrent(
                cell, units // 2 if halved else units, name=f"layer_{i}", dtype=self.dtype_policy
            )
            if bidirectional:
                layer = both_directions(layer, merge, name=f"layer_{i}", dtype=self.dtype_policy)
            self.stack.append(layer)
        self.drop = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, x_shape, mask_shape=None):
        for layer in self.stack:
            layer.build(x_shape)
            x_shape = (*x_shape[:-1], self.units)

    def call(self, x, mask, training=None):
        last = []
        for i, layer in enumerate(self.stack):
            x, *states = layer(
                self.drop(x, training=training) if i else x, mask=mask, training=training
            )
            if self.bidirectional:
                half = len(states) // 2
                both = zip(states[:half], states[half:], strict=True)
                states = [
                    f + b if self.merge == "sum" else ops.concatenate([f, b], axis=-1)
                    for f, b in both
                ]
            last += states
        return [zero_padding(x, mask[..., None]), *last]

    def compute_output_shape(self, x_shape, mask_shape=None):
        state = (x_shape[0], self.units)
        return [(*x_shape[:2], self.units), *[state] * (len(self.stack) * STATES[self.cell])]


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
        mask: Boolean `(B, S)`, `True` = real.
        states: List of the first states, float `(B, H)`, as the encoder's last.

    Returns:
        Float `(B, T, H)`, or with `"all"` `(B, T, H + E + D)`. `step` computes the same word by
        word, and returns states and attention weights.
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
        self.cell, self.units, self.attention, self.output_kind = cell, units, attention, output
        policy = self.dtype_policy
        stack = [_recurrent(cell, units, name=f"layer_{i}", dtype=policy) for i in range(layers)]
        score = {**BEFORE, **AFTER}.get(attention)
        # Saved weights know it by this name.
        self.look = (
            None if attention == "none" else Attention(score, name="attention", dtype=policy)
        )
        if attention in BEFORE:
            kind = {"gru": keras.layers.GRUCell, "lstm": keras.layers.LSTMCell}[cell]
            own = kind(
                units,
                **({"reset_after": False} if cell == "gru" else {}),
                name="cell",
                dtype=policy,
            )
            first = AttentionCell(
                own, self.look, output == "all", name="attention_cell", dtype=policy
            )
            stack[0] = keras.layers.RNN(first, return_sequences=True, name="layer_0", dtype=policy)
        elif attention != "none":
            self.readout = Dense(
                units, activation="tanh", use_bias=False, name="readout", dtype=policy
            )
        self.stack = stack  # whole: Keras tracks the contents of a list when it is set
        self.drop = keras.layers.Dropout(dropout, dtype=policy)

    def build(self, y_shape, memory_shape, mask_shape=None, states_shape=None):
        E, D = y_shape[-1], memory_shape[-1]
        for i, layer in enumerate(self.stack):
            if i == 0 and self.attention in BEFORE:
                layer.cell.build_for(E, D)
                layer.built = True
            else:
                layer.build(
                    (None, None, self.units if i else E + self.units * (self.attention == "none"))
                )
        if self.attention in AFTER:
            self.look.build((None, None, self.units), memory_shape)
            self.readout.build((None, None, self.units + D))

    def call(self, y, memory, mask, states, training=None):
        states = _states_by_layer(self.cell, states)
        x, c = y, None
        if self.attention == "none":
            summary = states[-1][0][:, None, :]
            c = ops.broadcast_to(summary, (*ops.shape(y)[:2], self.units))
            x = ops.concatenate([y, c], axis=-1)
        for i, layer in enumerate(self.stack):
            x = self.drop(x, training=training) if i else x
            if i == 0 and self.attention in BEFORE:
                extra = [self.look.keys(memory), memory, ops.cast(mask, memory.dtype)]
                x = layer(x, initial_state=[*states[0], *extra], training=training)
                x, c = x[..., : self.units], x[..., self.units :]
            else:
                x = layer(x, initial_state=states[i], training=training)[0]
        if self.attention in AFTER:
            c, _ = self.look(x, memory, mask)
            x = self.readout(ops.concatenate([c, x], axis=-1))
        return self._output(x, y, c)

    def encoder_cache(self, memory, mask, states):
        """The inputs of all steps: the memory's keys, the memory, its mask and the encoder's last
        state.
        """
        keys = memory if self.look is None else self.look.keys(memory)
        return [
            keys,
            memory,
            ops.cast(mask, memory.dtype),
            _states_by_layer(self.cell, states)[-1][0],
        ]

    def step(self, y, states, cache):
        """One word, by the word before it, `(B, E)`, states as in the call and the result of
        `encoder_cache`.

        Returns:
            The output, as in the call, the list of states, and the attention weights `(B, S)`, or
            `None`.
        """
        keys, memory, mask, summary = cache
        x, c, after, weights = y, summary, [], None
        if self.attention == "none":
            x = ops.concatenate([x, summary], axis=-1)
        for i, (layer, own) in enumerate(
            zip(self.stack, _states_by_layer(self.cell, states), strict=True)
        ):
            if i == 0 and self.attention in BEFORE:
                extra = [keys, memory, mask]
                c, weights = layer.cell.attend([*own, *extra])
                x, new = layer.cell(x, [*own, *extra])
                x, new = x[:, : self.units], new[:-3]
            else:
                x, new = layer.cell(x, own)
            after += new if isinstance(new, (list, tuple)) else [new]
        if self.attention in AFTER:
            c, weights = self.look(x[:, None, :], memory, mask != 0, keys)
            c, weights = c[:, 0], weights[:, 0]
            x = self.readout(ops.concatenate([c, x], axis=-1))
        return self._output(x, y, c), after, weights

    def _output(self, x, y, c):
        return ops.concatenate([x, y, c], axis=-1) if self.output_kind == "all" else x

    def compute_output_shape(self, y_shape, memory_shape, mask_shape=None, states_shape=None):
        context = self.units if self.attention == "none" else memory_shape[-1]
        return (*y_shape[:2], self.units + (y_shape[-1] + context) * (self.output_kind == "all"))
