"""A recurrent layer that reads in both directions (Hochreiter and Schmidhuber 1997; Schuster and Paliwal 1997).

Shape suffixes:  B batch   T words   D features of the input   H units
"""

import keras

from layers.masking import zero_padding


@keras.saving.register_keras_serializable("colloquy")
class BiLSTM(keras.layers.Layer):
    """`[forward LSTM; backward LSTM]` at every word, exactly the same whatever the padding.

    Args:
        units: H, in each direction.

    Call arguments:
        x: Float `(B, T, D)`.
        mask: Boolean `(B, T)`, `True` = real; padding stands at the end.

    Returns:
        Float `(B, T, 2H)`, zeros at padding. It carries no implicit mask.
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        lstm = keras.layers.LSTM(units, return_sequences=True, name="lstm", dtype=self.dtype_policy)
        self.both = keras.layers.Bidirectional(lstm, name="both", dtype=self.dtype_policy)

    def build(self, x_shape, mask_shape=None):
        self.both.build(x_shape)

    def call(self, x, mask, training=None):
        return zero_padding(self.both(x, mask=mask, training=training), mask[..., None])

    def compute_output_shape(self, x_shape, mask_shape=None):
        return (*x_shape[:-1], 2 * self.units)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
