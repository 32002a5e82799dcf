"""The losses of reading comprehension.

Letters:
    B contexts of a batch   T context words   A answer spans of a question
    Q questions, where each is asked of two contexts
"""

from keras import ops

from colloquy.layers.masking import masked_logits


def span_loss(spans, logits):
    """The loss of BiDAF, with the probabilities summed over all spans of a question.

        -log sum_a p1[first_a] p2[last_a]

    Args:
        spans: First and last words of the answers, int `(B, A, 2)`; -1 for padding.
        logits: Those of start and end, float `(B, 2, T)`.

    Returns:
        Float32 `(B,)`.

    >>> import numpy as np
    >>> p1 = [0.5, 0.25, 0.25]
    >>> p2 = [0.125, 0.25, 0.625]
    >>> spans = np.array([[[0, 1], [1, 2], [-1, -1]]])
    >>> loss = span_loss(spans, np.log(np.array([[p1, p2]], "float32")))
    >>> float(ops.exp(-loss[0]))  # 0.5 * 0.25 + 0.25 * 0.625
    0.28125
    """
    log_p_B2T = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    return -_log_sum_of_spans(spans, log_p_B2T)


def shared_norm_loss(spans, logits):
    """The loss of questions that are each asked of two contexts (Clark and Gardner 2018, 3.2).

    Row 2i of a batch is the context of a question with its answer, row 2i + 1 another context,
    without it. A span `(s, e)` has the weight `exp(start[s] + end[e])`. Having no answer is one
    more option, of weight 1. `Z` is the sum of the weights of all spans of a context.

        row 2i        the answer, among all spans of both contexts and no answer:
                      -log(sum of the weights of the answer's spans / (1 + Z_own + Z_second))
        row 2i + 1    no answer, among all spans of the second context and no answer:
                      -log(1 / (1 + Z_second))

    Args:
        spans: First and last words of the answers, int `(B, A, 2)`; -1 for padding, and for second
            contexts.
        logits: Those of start and end, float `(B, 2, T)`.

    Returns:
        Float32 `(B,)`.

    >>> import numpy as np
    >>> logits = np.log(np.array([[[4.0], [1.0]], [[1.0], [3.0]]], "float32"))
    >>> loss = shared_norm_loss(np.array([[[0, 0]], [[-1, -1]]]), logits)
    >>> (1 / np.exp(loss)).round(3).tolist()  # 4 / (1 + 4 + 3) and 1 / (1 + 3)
    [0.5, 0.25]
    """
    logits_B2T = ops.cast(logits, "float32")
    log_answer_B = _log_sum_of_spans(spans, logits_B2T)
    # Z is the sum over all starts times the sum over all ends.
    log_z_B = ops.sum(ops.logsumexp(logits_B2T, axis=-1), axis=-1)

    log_answer_Q = log_answer_B[0::2]
    log_z_own_Q = log_z_B[0::2]
    log_z_second_Q = log_z_B[1::2]
    no_answer_Q = ops.zeros_like(log_z_second_Q)

    options_Q3 = ops.stack([no_answer_Q, log_z_own_Q, log_z_second_Q], axis=1)
    own_loss_Q = ops.logsumexp(options_Q3, axis=1) - log_answer_Q
    second_loss_Q = ops.logaddexp(no_answer_Q, log_z_second_Q)
    # [own 0, own 1], [second 0, second 1] -> [own 0, second 0, own 1, second 1]
    return ops.reshape(ops.stack([own_loss_Q, second_loss_Q], axis=1), (-1,))


def _log_sum_of_spans(spans, scores_B2T):
    """`log sum_a exp(start[first_a] + end[last_a])`, float32 `(B,)`; about -1e30 without a span."""
    spans_BA2 = ops.cast(spans, "int32")
    is_real_BA = spans_BA2[..., 0] >= 0
    # Padding, -1, is no index. Word 0 takes its place, and `masked_logits` removes its score.
    index_BA2 = ops.maximum(spans_BA2, 0)
    start_BA = ops.take_along_axis(scores_B2T[:, 0], index_BA2[..., 0], axis=1)
    end_BA = ops.take_along_axis(scores_B2T[:, 1], index_BA2[..., 1], axis=1)
    return ops.logsumexp(masked_logits(start_BA + end_BA, is_real_BA), axis=-1)
