"""Gradients written by hand."""

from keras import ops


def with_gradient(function):
    """`keras.ops.custom_gradient`, whose gradient every backend calls in a way of its own.

    Args:
        function: Takes tensors, no variables (`keras.ops.copy` makes one of the other); returns its result, one tensor,
            and a function from the gradient of that to the gradients of what it took: one, or a tuple.

    Returns:
        A function from the same tensors to the result alone.

    >>> square = with_gradient(lambda x: (x * x, lambda g: 2 * x * g))
    >>> float(square(keras.ops.convert_to_tensor(3.0)))
    9.0
    """

    @ops.custom_gradient
    def compute(*tensors):
        result, gradient = function(*tensors)
        return result, lambda *args, upstream=None: gradient(args[0] if upstream is None else upstream)

    return compute


def sum_broadcast(g, x):
    """The gradient of `x`, given that of what it was broadcast to: `g` summed over the axes along which it was.

    Args:
        g: Float tensor.
        x: Float tensor that broadcasts to the shape of `g`; an axis that does is known to be 1.

    Returns:
        Of the shape of `x`.
    """
    new = len(g.shape) - len(x.shape)
    axes = [new + axis for axis, size in enumerate(x.shape) if size == 1 and g.shape[new + axis] != 1]
    return ops.reshape(ops.sum(g, axis=[*range(new), *axes]), ops.shape(x)) if new or axes else g
