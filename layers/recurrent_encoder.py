"""The recurrent encoder of a seq2seq model.

Cho et al. 2014; Bahdanau et al. 2015.

Shape suffixes:
    B batch   S source words   E features of a word   H units
"""

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.bilstm import both_directions
from colloquy.layers.masking import mask_or_all_real, zero_padding

STATES = {"gru": 1, "lstm": 2}
"""Cells, with the number of their states."""


def make_recurrent(cell, units, **options):
    """Makes a layer of GRUs or LSTMs that returns its output at each word, and its last states."""
    layer_class = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}[cell]
    return layer_class(units, return_sequences=True, return_state=True, **options)


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
        mask: Boolean `(B, S)`, `True` = real; padding may be anywhere. `None`: the implicit mask
            of `x`, or else every word is real.

    Returns:
        List: the memory, float `(B, S, H)`, zeros at padding, with the implicit mask of
        `x`; then the last states of each layer, float `(B, H)`, one for a GRU, two for an LSTM.
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
        is_halved = bidirectional and merge == "concat"
        if is_halved and units % 2:
            raise ValueError(
                f"units must be even where two directions are concatenated. Received: units={units}"
            )
        self.supports_masking = True
        self.cell = cell
        self.units = units
        self.bidirectional = bidirectional
        self.merge = merge
        self.stack = []
        units_per_direction = units // 2 if is_halved else units
        for i in range(layers):
            options = {"name": f"layer_{i}", "dtype": self.dtype_policy}
            layer = make_recurrent(cell, units_per_direction, **options)
            if bidirectional:
                layer = both_directions(layer, merge, **options)
            self.stack.append(layer)
        self.drop = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, x_shape, mask_shape=None):
        for layer in self.stack:
            layer.build(x_shape)
            x_shape = (*x_shape[:-1], self.units)

    def call(self, x, mask=None):
        mask = mask_or_all_real(mask, x)
        last_states = []
        for i, layer in enumerate(self.stack):
            if i > 0:
                x = self.drop(x)
            x, *states = layer(x, mask=mask)
            if self.bidirectional:
                states = self._merge_directions(states)
            last_states += states
        return [zero_padding(x, mask[..., None]), *last_states]

    def _merge_directions(self, states):
        """Merges the states of a layer, the forward ones followed by the backward ones."""
        half = len(states) // 2
        merged = []
        for forward, backward in zip(states[:half], states[half:], strict=True):
            if self.merge == "sum":
                merged.append(forward + backward)
            else:
                merged.append(ops.concatenate([forward, backward], axis=-1))
        return merged

    def compute_output_shape(self, x_shape, mask_shape=None):
        memory = (*x_shape[:2], self.units)
        state = (x_shape[0], self.units)
        num_states = len(self.stack) * STATES[self.cell]
        return [memory] + [state] * num_states
