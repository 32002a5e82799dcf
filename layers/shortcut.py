"""What a hop of a memory network passes on of the state it started from (MEMMA, equations 12 to 14)."""

import keras

KINDS = ("gated", "identity", "none")


@keras.saving.register_keras_serializable("colloquy")
class Shortcut(keras.layers.Layer):
    """Combines what a hop has read, `o`, with the state before it, `x`.

        gated:     o * T(x) + x * (1 - T(x)),  T(x) = activation(W x + b)     (highway, eq. 13)
        identity:  o + x                                                      (residual, eq. 12)
        none:      o

    Args:
        kind: One of the three.
        activation: Of the gate: MEMMA's `tanh`, which also subtracts, or a `sigmoid` as in highway networks (Srivastava
            et al. 2015) and the gated memory network (Liu and Perez 2017, eq. 9).

    Call arguments:
        output: `o`, float `(..., D)`.
        state: `x`, of the same shape.

    Returns:
        The same shape and dtype.

    Raises:
        ValueError: on another kind.
    """

    def __init__(self, kind="gated", activation="tanh", **kwargs):
        super().__init__(**kwargs)
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}. Received: kind={kind!r}")
        self.kind, self.activation = kind, activation
        self.gate = None

    def build(self, output_shape, state_shape):
        if self.kind == "gated":
            self.gate = keras.layers.Dense(
                state_shape[-1], activation=self.activation, name="gate", dtype=self.dtype_policy
            )
            self.gate.build(state_shape)

    def call(self, output, state):
        if self.kind == "none":
            return output
        if self.kind == "identity":
            return output + state
        T = self.gate(state)
        return output * T + state * (1 - T)

    def compute_output_shape(self, output_shape, state_shape):
        return output_shape

    def get_config(self):
        return {**super().get_config(), "kind": self.kind, "activation": self.activation}
