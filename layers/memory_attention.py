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

    `K = V` is the memory. With `time_vectors`, the vector of a sentence's distance in time is added
    to the sentence. The distance depends on the turn, so these sums, `(B, T, M, D)`, would be
    large. They are never formed: `q (x + time) = q x + q time`, and the two products are computed
    separately, the second one for the R distances only. The same holds for the weighted sum `o`.

    Args:
        heads: H, divides D; 1 without projections.
        projected: `False` leaves out all four projections, as in MemN2N.
        divisor: Divisor of the logits.

    Call arguments:
        query: Float `(B, T, D)`.
        memory: Float `(B, M, D)`.
        memory_mask: Boolean `(B, T, M)`, `True` where a turn may attend, or `(B, M)` for all turns.
            A turn that may attend to no sentence gets zeros. `None`: the implicit mask of `memory`,
            or else every sentence is real.
        time_vectors: Float `(R, D)`, or `None`.
        distances: One-hot float `(B, T, M, R)`, with `time_vectors`.

    Returns:
        The output `o`, float `(B, T, D)`, with the implicit mask of `query`.
        The weights, float `(B, H, T, M)`.
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

    def build(self, query_shape, memory_shape):
        D = query_shape[-1]
        H = self.heads
        if D % H:
            raise ValueError(
                f"The features must be a multiple of the heads. Received: features={D}, heads={H}"
            )
        # Without projections, all stay `None`.
        self.query_DHE = self.key_DHE = self.value_DHE = self.output_HED = None
        if self.projected:
            shape = (D, H, D // H)
            self.query_DHE = self.add_weight(shape, "glorot_uniform", name="query")
            self.key_DHE = self.add_weight(shape, "glorot_uniform", name="key")
            self.value_DHE = self.add_weight(shape, "glorot_uniform", name="value")
            self.output_HED = self.add_weight((H, D // H, D), "glorot_uniform", name="output")

    def call(self, query, memory, memory_mask=None, time_vectors=None, distances=None):
        Q_BTHE = _project(query, self.query_DHE)
        K_BMHE = _project(memory, self.key_DHE)
        V_BMHE = _project(memory, self.value_DHE)

        logits_BHTM = ops.einsum("bthe,bmhe->bhtm", Q_BTHE, K_BMHE)
        if time_vectors is not None:
            logits_BHTM = logits_BHTM + self._logits_of_times(Q_BTHE, time_vectors, distances)
        if memory_mask is not None:
            if len(memory_mask.shape) == 2:
                memory_mask = memory_mask[:, None]  # all turns have the same mask
            memory_mask = memory_mask[:, None]  # all heads have the same mask
        a_BHTM = masked_softmax(logits_BHTM / self.divisor, memory_mask)

        o_BTHE = ops.einsum("bhtm,bmhe->bthe", a_BHTM, V_BMHE)
        if time_vectors is not None:
            o_BTHE = o_BTHE + self._output_of_times(a_BHTM, time_vectors, distances)
        if self.projected:
            return ops.einsum("bthe,hed->btd", o_BTHE, self.output_HED), a_BHTM
        # The only head is the whole vector.
        return o_BTHE[..., 0, :], a_BHTM

    def _logits_of_times(self, Q_BTHE, time_vectors, distances_BTMR):
        """`Q K^T` of the R time vectors; each sentence gets the product of its distance."""
        key_RHE = _project(time_vectors, self.key_DHE)
        logits_BTHR = ops.einsum("bthe,rhe->bthr", Q_BTHE, key_RHE)
        return ops.einsum("bthr,btmr->bhtm", logits_BTHR, distances_BTMR)

    def _output_of_times(self, a_BHTM, time_vectors, distances_BTMR):
        """The sum of the weights of the sentences at each distance, times the distance's vector."""
        value_RHE = _project(time_vectors, self.value_DHE)
        a_BTHR = ops.einsum("bhtm,btmr->bthr", a_BHTM, distances_BTMR)
        return ops.einsum("bthr,rhe->bthe", a_BTHR, value_RHE)


def _project(x, kernel_DHE):
    """From `(..., D)` to `(..., H, E)`. Without a kernel, the vector itself is the only head."""
    if kernel_DHE is None:
        return x[..., None, :]
    # `"...d,dhe->...he"` would do for both, but TensorFlow's einsum is fifty times slower with it.
    if len(x.shape) == 2:
        return ops.einsum("rd,dhe->rhe", x, kernel_DHE)
    return ops.einsum("bmd,dhe->bmhe", x, kernel_DHE)
