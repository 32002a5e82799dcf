"""The losses of response selection.

Letters: B batch   N candidates of a context
"""

from keras import ops

LOSSES = ("pointwise", "softmax")


def pointwise_loss(labels, logits, clip=0.0):
    """The paper's loss: `-log p(y | c, r)` of each candidate by itself, averaged.

    Args:
        labels: Float `(B, N)`, 1 positive, 0 negative.
        logits: Float `(B, N)`.
        clip: The loss of a candidate is cut at this, and has no gradient beyond; 0: not at all.

    Returns:
        Float32 `(B,)`.

    >>> float(pointwise_loss(np.array([[1.0, 0.0]]), np.array([[0.0, 20.0]]), clip=10.0)[0])
    5.346573590279973
    """
    loss = ops.binary_crossentropy(labels, logits, from_logits=True)
    return ops.mean(ops.minimum(loss, clip) if clip else loss, axis=-1)


def softmax_loss(labels, logits):
    """Cross-entropy over the candidates of a context.

    Args:
        labels: Float `(B, N)`, 1 for the positive one, 0 for the negatives.
        logits: Float `(B, N)`.

    Returns:
        Float32 `(B,)`.
    """
    return ops.categorical_crossentropy(labels, logits, from_logits=True)
