"""An LSTM that reads in both directions.

Hochreiter and Schmidhuber 1997; Schuster and Paliwal 1997.

Shape suffixes:  B batch   T words   D features of the input   H units
"""

import keras

from colloquy.layers.masking import mask_or_all_real, zero_padding
from colloquy.layers.padding_last import apply_padding_last
from colloquy.layers.tensorflow_kernels import bilstm, has_kernels


def both_directions(layer, merge="concat", **kwargs):
    """`keras.layers.Bidirectional` with `layer` kept alive.

    Keras copies `layer` for each direction, and `load_model` tells layers apart by their `id`. If
    Python freed `layer`, another layer could get the same `id`, and a loaded model would share the
    weights of the wrong one.
    """
    both = keras.layers.Bidirectional(layer, merge, **kwargs)
    # A function holds it, because Keras would count an attribute as a sublayer of `both`.
    both.copied = lambda: layer
    return both


@keras.saving.register_keras_serializable("colloquy")
class BiLSTM(keras.layers.Layer):
    """`[forward LSTM; backward LSTM]` at every word, independent of padding.

    Args:
        units: H, in each direction.

    `layers.tensorflow_kernels` computes both directions where it can. Elsewhere, and where the
    attribute `fast` is false, as XLA needs it, Keras's own loop does.

    Call arguments:
        x: Float `(B, T, D)`.
        mask: Boolean `(B, T)`, `True` = real; padding may be anywhere. `None`: the implicit mask
            of `x`, or else every word is real.

    Returns:
        Float `(B, T, 2H)`, zeros at padding. The implicit mask of `x` is passed on.
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units
        lstm = keras.layers.LSTM(units, return_sequences=True, name="lstm", dtype=self.dtype_policy)
        self.both = both_directions(lstm, name="both", dtype=self.dtype_policy)
        self.fast = has_kernels(self.compute_dtype)
        self.supports_jit = not self.fast

    def build(self, x_shape, mask_shape=None):
        self.both.build(x_shape)

    def call(self, x, mask=None, training=None):
        mask = mask_or_all_real(mask, x)
        if self.fast:
            forward = _weights(self.both.forward_layer.cell)
            backward = _weights(self.both.backward_layer.cell)

            def read(x, mask):
                return bilstm(x, mask, forward, backward, training)

            return apply_padding_last(read, x, mask)
        return zero_padding(self.both(x, mask=mask), mask[..., None])

    def compute_output_shape(self, x_shape, mask_shape=None):
        return (*x_shape[:-1], 2 * self.units)


def _weights(cell):
    return cell.kernel, cell.recurrent_kernel, cell.bias
