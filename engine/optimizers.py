"""Optimizers missing from Keras: Adam for word vectors, Adam with two learning rates; linear decay, averaged weights.

Shape suffixes:  U distinct rows of a batch   D features
"""

import contextlib

import keras
import numpy as np
from keras import ops


def linear_decay(learning_rate, steps, fraction):
    """A learning rate that decays linearly over `steps` to a `fraction` of the initial one."""
    return keras.optimizers.schedules.PolynomialDecay(
        learning_rate, max(steps, 1), end_learning_rate=learning_rate * fraction
    )


def averaging(momentum):
    """Arguments of an optimizer that keeps moving averages of the weights; 0: none are kept."""
    return {"use_ema": True, "ema_momentum": momentum} if momentum else {}


@contextlib.contextmanager
def averaged_weights(model, evaluation_model=None):
    """Yields the model to score, a compiled `model` or its `evaluation_model`, with averages, if any, as its weights.

    Afterwards the weights are bit by bit what they were; `keras.callbacks.SwapEMAWeights` adds and subtracts.
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)  # of a LossScaleOptimizer
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
        variable.assign(np.array(value))  # JAX deletes what a step was given, so no two variables may share an array


class OneOpAdam(keras.optimizers.Adam):
    """`keras.optimizers.Adam` without `amsgrad`; on TensorFlow one operation updates a variable, not eleven."""

    def update_step(self, gradient, variable, learning_rate):
        if keras.config.backend() != "tensorflow":
            super().update_step(gradient, variable, learning_rate)
            return
        import tensorflow as tf

        beta1_power, beta2_power = self._powers(variable.dtype)
        var, m, v = (_tensorflow_variable(x).handle for x in (variable, *moments_of(self, variable)))
        tf.raw_ops.ResourceApplyAdam(
            var=var,
            m=m,
            v=v,
            beta1_power=beta1_power,
            beta2_power=beta2_power,
            lr=ops.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=ops.cast(gradient, variable.dtype),
        )

    def _powers(self, dtype):
        """`beta_1^t` and `beta_2^t` in step t."""
        step = ops.cast(self.iterations + 1, dtype)
        return [ops.power(ops.cast(beta, dtype), step) for beta in (self.beta_1, self.beta_2)]


class LazyAdam(OneOpAdam):
    """Adam (Kingma and Ba 2015) that moves only the rows of a table of word vectors that a batch uses.

    A gradient that is a list of rows, as `layers.word_embedding.WordEmbedding` gives it under `sparse_gradient` on
    TensorFlow, moves these rows and their moments, each once by the sum of its gradients: the cost of a step grows with
    the batch's words, not the vocabulary. Under plain Adam a word that no longer occurs keeps moving by its momentum.
    """

    def apply(self, grads, trainable_variables=None):
        # Before clipping, which then sees the gradient of a word, not of each occurrence.
        super().apply([sum_by_row(gradient) for gradient in grads], trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        if not hasattr(gradient, "indices"):
            super().update_step(gradient, variable, learning_rate)
            return
        import tensorflow as tf  # no other backend has gradients of rows

        rows_U, g_UD = gradient.indices, ops.cast(gradient.values, variable.dtype)

        def move(table, change):
            """Adds `change` of some rows to these rows; returns their new values."""
            now_UD = tf.gather(_tensorflow_variable(table), rows_U)  # reads the rows, not the table
            change_UD = change(now_UD)
            self.assign_add(table, tf.IndexedSlices(change_UD, rows_U))
            return now_UD + change_UD

        m, v = moments_of(self, variable)
        beta_1_power, beta_2_power = self._powers(variable.dtype)
        rate = ops.cast(learning_rate, variable.dtype) * ops.sqrt(1 - beta_2_power) / (1 - beta_1_power)
        m_UD = move(m, lambda m: (g_UD - m) * (1 - self.beta_1))
        v_UD = move(v, lambda v: (ops.square(g_UD) - v) * (1 - self.beta_2))
        move(variable, lambda _: -rate * m_UD / (ops.sqrt(v_UD) + self.epsilon))


def moments_of(adam, variable):
    """Adam's running means of a variable's gradient and of its square, by the names that Keras 3.15 has for them."""
    index = adam._get_variable_index(variable)
    return adam._momentums[index], adam._velocities[index]


def _tensorflow_variable(variable):
    return variable.value if isinstance(variable, keras.Variable) else variable


def sum_by_row(gradient):
    """A list of rows with each row once, as the sum of its gradients; another gradient as it is."""
    if not hasattr(gradient, "indices"):
        return gradient
    import tensorflow as tf

    rows_U, row_of = tf.unique(gradient.indices)
    values_UD = tf.math.unsorted_segment_sum(gradient.values, row_of, tf.size(rows_U))
    return tf.IndexedSlices(values_UD, rows_U, gradient.dense_shape)


class TwoRateAdam(OneOpAdam):
    """Adam with `decoder_rate` times the learning rate in the decoder and its output; not for shared embeddings."""

    def __init__(self, *args, decoder_rate=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.decoder_rate = decoder_rate

    def update_step(self, gradient, variable, learning_rate):
        path = getattr(variable, "path", variable.name)  # TensorFlow's own variable has a name alone
        rate = self.decoder_rate if {"decoder", "projection", "logits"} & set(path.split("/")) else 1.0
        super().update_step(gradient, variable, learning_rate * rate)

    def get_config(self):
        return {**super().get_config(), "decoder_rate": self.decoder_rate}
