"""Optimizers missing from Keras, linear decay, averaged weights."""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np


def linear_decay(learning_rate: float, steps: int, fraction: float) -> Any:
    """A learning rate that decays linearly over `steps` to a `fraction` of the initial one."""
    return keras.optimizers.schedules.PolynomialDecay(
        learning_rate, max(steps, 1), end_learning_rate=learning_rate * fraction
    )


def averaging(momentum: float) -> dict[str, Any]:
    """Arguments of an optimizer that keeps moving averages of the weights; 0: none are kept."""
    return {"use_ema": True, "ema_momentum": momentum} if momentum else {}


@contextlib.contextmanager
def averaged_weights(
    model: keras.Model, evaluation_model: keras.Model | None = None
) -> Iterator[keras.Model]:
    """Yields the model to score, with averages, if any, as its weights.

    It is a compiled `model`, or its `evaluation_model`. Afterwards the weights are bit by bit what
    they were; `keras.callbacks.SwapEMAWeights` adds and subtracts.
    """
    # A LossScaleOptimizer has the one that keeps the averages.
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    if evaluation_model is None and not optimizer.use_ema:
        yield model
        return
    scored = evaluation_model or model
    before = [np.array(weight) for weight in scored.weights]
    _copy(model.weights, scored.weights)
    if optimizer.use_ema:
        _copy(optimizer._model_variables_moving_average, scored.trainable_variables)
    try:
        yield scored
    finally:
        _copy(before, scored.weights)


def _copy(values, variables):
    for variable, value in zip(variables, values, strict=True):
        # JAX deletes what a step was given, so no two variables may share an array.
        variable.assign(np.array(value))


class TwoRateAdam(keras.optimizers.Adam):
    """Adam with `decoder_rate` times the learning rate in the decoder and its output.

    It is not for shared embeddings.
    """

    def __init__(self, *args: Any, decoder_rate: float = 1.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.decoder_rate = decoder_rate

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        path = getattr(variable, "path", variable.name)  # TensorFlow's own variable has no path
        layers = path.split("/")
        if "decoder" in layers or "projection" in layers or "logits" in layers:
            learning_rate = learning_rate * self.decoder_rate
        super().update_step(gradient, variable, learning_rate)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "decoder_rate": self.decoder_rate}
