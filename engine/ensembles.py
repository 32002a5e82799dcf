"""Ensembles: several models of a task joined into one."""

from typing import Any

import keras
import numpy as np
from keras import ops


def ensemble(task: Any, models: list[keras.Model]) -> keras.Model:
    """Joins models with the same settings into one, whose probabilities are a mean of theirs.

    The mean is that of `engine.task.Task.average`.
    """
    first = models[0]
    logits = [model(first.input) for model in models]
    joint = keras.Model(first.input, task.average(logits))
    joint.config = first.config
    return joint


def mean_of_logits(logits: Any) -> Any:
    """Averages logits, in float32: the geometric mean of the probabilities of a softmax, or of the
    odds of a sigmoid.

    >>> mean_of_logits([np.array([[0.0, 3.0]]), np.array([[1.0, 4.0]])]).numpy().tolist()
    [[0.5, 3.5]]
    """
    logits = [ops.cast(x, "float32") for x in logits]
    return ops.mean(ops.stack(logits), axis=0)


def mean_of_softmaxes(logits: Any) -> Any:
    """Log of the arithmetic mean of softmaxes over the last axis, in float32.

    >>> one, other = (np.log(np.array([p], "float32")) for p in ([0.5, 0.5], [1.0, 3.0]))
    >>> np.exp(mean_of_softmaxes([one, other])).round(3).tolist()
    [[0.375, 0.625]]
    """
    log_p = [ops.log_softmax(ops.cast(x, "float32"), axis=-1) for x in logits]
    return ops.logsumexp(ops.stack(log_p), axis=0) - np.log(len(logits))
