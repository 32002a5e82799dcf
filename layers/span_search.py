"""The best answer spans by the logits of their first and last words (BiDAF, section 2, layer 6).

Shape suffixes:  B batch   T context words   L lengths of a span   K spans
"""

from keras import ops

from layers.masking import masked_logits


def best_spans(logits, max_length, count=1, length_penalty=0.0):
    """The spans with the highest sum of start and end logits, which is also the highest `p1 p2`; O(L T).

        score(t, t + l) = start_t + end_{t + l} - penalty * l,   0 <= l < L

    Args:
        logits: Float `(B, 2, T)`, `layers.masking.MASKED_LOGIT` at padding.
        max_length: L, words of the longest span.
        count: K; at most the number of spans there are.
        length_penalty: In nats per word after the first: as if longer answers were rarer; not in the paper.

    Returns:
        First and last words, int32 `(B, K)` each, and the scores, float32 `(B, K)`, the best first. Scores are sums of
        logits, so they can be compared between contexts; log probabilities give log `p1 p2`.

    >>> import numpy as np
    >>> first, last, score = best_spans(np.array([[[0.0, 3.0, 0.0], [1.0, 1.0, 2.0]]]), max_length=2)
    >>> int(first[0, 0]), int(last[0, 0]), float(score[0, 0])
    (1, 2, 5.0)
    """
    start_BT, end_BT = ops.cast(logits[:, 0], "float32"), ops.cast(logits[:, 1], "float32")
    T = ops.shape(start_BT)[1]
    ends_BTL = ops.stack([ops.roll(end_BT, -l, axis=1) for l in range(max_length)], axis=2)
    inside_TL = ops.arange(T)[:, None] + ops.arange(max_length) < T  # the others were rolled round
    score_BTL = start_BT[:, :, None] + ends_BTL - length_penalty * ops.arange(max_length, dtype="float32")
    score_BTL = masked_logits(score_BTL, inside_TL)
    score_BK, place_BK = ops.top_k(ops.reshape(score_BTL, (-1, T * max_length)), count)
    first_BK = place_BK // max_length
    return ops.cast(first_BK, "int32"), ops.cast(first_BK + place_BK % max_length, "int32"), score_BK
