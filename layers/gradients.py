"""Gradients written by hand, and a dense layer with one.

Shape suffixes:  ... leading axes   D features of the input   H units
"""

import keras
from keras import ops


def with_gradient(function):
    """`keras.ops.custom_gradient`, whose gradient each backend calls in its own way.

    Args:
        function: Takes tensors, no variables (`keras.ops.copy` makes a tensor of a variable).
            Returns its result, one tensor, and a function from the gradient of that to the
            gradients of its arguments: one, or a tuple.

    Returns:
        A function from the same tensors to the result alone.

    >>> square = with_gradient(lambda x: (x * x, lambda g: 2 * x * g))
    >>> float(square(keras.ops.convert_to_tensor(3.0)))
    9.0
    """

    @ops.custom_gradient
    def compute(*tensors):
        result, gradient = function(*tensors)

        def gradient_of_backend(*args, upstream=None):
            if upstream is None:
                upstream = args[0]
            return gradient(upstream)

        return result, gradient_of_backend

    return compute


def add_bias(x, b):
    """`x + b`, float `(..., D)` and `(D,)` or `(1,)`, with the gradient of `b` as a sum.

    TensorFlow's own, in bfloat16 on a CPU, adds row after row in bfloat16, so it counts no further
    than to 256.

    >>> keras.ops.convert_to_numpy(add_bias(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))).tolist()
    [[4.0, 6.0]]
    """
    summed_axes = list(range(len(x.shape) - 1))
    if b.shape[0] == 1:
        summed_axes.append(-1)

    def add(x, b):
        def gradient(g):
            return g, ops.reshape(ops.sum(g, axis=summed_axes), ops.shape(b))

        return ops.add(x, b), gradient

    return with_gradient(add)(x, ops.copy(b))


@keras.saving.register_keras_serializable("colloquy")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense` with `add_bias`, from float `(..., D)` to `(..., H)`.

    >>> Dense(7)(np.zeros((2, 3, 5), "float32")).shape.as_list()
    [2, 3, 7]
    """

    def call(self, x):
        y = ops.matmul(x, self.kernel)
        if self.use_bias:
            y = add_bias(y, self.bias)
        return self.activation(y)
