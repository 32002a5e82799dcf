"""Ensembles: several models of a task joined into one."""

from typing import Any

import keras
import numpy as np
from keras import ops

from colloquy.base.files import UserError


def ensemble(task: Any, models: list[keras.Model]) -> keras.Model:
    """Joins models into one, whose probabilities are a mean of theirs.

    The mean is that of `engine.task.Task.average`. One of the models must take all inputs that any
    of them takes: the result has its inputs and its `config`.
    """
    widest = max(models, key=lambda model: len(model.input))
    logits = []
    for model in models:
        _check_reads_the_same(task, model, widest)
        inputs = {name: widest.input[name] for name in model.input}
        logits.append(model(inputs))
    joint = keras.Model(widest.input, task.average(logits))
    joint.config = widest.config
    return joint


def _check_reads_the_same(task, model, widest):
    """Refuses a model that cannot read the batches of the model with the most inputs."""
    if not model.input.keys() <= widest.input.keys():
        fields = ", ".join(sorted(widest.input))
        others = ", ".join(sorted(model.input))
        raise UserError(
            f"models of an ensemble read the same fields. Received: {fields} and {others}"
        )
    for field in task.batch_fields:
        expected = _setting(widest.config, field)
        received = _setting(model.config, field)
        # A model without a part, such as the lexical match, does not read its inputs.
        if received is not None and received != expected:
            raise UserError(
                f"models of an ensemble have the same {field}. Received: {expected} and {received}"
            )


def _setting(config, field):
    """The value of a field such as `max_turns` or `lexical.turns`; `None` if it is missing."""
    value = config
    for name in field.split("."):
        value = getattr(value, name, None)
    return value


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
