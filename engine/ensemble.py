"""Ensembles: one model of several, and the mean of what they say."""

import keras
import numpy as np
from keras import ops

from base.files import UserError


def mean_of_logits(logits):
    """Their mean. Of a softmax or a sigmoid, it is the geometric mean of the models' probabilities, or of their odds.

    Args:
        logits: List of float arrays of one shape.

    Returns:
        Float32 of that shape.

    >>> mean_of_logits([np.array([[0.0, 3.0]]), np.array([[1.0, 4.0]])]).numpy().tolist()
    [[0.5, 3.5]]
    """
    return ops.mean(ops.stack([ops.cast(each, "float32") for each in logits]), axis=0)


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


def ensemble(task, models):
    """One model of several: its probabilities are a mean of theirs, by `engine.task.Task.average`.

    Args:
        task: The `engine.task.Task`.
        models: List of models; one of them takes all inputs that any of them takes.

    Returns:
        A functional `keras.Model` with the `config` of that one.

    Raises:
        UserError: where the task's models make no ensemble, or these would need different batches.
    """
    widest = max(models, key=lambda model: len(model.input))
    for model in models:
        if not model.input.keys() <= widest.input.keys():
            raise UserError(
                "models of an ensemble read the same fields. "
                f"Received: {', '.join(sorted(widest.input))} and {', '.join(sorted(model.input))}"
            )
        for field in task.batch_fields:
            mine, others = (_setting(each.config, field) for each in (model, widest))
            if mine not in (None, others):
                raise UserError(f"models of an ensemble have the same {field}. Received: {others} and {mine}")
    logits = [model({name: widest.input[name] for name in model.input}) for model in models]
    joint = keras.Model(widest.input, task.average(logits))
    joint.config = widest.config
    return joint


def _setting(config, field):
    """The value of `field` or `outer.inner`; `None` where the config lacks it."""
    for name in field.split("."):
        config = getattr(config, name, None)
    return config
