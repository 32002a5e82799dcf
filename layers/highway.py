"""Highway layer (Srivastava et al. 2015), as BiDAF joins word and character vectors with it.

Shape suffixes:  ... leading axes   D features
"""

import keras


@keras.saving.register_keras_serializable("colloquy")
class Highway(keras.layers.Layer):
    """Lets each feature through as it is, transformed, or in between.

        y = t * relu(W x + b) + (1 - t) * x,    t = sigmoid(W_t x + b_t)

    Call arguments:
        x: Float `(..., D)`.

    Returns:
        The same shape and dtype.

    Source: BiDAF (Seo et al. 2017), section 2, layer 2.
    """

    def build(self, x_shape):
        D = x_shape[-1]
        self.transform = keras.layers.Dense(D, activation="relu", name="transform", dtype=self.dtype_policy)
        self.gate = keras.layers.Dense(D, activation="sigmoid", name="gate", dtype=self.dtype_policy)
        self.transform.build(x_shape)
        self.gate.build(x_shape)

    def call(self, x):
        t = self.gate(x)
        return t * self.transform(x) + (1 - t) * x

    def compute_output_shape(self, x_shape):
        return x_shape
