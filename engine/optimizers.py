"""Arguments of optimizers, an Adam with two learning rates, and the swap of averaged weights."""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from colloquy.engine.training_settings import DecayingTraining


def decaying(training: DecayingTraining, steps: int) -> dict[str, Any]:
    """Arguments of an optimizer for a training of `steps` steps: linear decay of the learning rate,
    clipped gradients, averaged weights.
    """
    schedule = keras.optimizers.schedules.PolynomialDecay(
        training.learning_rate,
        steps,
        end_learning_rate=training.learning_rate * training.decay,
    )
    return {
        "learning_rate": schedule,
        "global_clipnorm": training.gradient_clip or None,
        **averaging(training.ema),
    }


def averaging(momentum: float) -> dict[str, Any]:
    """Arguments of an optimizer that keeps moving averages of the weights, whose decay is
    `momentum`; with 0 it keeps none.
    """
    return {"use_ema": True, "ema_momentum": momentum} if momentum else {}


@contextlib.contextmanager
def averaged_weights(
    model: keras.Model, evaluation_model: keras.Model | None = None
) -> Iterator[keras.Model]:
    """Yields the model to score: `model`, which is compiled, or the `evaluation_model` that
    `engine.data_parallel` makes if several devices train.

    Inside the block it has the weights of `model`; where the optimizer keeps moving averages, it
    has these in place of the trainable weights. After the block it has its former weights, to the
    bit. (`keras.callbacks.SwapEMAWeights` swaps by adding and subtracting, which rounds.)
    """
    # A `LossScaleOptimizer` wraps the optimizer that keeps the averages.
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    # Before its first step the averages are zeros; in float16 the first steps may be skipped.
    has_averages = optimizer.use_ema and int(np.array(optimizer.iterations)) > 0
    if evaluation_model is None and not has_averages:
        yield model
        return
    scored = model if evaluation_model is None else evaluation_model
    former_values = [np.array(weight) for weight in scored.weights]
    try:
        _copy(model.weights, scored.weights)
        if has_averages:
            _copy(optimizer._model_variables_moving_average, scored.trainable_variables)
        yield scored
    finally:
        _copy(former_values, scored.weights)


def _copy(values, variables):
    for variable, value in zip(variables, values, strict=True):
        # Copy the array: a training step of JAX deletes the arrays that it receives, so two
        # variables must not share one.
        variable.assign(np.array(value))


class TwoRateAdam(keras.optimizers.Adam):
    """Adam with `decoder_rate` times the learning rate in the decoder and its output layer.

    Word vectors, which encoder and decoder share, have the plain rate.
    """

    def __init__(self, *args: Any, decoder_rate: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.decoder_rate = decoder_rate

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        # On TensorFlow, Keras passes the `tf.Variable` itself: its name is the path.
        path = getattr(variable, "path", variable.name)
        layer_names = path.split("/")
        if "decoder" in layer_names or "projection" in layer_names or "logits" in layer_names:
            learning_rate = learning_rate * self.decoder_rate
        super().update_step(gradient, variable, learning_rate)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "decoder_rate": self.decoder_rate}
