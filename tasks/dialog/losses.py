"""Losses of dialog models.

Letters: B dialogs   T turns   C candidates
"""

from keras import ops


def softmax_loss(answers_BT, logits_BTC):
    """Cross-entropy over the candidates.

    Args:
        answers_BT: The correct candidates, int `(B, T)`, -1 for padding.
        logits_BTC: Float `(B, T, C)`.

    Returns:
        Loss of each dialog, float32 `(B,)`, with the factor of `_sum_over_turns`.

    >>> import numpy as np
    >>> loss_B = softmax_loss(np.array([[1, -1]]), np.log([[[1.0, 3.0], [9.0, 9.0]]]))
    >>> round(float(loss_B[0]), 3)  # -ln(3 / (1 + 3))
    0.288
    """
    logits_BTC = _with_candidates(logits_BTC, answers_BT)
    labels_BT = _labels(answers_BT)
    losses_BT = ops.sparse_categorical_crossentropy(labels_BT, logits_BTC, from_logits=True)
    return _sum_over_turns(losses_BT, answers_BT)


def margin_loss(answers_BT, logits_BTC, margin):
    """Sums `max(0, margin - f(correct) + f(y))` over all negative candidates `y`; `f` is the logit.

    Args:
        answers_BT: The correct candidates, int `(B, T)`, -1 for padding.
        logits_BTC: Float `(B, T, C)`.
        margin: The loss is 0 if the correct logit exceeds every other by at least this.

    Returns:
        Loss of each dialog, float32 `(B,)`, with the factor of `_sum_over_turns`.
    """
    logits_BTC = _with_candidates(logits_BTC, answers_BT)
    labels_BT = _labels(answers_BT)
    correct_BT1 = ops.take_along_axis(logits_BTC, labels_BT[:, :, None], axis=2)
    hinge_BTC = ops.relu(margin - correct_BT1 + logits_BTC)
    # This sum includes the correct candidate, whose hinge is max(0, margin - f + f) = margin.
    sum_BT = ops.sum(hinge_BTC, axis=2)
    return _sum_over_turns(sum_BT - margin, answers_BT)


def _with_candidates(logits, answers_BT):
    """Returns logits as float32 `(B, T, C)`; Keras drops the last axis if C is 1."""
    return ops.cast(ops.reshape(logits, (*ops.shape(answers_BT), -1)), "float32")


def _labels(answers_BT):
    """Replaces padding, -1, by candidate 0; `_sum_over_turns` ignores its loss."""
    return ops.maximum(ops.cast(answers_BT, "int32"), 0)


def _sum_over_turns(losses_BT, answers_BT):
    """Sums the losses of each dialog's real turns, and multiplies the sums by B / number of turns.

    Keras averages the loss over the dialogs, so it divides by B. With the factor, the average is
    the sum over all real turns, divided by their number.

    Returns:
        Float32 `(B,)`.
    """
    is_real_BT = ops.cast(answers_BT >= 0, "float32")
    num_dialogs = ops.cast(ops.shape(answers_BT)[0], "float32")
    num_turns = ops.maximum(ops.sum(is_real_BT), 1.0)
    sum_B = ops.sum(losses_BT * is_real_BT, axis=1)
    return sum_B * num_dialogs / num_turns
