"""A dense layer whose bias learns in bfloat16 too.

Shape suffixes:  ... leading axes   D features of the input   H units
"""

import keras
from keras import ops

from layers.gradients import add_bias


@keras.saving.register_keras_serializable("colloquy")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, with `layers.gradients.add_bias`.

    Args:
        As of `keras.layers.Dense`.

    Call arguments:
        x: Float `(..., D)`.

    Returns:
        Float `(..., H)`.

    >>> layer = Dense(7)
    >>> layer(np.zeros((2, 3, 5), "float32")).shape.as_list()
    [2, 3, 7]
    """

    def call(self, x, training=None):
        y = ops.matmul(x, self.kernel)
        return self.activation(add_bias(y, self.bias) if self.use_bias else y)
