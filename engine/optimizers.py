"""Optimizers missing from Keras, linear decay, averaged weights.

Shape suffixes:  V rows of a table   U distinct rows of a batch   D features
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops


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


class LazyAdam(keras.optimizers.Adam):
    """Adam (Kingma and Ba 2015) that moves only the rows of a table of word vectors that a batch
    uses.

    A gradient that is a list of rows, as `layers.word_embedding.WordEmbedding` gives it under
    `sparse_gradient` on TensorFlow, moves these rows and their moments, each once by the sum of its
    gradients: the cost of a step grows with the batch's words, not the vocabulary. Under plain Adam
    a word that no longer occurs keeps moving by its momentum.
    """

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        # Before clipping, which then sees the gradient of a word, not of each occurrence.
        super().apply([sum_by_row(gradient) for gradient in grads], trainable_variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        if not hasattr(gradient, "indices"):
            super().update_step(gradient, variable, learning_rate)
            return
        import tensorflow as tf  # no other backend has gradients of rows

        rows_U = gradient.indices
        g_UD = ops.cast(gradient.values, variable.dtype)

        def move(table, change):
            """Adds `change` of some rows to these rows; returns their new values."""
            values_VD = table.value if isinstance(table, keras.Variable) else table
            now_UD = tf.gather(values_VD, rows_U)  # reads the rows, not the table
            change_UD = change(now_UD)
            self.assign_add(table, tf.IndexedSlices(change_UD, rows_U))
            return now_UD + change_UD

        # Adam's moments, by the names that Keras 3.15 has for them.
        index = self._get_variable_index(variable)
        m_UD = move(self._momentums[index], lambda m: (g_UD - m) * (1 - self.beta_1))
        v_UD = move(self._velocities[index], lambda v: (ops.square(g_UD) - v) * (1 - self.beta_2))

        t = ops.cast(self.iterations + 1, variable.dtype)
        bias_1 = 1 - ops.power(self.beta_1, t)
        bias_2 = 1 - ops.power(self.beta_2, t)
        rate = ops.cast(learning_rate, variable.dtype) * (ops.sqrt(bias_2) / bias_1)
        move(variable, lambda _: -rate * m_UD / (ops.sqrt(v_UD) + self.epsilon))


def sum_by_row(gradient: Any) -> Any:
    """A list of rows with each row once, as the sum of its gradients; other gradients unchanged."""
    if not hasattr(gradient, "indices"):
        return gradient
    import tensorflow as tf

    rows_U, row_of = tf.unique(gradient.indices)
    values_UD = tf.math.unsorted_segment_sum(gradient.values, row_of, tf.size(rows_U))
    return tf.IndexedSlices(values_UD, rows_U, gradient.dense_shape)


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
