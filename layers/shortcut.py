"""The state after a hop of a memory network (MEMMA, equations 12 to 14)."""

import keras

from colloquy.layers import check_choice

KINDS = ("gated", "identity", "none")


@keras.saving.register_keras_serializable("colloquy")
class Shortcut(keras.layers.Layer):
    """Combines the output of a hop, `o`, with the state before it, `x`, float `(..., D)`.

        gated:     o * T(x) + x * (1 - T(x)),  T(x) = activation(W x + b)     (highway, eq. 13)
        identity:  o + x                                                      (residual, eq. 12)
        none:      o

    The implicit mask of `o` is passed on.

    Args:
        kind: One of `KINDS`.
        activation: Activation of the gate: MEMMA's `tanh`, which also subtracts, or a `sigmoid` as
            in highway networks (Srivastava et al. 2015) and the gated memory network (Liu and Perez
            2017, eq. 9).
    """

    def __init__(self, kind="gated", activation="tanh", **kwargs):
        super().__init__(**kwargs)
        check_choice("kind", kind, KINDS)
        self.supports_masking = True
        self.kind = kind
        self.activation = activation

    def build(self, output_shape, state_shape):
        if self.kind == "gated":
            D, policy = state_shape[-1], self.dtype_policy
            self.gate = keras.layers.Dense(D, activation=self.activation, name="gate", dtype=policy)
            self.gate.build(state_shape)

    def call(self, output, state):
        if self.kind == "none":
            return output
        if self.kind == "identity":
            return output + state
        T = self.gate(state)
        return output * T + state * (1 - T)
