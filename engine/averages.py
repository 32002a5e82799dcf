"""The mean of what several models of an ensemble say."""

import numpy as np
from keras import ops


def mean_of_softmaxes(logits):
    """The logits of the mean of several models' probabilities, the softmax over the last axis.

    Args:
        logits: List of float `(..., N)`.

    Returns:
        Float32 `(..., N)`: log probabilities.

    >>> one, other = (np.log(np.array([p], "float32")) for p in ([0.5, 0.5], [1.0, 3.0]))
    >>> np.exp(mean_of_softmaxes([one, other])).round(3).tolist()
    [[0.375, 0.625]]
    """
    log_p = ops.stack([ops.log_softmax(ops.cast(each, "float32"), axis=-1) for each in logits])
    return ops.logsumexp(log_p, axis=0) - np.log(len(logits))
