"""Attention of queries on a memory, such as that of a decoder on its encoder's output.

Bahdanau et al. 2015; Luong et al. 2015; Vaswani et al. 2017.

Shape suffixes:
    B batch   T queries   S entries of the memory   Q features of a query
    D features of an entry   A units of the hidden layer   K features of a key
"""

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.masking import masked_softmax

SCORES = ("additive", "dot", "scaled_dot", "general")


@keras.saving.register_keras_serializable("colloquy")
class Attention(keras.layers.Layer):
    """The mean of a memory, weighted by how well each entry `h` answers a query `s`.

        a = softmax_h(score(s, h)),    c = sum_h a_h h

                     score                       key `k`
        additive     v . tanh(W_s s + k)         W_h h      Bahdanau et al. 2015, A.1.2
        dot          s . k                       h          Luong et al. 2015, eq. 8
        general      s . k                       W h        Luong et al. 2015, eq. 8
        scaled_dot   s . k / sqrt(D)             h          Vaswani et al. 2017, eq. 1

    The keys do not depend on the query: a decoder computes them once for all its steps.

    Args:
        score: One of `SCORES`.
        units: A; `None`: the size of the query.

    Call arguments:
        query: Float `(B, T, Q)`.
        memory: Float `(B, S, D)`; D = Q for `dot` and `scaled_dot`.
        memory_mask: Boolean `(B, S)`, `True` = real. A memory without real entries gives zeros.
            `None`: the implicit mask of `memory`, or else every entry is real.
        keys: The result of `keys(memory)`; `None`: it is computed.

    Returns:
        The contexts `c`, float `(B, T, D)`, with the implicit mask of `query`, and the weights `a`,
        float `(B, T, S)`.
    """

    def __init__(self, score="dot", units=None, **kwargs):
        super().__init__(**kwargs)
        check_choice("score", score, SCORES)
        self.supports_masking = True
        self.score = score
        self.units = units

    def build(self, query_shape, memory_shape):
        Q = query_shape[-1]
        D = memory_shape[-1]
        if self.score in ("dot", "scaled_dot") and Q != D:
            raise ValueError(
                f"score={self.score!r} needs query and memory of one size. Received: {Q} and {D}"
            )
        if self.score == "additive":
            A = self.units or Q
            self.W_s = self.add_weight((Q, A), "glorot_uniform", name="W_s")
            self.W_h = self.add_weight((D, A), "glorot_uniform", name="W_h")
            self.v = self.add_weight((A,), keras.initializers.RandomUniform(-0.1, 0.1), name="v")
        elif self.score == "general":
            self.W = self.add_weight((D, Q), "glorot_uniform", name="W")

    def keys(self, memory):
        """The keys of a memory, float `(B, S, K)`: K is A for `additive`, else Q."""
        if self.score == "additive":
            kernel = self.W_h
        elif self.score == "general":
            kernel = self.W
        else:
            return memory
        # This method also runs outside of a call, where Keras does not cast weights to the
        # compute dtype.
        return ops.matmul(memory, ops.cast(kernel, memory.dtype))

    def call(self, query, memory, memory_mask=None, keys=None):
        if keys is None:
            keys = self.keys(memory)
        if self.score == "additive":
            score_BTS = self._additive_score(query, keys)
        else:
            score_BTS = ops.einsum("btk,bsk->bts", query, keys)
        if self.score == "scaled_dot":
            score_BTS = score_BTS / memory.shape[-1] ** 0.5
        if memory_mask is not None:
            memory_mask = memory_mask[:, None, :]
        a_BTS = masked_softmax(score_BTS, memory_mask)
        return ops.matmul(a_BTS, memory), a_BTS

    def prepare(self, memory, mask):
        """The keys of a memory, the memory and its mask, 1 = real, for `attend_once`."""
        return [self.keys(memory), memory, ops.cast(mask, memory.dtype)]

    def attend_once(self, query_BQ, prepared):
        """Attends by one query: returns the contexts, `(B, D)`, and the weights, `(B, S)`."""
        keys, memory, mask = prepared
        c_B1D, a_B1S = self(query_BQ[:, None, :], memory, mask != 0, keys)
        return c_B1D[:, 0], a_B1S[:, 0]

    def _additive_score(self, query, keys_BSA):
        query_BTA = ops.matmul(query, self.W_s)
        hidden_BTSA = ops.tanh(query_BTA[:, :, None] + keys_BSA[:, None])
        return ops.matmul(hidden_BTSA, self.v[:, None])[..., 0]
