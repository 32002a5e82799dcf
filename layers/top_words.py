"""The largest logits of a vocabulary, found by blocks of words.

Shape suffixes:
    B batch   K hypotheses   V words of the vocabulary   n largest logits
    N rows, B K   W words of all blocks   b blocks   s words of a block   m blocks searched
    X words searched, m s
"""

import math

from keras import ops

from colloquy.layers.masking import MASKED_LOGIT

BLOCK = 64
"""Words of a block."""


def top_words(logits_BKV, n):
    """The `n` largest logits and their words, as `ops.top_k`, which takes TensorFlow twice as long.

    The `n` largest logits are in the `n` blocks with the largest maxima: a logit of another block
    is below those `n` maxima. Only these blocks are searched.
    """
    K, V = logits_BKV.shape[1:]
    num_blocks = math.ceil(V / BLOCK)
    W = num_blocks * BLOCK
    logits_NV = ops.reshape(logits_BKV, (-1, V))
    # The padding is below words of the logit `LOWEST`, so it is never among the largest.
    logits_NW = ops.pad(logits_NV, [(0, 0), (0, W - V)], constant_values=MASKED_LOGIT)

    # The best blocks, in the order of the vocabulary: of equal logits the first word is chosen.
    logits_Nbs = ops.reshape(logits_NW, (-1, num_blocks, BLOCK))
    maximum_Nb = ops.max(logits_Nbs, axis=2)
    m = min(n, num_blocks)
    _, best_Nm = ops.top_k(maximum_Nb, m)
    best_Nm = ops.sort(ops.cast(best_Nm, "int32"), axis=1)

    # Their logits and words. It is fast to take whole blocks from a list of all blocks of all rows.
    all_blocks = ops.reshape(logits_Nbs, (-1, BLOCK))
    first_block_N1 = num_blocks * ops.arange(ops.shape(best_Nm)[0])[:, None]
    logits_Nms = ops.take(all_blocks, first_block_N1 + best_Nm, axis=0)
    words_Nms = BLOCK * best_Nm[..., None] + ops.arange(BLOCK)
    logits_NX = ops.reshape(logits_Nms, (-1, m * BLOCK))
    words_NX = ops.reshape(words_Nms, (-1, m * BLOCK))

    likely_Nn, index_Nn = ops.top_k(logits_NX, n)
    words_Nn = ops.take_along_axis(words_NX, index_Nn, axis=1)
    return ops.reshape(likely_Nn, (-1, K, n)), ops.reshape(words_Nn, (-1, K, n))
