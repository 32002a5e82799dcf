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


def add_bias(x, b):
    """`x + b`, with the gradient of `b` as a sum.

    In bfloat16 TensorFlow's own gradient of a bias on a CPU counts no further than to 256: it adds row after row in
    bfloat16.

    Args:
        x: Float `(..., D)`.
        b: Float `(D,)` or `(1,)`, a tensor or a variable, of the dtype of `x`.

    Returns:
        Float `(..., D)`.

    >>> keras.ops.convert_to_numpy(add_bias(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))).tolist()
    [[4.0, 6.0]]
    """
    axes = [*range(len(x.shape) - 1), *([-1] if b.shape[0] == 1 else [])]

    def add(x, b):
        return ops.add(x, b), lambda g: (g, ops.reshape(ops.sum(g, axis=axes), ops.shape(b)))

    return with_gradient(add)(x, ops.copy(b))
