"""Gradients of functions and models, on the backend that Keras has."""

import keras
import numpy as np
from helpers import to_numpy


def gradients_of(function, inputs, upstream=None):
    """The value of a function of tensors, and its gradients.

    Args:
        function: From tensors to one tensor.
        inputs: List of arrays or Keras variables.
        upstream: Gradient of the value, an array of its shape; `None`: ones.

    Returns:
        A list of NumPy arrays: the value, then the gradients; `None` for what it does not depend
            on, but on JAX.
    """
    compute = {
        "tensorflow": _tensorflow_gradients,
        "jax": _jax_gradients,
        "torch": _torch_gradients,
    }
    values = [
        x.value if isinstance(x, keras.Variable) else keras.ops.convert_to_tensor(x) for x in inputs
    ]
    value, gradients = compute[keras.config.backend()](function, inputs, values, upstream)
    return [to_numpy(value), *(None if g is None else to_numpy(g) for g in gradients)]


def _tensorflow_gradients(function, inputs, values, upstream):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(values)
        found = function(*values)
    upstream = None if upstream is None else tf.cast(upstream, found.dtype)
    gradients = tape.gradient(found, values, upstream)
    return found, [g if g is None else tf.convert_to_tensor(g) for g in gradients]


def _jax_gradients(function, inputs, values, upstream):
    import jax

    def compute(*values):
        pairs = zip(inputs, values, strict=True)
        with keras.StatelessScope(
            [(x, value) for x, value in pairs if isinstance(x, keras.Variable)]
        ):
            return function(*values)

    found, pull = jax.vjp(compute, *values)
    return found, pull(
        keras.ops.cast(np.ones(found.shape) if upstream is None else upstream, found.dtype)
    )


def _torch_gradients(function, inputs, values, upstream):
    import torch

    values = [value.requires_grad_() for value in values]
    found = function(*values)
    upstream = torch.ones_like(found) if upstream is None else keras.ops.cast(upstream, found.dtype)
    return found, torch.autograd.grad(found, values, upstream, allow_unused=True)
