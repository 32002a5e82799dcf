"""A dense layer that takes all positions of its input as one matrix.

Shape suffixes:  ... leading axes   D features of the input   H units
"""

import keras
from keras import ops

from layers.row_products import add_bias


@keras.saving.register_keras_serializable("colloquy")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, faster on TensorFlow where the input has more than two axes.

    There Keras's own multiplies the matrices of a batch one after the other by the same kernel; here all their rows are
    those of one matrix. The figures are the same, but for the bias's gradient in bfloat16: see
    `layers.row_products.add_bias`.

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
        def product(x):
            y = ops.matmul(x, self.kernel)
            return self.activation(add_bias(y, ops.copy(self.bias)) if self.use_bias else y)

        return matrix_product(x, product)


def matrix_product(x, product):
    """Applies to `(rows, D)` a function that returns `(rows, H)`, as if to `x`, float `(..., D)`."""
    if len(x.shape) <= 2:
        return product(x)
    y = product(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(y, (*ops.shape(x)[:-1], y.shape[-1]))
