"""The search for the answer: the best spans of a context by the logits of start and end.

Shape suffixes:
    B batch   T context words   L words of the longest span   K best spans
"""

from keras import ops

from colloquy.layers.masking import masked_logits


def best_spans(logits, max_length, count=1, length_penalty=0.0):
    """The spans with the highest scores, among all of at most L words.

        score(first, last) = start_first + end_last - length_penalty * (last - first)

    If `logits` are log probabilities, the score without a penalty is log `p1 p2`. Logits can also
    be compared between contexts.

    Args:
        logits: Logits of start and end, float `(B, 2, T)`, `layers.masking.MASKED_LOGIT` at
            padding.
        max_length: L.
        count: K; at most the number of spans there are.
        length_penalty: Nats subtracted for each word after the first; not in the paper.

    Returns:
        The first word of each span, int32 `(B, K)`, the best span first.
        The last word, int32 `(B, K)`.
        The score, float32 `(B, K)`.

    >>> logits = np.array([[[0.0, 3.0, 0.0], [1.0, 1.0, 2.0]]])
    >>> first, last, score = best_spans(logits, max_length=2)
    >>> int(first[0, 0]), int(last[0, 0]), float(score[0, 0])
    (1, 2, 5.0)
    """
    start_BT = ops.cast(logits[:, 0], "float32")
    end_BT = ops.cast(logits[:, 1], "float32")
    T = ops.shape(start_BT)[1]
    L = max_length

    # The end logit of the span from word t to word t + l, at place (t, l). End logits [5, 6, 7] and
    # L = 2 give [[5, 6], [6, 7], [7, 5]]: `roll` is cyclic, so the 5 in the last row is too much.
    ends_BTL = ops.stack([ops.roll(end_BT, -l, axis=1) for l in range(L)], axis=2)
    last_TL = ops.arange(T)[:, None] + ops.arange(L)
    penalty_L = length_penalty * ops.arange(L, dtype="float32")
    score_BTL = start_BT[:, :, None] + ends_BTL - penalty_L
    score_BTL = masked_logits(score_BTL, last_TL < T)

    # In a flat list of all spans, that at place (t, l) has the index t * L + l.
    score_BK, index_BK = ops.top_k(ops.reshape(score_BTL, (-1, T * L)), count)
    first_BK = index_BK // L
    last_BK = first_BK + index_BK % L
    return ops.cast(first_BK, "int32"), ops.cast(last_BK, "int32"), score_BK
