"""Attention of every turn of a dialog over the sentences before it (MEMMA, equations 9 to 11).

Shape suffixes:
    B dialogs   T turns   M sentences   R turn distances   D features   H heads
    E features of a head (D / H)
"""

import keras
from keras import ops

from colloquy.layers.masking import masked_softmax


@keras.saving.register_keras_serializable("colloquy")
class MemoryAttention(keras.layers.Layer):
    """Scaled dot-product attention, in several heads or plain.

        head_h = softmax(Q W_h^Q (K W_h^K)^T / divisor) V W_h^V          (eq. 9, 10)
        o      = [head_1; ..; head_H] W^O                                (eq. 11)

    `K = V` is the memory, each sentence plus the vector of its distance in time, if times are
    given. Projections are linear, so the times are projected by themselves, once for all sentences
    of equal distance.

    Args:
        heads: H, divides D. Without projections 1.
        projected: `False` leaves out all four projections, as in MemN2N.
        divisor: Divisor of the logits.

    Call arguments:
        query: Float `(B, T, D)`.
        memory: Float `(B, M, D)`.
        memory_mask: Boolean `(B, T, M)`, `True` where a turn may attend, or `(B, M)`, of all turns.
            A turn without any sentence before it gets zeros. `None`: the implicit mask of `memory`,
            or else every sentence is real.
        time_vectors: Float `(R, D)`, or `None`.
        distances: One-hot float `(B, T, M, R)`, with `time_vectors`.

    Returns:
        The output `o`, float `(B, T, D)`, with the implicit mask of `query`, and the weights,
        `(B, H, T, M)`.
    """

    def __init__(self, heads=1, projected=True, divisor=1.0, **kwargs):
        super().__init__(**kwargs)
        if heads > 1 and not projected:
            raise ValueError(
                f"Several heads need projections. Received: heads={heads}, projected={projected}"
            )
        self.supports_masking = True
        self.heads = heads
        self.projected = projected
        self.divisor = divisor
        self.query_DHE = None
        self.key_DHE = None
        self.value_DHE = None

    def build(self, query_shape, memory_shape, **_):
        D = query_shape[-1]
        H = self.heads
        if D % H:
            raise ValueError(
                f"The features must be a multiple of the heads. Received: features={D}, heads={H}"
            )
        if self.projected:
            kernel = {"shape": (D, H, D // H), "initializer": "glorot_uniform"}
            self.query_DHE = self.add_weight(name="query", **kernel)
            self.key_DHE = self.add_weight(name="key", **kernel)
            self.value_DHE = self.add_weight(name="value", **kernel)
            self.output_HED = self.add_weight(
                name="output", shape=(H, D // H, D), initializer="glorot_uniform"
            )

    def _split(self, x, kernel_DHE):
        if kernel_DHE is None:
            return x[..., None, :]
        # An ellipsis would make TensorFlow's einsum fifty times slower.
        axes = "bm"[: len(x.shape) - 1]
        return ops.einsum(f"{axes}d,dhe->{axes}he", x, kernel_DHE)

    def call(self, query, memory, memory_mask=None, time_vectors=None, distances=None):
        Q_BTHE = self._split(query, self.query_DHE)
        K_BMHE = self._split(memory, self.key_DHE)
        V_BMHE = self._split(memory, self.value_DHE)
        logits_BHTM = ops.einsum("bthe,bmhe->bhtm", Q_BTHE, K_BMHE)
        if time_vectors is not None:
            time_key_RHE = self._split(time_vectors, self.key_DHE)
            toward_BTHR = ops.einsum("bthe,rhe->bthr", Q_BTHE, time_key_RHE)
            logits_BHTM = logits_BHTM + ops.einsum("bthr,btmr->bhtm", toward_BTHR, distances)
        if memory_mask is not None:
            axes = (1, 2) if len(memory_mask.shape) == 2 else 1
            memory_mask = ops.expand_dims(memory_mask, axes)
        a_BHTM = masked_softmax(logits_BHTM / self.divisor, memory_mask)
        o_BTHE = ops.einsum("bhtm,bmhe->bthe", a_BHTM, V_BMHE)
        if time_vectors is not None:
            time_value_RHE = self._split(time_vectors, self.value_DHE)
            a_BTHR = ops.einsum("bhtm,btmr->bthr", a_BHTM, distances)
            o_BTHE = o_BTHE + ops.einsum("bthr,rhe->bthe", a_BTHR, time_value_RHE)
        if self.projected:
            return ops.einsum("bthe,hed->btd", o_BTHE, self.output_HED), a_BHTM
        return o_BTHE[..., 0, :], a_BHTM
