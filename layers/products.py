"""Products of the rows of two matrices.

Shape suffixes:  ... leading axes   Q, K rows   D features
"""

from keras import ops


def row_products(x, y):
    """`x y^T`: the dot product of every row of `x` with every row of `y`.

    As an einsum of named axes its gradient transposes nothing in memory; that needs leading axes that do not broadcast.

    Args:
        x: Float `(..., Q, D)`.
        y: Float `(..., K, D)`. The leading axes broadcast.

    Returns:
        Float `(..., Q, K)`.

    >>> row_products(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])).numpy().tolist()
    [[11.0, 17.0]]
    """
    if tuple(x.shape[:-2]) == tuple(y.shape[:-2]):
        lead = "abcefgh"[: len(x.shape) - 2]
        return ops.einsum(f"{lead}qd,{lead}kd->{lead}qk", x, y)
    return ops.matmul(x, ops.swapaxes(y, -1, -2))
