"""A vector for the state of a conversation.

Shape suffixes:  ... leading axes   F slots and flags   D features
"""

import keras
from keras import ops

from colloquy.layers.word_embedding import look_up


@keras.saving.register_keras_serializable("colloquy")
class StateVector(keras.layers.Layer):
    """A learnt vector for each combination of slots and flags.

    There are more combinations than vectors, so a combination gets its vector by a hash, the sum of
    a power of 3 for each slot and flag that holds. A few combinations share a vector.

    Args:
        dimension: D.

    Call arguments:
        known: Slots and flags, see `layers.dialog_state`, bool `(..., F)`.

    Returns:
        Float `(..., D)`. A combination that is not in training has zeros.
    """

    VECTORS = 4096

    def __init__(self, dimension, **kwargs):
        super().__init__(**kwargs)
        self.dimension = dimension

    def build(self, known_shape):
        self.vectors = self.add_weight((self.VECTORS, self.dimension), "zeros", name="vectors")
        # The remainders keep the powers small.
        self.power_F = [3**place % 8191 for place in range(known_shape[-1])]

    def call(self, known):
        powers = ops.cast(known, "int32") * ops.array(self.power_F, "int32")
        number = ops.sum(powers, axis=-1) % self.VECTORS
        return ops.cast(look_up(self.vectors, number), self.compute_dtype)
