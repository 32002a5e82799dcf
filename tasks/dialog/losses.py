"""The losses of dialog with a list of responses.

Letters: B dialogs   T turns   C candidates
"""

from keras import ops

LOSSES = ("softmax", "margin")


def softmax_loss(answers, logits):
    """Cross-entropy over the candidates, averaged over the real turns.

    Args:
        answers: Int `(B, T)`, -1 for padding.
        logits: Float `(B, T, C)`.

    Returns:
        Float32 `(B,)`: the mean over these is that over all real turns.

    >>> loss = softmax_loss(np.array([[1, -1]]), np.log([[[1.0, 3.0], [9.0, 9.0]]]))
    >>> round(float(ops.exp(-loss[0])), 3)
    0.75
    """
    real, answers = _real(answers)
    each = ops.sparse_categorical_crossentropy(answers, ops.cast(logits, "float32"), from_logits=True)
    return _averaged(each, real)


def margin_loss(answers, logits, margin):
    """`sum_y max(0, margin - f(x, correct) + f(x, y))` over all negative `y`, averaged over the real turns."""
    real, answers = _real(answers)
    correct = ops.take_along_axis(logits, answers[:, :, None], axis=2)
    each = ops.sum(ops.relu(margin - correct + logits), axis=2) - margin
    return _averaged(each, real)


def _averaged(each, real):
    dialogs = ops.cast(ops.shape(real)[0], "float32")
    return ops.sum(each * real, axis=1) * dialogs / ops.maximum(ops.sum(real), 1.0)


def _real(answers):
    answers = ops.cast(answers, "int32")
    return ops.cast(answers >= 0, "float32"), ops.maximum(answers, 0)
