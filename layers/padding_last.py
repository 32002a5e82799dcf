"""Moves padding behind the words of a text, for layers that need it there.

Shape suffixes:  B batch   T words and padding   D, H features
"""

from keras import ops


def apply_padding_last(function, x, mask):
    """`function(x, mask)` for a function of texts whose padding comes after their words.

    The padding of `x` may be anywhere. `function` gets the words of each text first, in their
    order, and its results return to the places of the words. If padding is last in all texts of the
    batch, nothing is moved.

    Args:
        function: From float `(B, T, D)` and boolean `(B, T)` to float `(B, T, H)`.
        x: Float `(B, T, D)`.
        mask: Boolean `(B, T)`, `True` = real.

    >>> x = np.array([[[0.0], [1.0], [2.0]]])
    >>> mask = np.array([[False, True, True]])
    >>> y = apply_padding_last(lambda x, mask: ops.cumsum(x, axis=1) + 7, x, mask)
    >>> keras.ops.convert_to_numpy(y).ravel().tolist()
    [10.0, 8.0, 10.0]
    """
    T = ops.shape(mask)[1]
    place_T = ops.arange(T)
    is_word_after_padding = mask[:, 1:] & ~mask[:, :-1]
    is_moved = ops.any(is_word_after_padding)

    def words_first():
        """The places of the words, then of the padding: mask `[F, T, T] -> [1, 2, 0]`."""
        rank_BT = ops.where(mask, place_T, T + place_T)
        return ops.argsort(rank_BT, axis=1)

    def way_back():
        """Where `words_first` has moved each place: `[1, 2, 0] -> [2, 0, 1]`."""
        return ops.argsort(words_first(), axis=1)

    def move(array, places):
        def moved():
            return ops.take_along_axis(array, places()[..., None], axis=1)

        return ops.cond(is_moved, moved, lambda: array)

    length_B1 = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
    y = function(move(x, words_first), place_T < length_B1)
    return move(y, way_back)
