"""Bidirectional attention flow (Seo et al. 2017, section 2, layer 4).

Shape suffixes:  B batch   T context words   J query words   D features (the paper's 2d)
"""

import keras
from keras import ops

from colloquy.layers import check_choice
from colloquy.layers.gradients import Dense
from colloquy.layers.masking import mask_or_all_real, masked_max, masked_softmax


@keras.saving.register_keras_serializable("colloquy")
class AttentionFlow(keras.layers.Layer):
    """Fuses a context `H` with a query `U` without summing either up.

        S_tj = w . [h_t; u_j; h_t * u_j]                         (eq. 1)
        C2Q:  a_t = softmax_j(S_tj),        u~_t = sum_j a_tj u_j
        Q2C:  b = softmax_t(max_j S_tj),    h~ = sum_t b_t h_t
        G_t = [h_t; u~_t; h_t * u~_t; h_t * h~]                  (eq. 2)

    `w` has three blocks, so `S` is a sum of three products and `(B, T, J, 3D)` is never formed. The
    paper leaves both functions open; each may be a perceptron instead:

        S_tj = v . tanh(W [h_t; u_j; h_t * u_j] + c)             A = D / 2 units
        G_t = max(0, W_G [h_t; u~_t; h_t * u~_t; h_t * h~] + b_G)

    Args:
        c2q: `False`, the paper's ablation: `u~` is the mean of the query's words.
        q2c: `False`, the paper's ablation: `G` ends before `h * h~`.
        start: Initial `w`: `"glorot"`, or `"dot"`, with ones in its third block. Then `S_tj` is
            about `h_t . u_j` at first: words attend to similar ones from the beginning, which small
            data hardly teach.
        kind: Similarity, `"trilinear"` (eq. 1) or `"mlp"`, to which `start` does not apply.
        fusion: Fusion into `G`, `"concat"` (eq. 2) or `"mlp"`.

    Call arguments:
        context: `H`, float `(B, T, D)`.
        query: `U`, float `(B, J, D)`.
        context_mask: Boolean `(B, T)`, `True` = real. `None`: the implicit mask of `context`, or
            else every word is real.
        query_mask: Likewise, `(B, J)`. A query without words gives `u~ = 0`.

    Returns:
        `G`, float `(B, T, 4D)`, or `(B, T, 3D)` without Q2C. The implicit mask of `context` is
        passed on.
    """

    def __init__(
        self, c2q=True, q2c=True, start="glorot", kind="trilinear", fusion="concat", **kwargs
    ):
        super().__init__(**kwargs)
        check_choice("start", start, ("glorot", "dot"))
        check_choice("kind", kind, ("trilinear", "mlp"))
        check_choice("fusion", fusion, ("concat", "mlp"))
        self.supports_masking = True
        self.c2q = c2q
        self.q2c = q2c
        self.start = start
        self.kind = kind
        self.fusion = fusion

    def build(self, context_shape, query_shape, *_, **__):
        D = context_shape[-1]
        A = max(D // 2, 1)
        if (self.c2q or self.q2c) and self.kind == "trilinear":
            start = _dot_start if self.start == "dot" else "glorot_uniform"
            self.w_3D = self.add_weight((3, D), start, name="w")
        elif self.c2q or self.q2c:
            self.W_3DA = self.add_weight((3, D, A), "glorot_uniform", name="W")
            self.c_A = self.add_weight((A,), "zeros", name="c")
            self.v_A = self.add_weight((A,), keras.initializers.RandomUniform(-0.1, 0.1), name="v")
        if self.fusion == "mlp":
            size = D * (4 if self.q2c else 3)
            self.perceptron = Dense(size, activation="relu", name="fusion", dtype=self.dtype_policy)
            self.perceptron.build((None, None, size))

    def call(self, context, query, context_mask=None, query_mask=None):
        H_BTD = context
        U_BJD = query
        context_mask = mask_or_all_real(context_mask, context)
        query_mask = mask_or_all_real(query_mask, query)
        if self.c2q or self.q2c:
            S_BTJ = self.similarity(H_BTD, U_BJD)
        if self.c2q:
            a_BTJ = masked_softmax(S_BTJ, query_mask[:, None, :])
        else:
            real = ops.cast(query_mask, H_BTD.dtype)
            mean_BJ = real / ops.maximum(ops.sum(real, axis=1, keepdims=True), 1.0)
            a_BTJ = ops.broadcast_to(
                mean_BJ[:, None, :], (*ops.shape(H_BTD)[:2], ops.shape(U_BJD)[1])
            )
        U_tilde_BTD = ops.einsum("btj,bjd->btd", a_BTJ, U_BJD)
        G = [H_BTD, U_tilde_BTD, H_BTD * U_tilde_BTD]
        if self.q2c:
            b_BT = masked_softmax(masked_max(S_BTJ, query_mask[:, None, :]), context_mask)
            h_tilde_BD = ops.einsum("bt,btd->bd", b_BT, H_BTD)
            G.append(H_BTD * h_tilde_BD[:, None, :])
        G = ops.concatenate(G, axis=-1)
        return self.perceptron(G) if self.fusion == "mlp" else G

    def similarity(self, H_BTD, U_BJD):
        """`S` of eq. 1, float `(B, T, J)`; its softmax over `J` is a context word's attention."""
        if self.kind == "mlp":
            W_h, W_u, W_hu = (self.W_3DA[i] for i in range(3))
            hidden_BTJA = ops.matmul(H_BTD, W_h)[:, :, None] + ops.matmul(U_BJD, W_u)[:, None]
            hidden_BTJA = hidden_BTJA + ops.matmul(H_BTD[:, :, None] * U_BJD[:, None], W_hu)
            return ops.matmul(ops.tanh(hidden_BTJA + self.c_A), self.v_A[:, None])[..., 0]
        w_h, w_u, w_hu = (self.w_3D[i] for i in range(3))
        return (
            ops.einsum("btd,d->bt", H_BTD, w_h)[:, :, None]
            + ops.einsum("bjd,d->bj", U_BJD, w_u)[:, None, :]
            + ops.einsum("btd,bjd->btj", H_BTD * w_hu, U_BJD)
        )


def _dot_start(shape, dtype=None):
    """Initial weights of eq. 1 that make `S_tj` nearly the product of `h_t` and `u_j`."""
    start_3D = keras.initializers.GlorotUniform()(shape, dtype)
    return ops.concatenate([start_3D[:2], ops.ones((1, shape[1]), dtype)], axis=0)
