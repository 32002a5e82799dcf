"""Endpoints of an exported model, and checks of what they are called with.

`tasks/<task>/export.py` defines them. Only those files import this one: it needs TensorFlow,
whatever Keras's backend.
"""

from collections.abc import Callable, Iterable
from typing import Any

import keras
import tensorflow as tf


def build_archive(
    name: str, function: Callable, inputs: dict[str, str], tracked: Iterable[Any]
) -> Any:
    """Builds a `keras.export.ExportArchive` of one endpoint, which is also `serving_default`.

    Args:
        name: Name of the endpoint.
        function: Takes the inputs, tensors of strings, and returns `{name: tensor}`.
        inputs: `{name: axes}` of the function's arguments, in their order; `axes` has a letter per
            axis: `{"turns": "BT"}`.
        tracked: The models and lookup tables that the function uses.
    """
    archive = keras.export.ExportArchive()
    for resource in tracked:
        archive.track(resource)
    signature = []
    for input_name, axes in inputs.items():
        signature.append(tf.TensorSpec([None] * len(axes), tf.string, name=input_name))
    archive.add_endpoint(name, function, signature)
    return archive


def ensure_shape(x: Any, name: str, axes: str) -> Any:
    """Returns `x`; each call of the endpoint checks that it has one axis per letter of `axes`.

    The error names the input and the expected axes: `turns_must_have_shape_B_T`.

    Args:
        x: Tensor.
        name: Name of the input.
        axes: A letter per axis.
    """
    # A call does not check the shapes of the signature, so a check must be in the graph. When the
    # graph is built, `x` already has the shape of the signature, and TensorFlow would drop a check
    # that cannot fail. This placeholder returns `x` without a known shape, and the check stays.
    any_shape = tf.TensorShape(None)
    x = tf.raw_ops.PlaceholderWithDefault(input=x, shape=any_shape)
    message = f"{name}_must_have_shape_{'_'.join(axes)}"
    return tf.ensure_shape(x, [None] * len(axes), name=message)


def at_least_one_column(x: Any) -> Any:
    """Returns `(B, T)` as it is, and `(B, 0)` with one column of zeros, or of empty texts."""
    missing = tf.maximum(1 - tf.shape(x)[1], 0)
    return tf.pad(x, [[0, 0], [0, missing]])


def require(checks: Any, *tensors: Any) -> Any:
    """Returns the tensors, computed once the `checks` have passed.

    TensorFlow runs independent operations in any order. Without `require`, an operation on the
    tensors may fail before the check, with an error that names no input.

    Args:
        checks: Results of `tf.debugging.assert_...`.
    """
    with tf.control_dependencies(checks):
        return [tf.identity(tensor) for tensor in tensors]
