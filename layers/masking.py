"""The one way to mask: `True` means real, and padding never counts.

A row without a real key yields zeros. The exception is `release_softmax`, for weights that were
trained with it.

Shape suffixes:  ... leading axes   Q queries   K keys
"""

import warnings

from keras import ops

MASKED_LOGIT = -1e30
"""The logit of padding."""
LOWEST = -1e29
"""A threshold to tell padding from real logits, in a search that adds logits up.

Real logits and their sums are above it, every sum with a `MASKED_LOGIT` is below.
"""


def mask_from_ids(ids):
    """Marks the real entries of padded ids: boolean of the same shape, `False` where an id is 0.

    >>> keras.ops.convert_to_numpy(mask_from_ids(np.array([[7, 3, 0]]))).tolist()
    [[True, True, False]]
    """
    return ops.not_equal(ids, 0)


def mask_or_all_real(mask, x):
    """Returns `mask`, or if it is `None` a mask `(B, T)` for `x`, `(B, T, D)`, without padding.

    >>> keras.ops.convert_to_numpy(mask_or_all_real(None, np.zeros((1, 2, 3)))).tolist()
    [[True, True]]
    """
    if mask is not None:
        return mask
    return ops.ones(ops.shape(x)[:2], "bool")


def zero_padding(x, mask):
    """Sets the padded entries of `x` to zero; `mask` broadcasts against it.

    Unlike a product with the mask, this also removes NaN and infinity, and lets no gradient
    through.

    >>> x = zero_padding(np.array([2.0, np.nan]), np.array([True, False]))
    >>> keras.ops.convert_to_numpy(x).tolist()
    [2.0, 0.0]
    """
    return ops.where(mask, x, ops.zeros((), dtype=x.dtype))


def _softmax(logits):
    """Softmax over the last axis, without a warning."""
    with warnings.catch_warnings():
        # Keras takes an axis of size 1 for a mistake; here it is an utterance of one word.
        warnings.filterwarnings("ignore", message=".*softmax over axis")
        return ops.softmax(logits, axis=-1)


def masked_softmax(logits, key_mask=None, some_real=False):
    """Softmax over the last axis among the real keys alone, computed in float32.

    Args:
        logits: Float `(..., Q, K)`.
        key_mask: Boolean, broadcasts against `logits`; `True` = real. `None`: every key is real.
        some_real: `True` where every row that counts has a real key. It saves a pass over the
            weights: a row without a real key then gets uniform weights instead of zeros.

    Returns:
        Weights of the shape and dtype of `logits`. They sum to 1 over the real keys, padding gets
        exactly 0, and a row without a real key is all zeros.

    >>> mask = np.array([[True, True, False], [False, False, False]])
    >>> weights = masked_softmax(np.zeros((2, 3), "float32"), mask)
    >>> keras.ops.convert_to_numpy(weights).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    logits = ops.convert_to_tensor(logits)
    if key_mask is None:
        weights = _softmax(ops.cast(logits, "float32"))
    else:
        weights = _softmax(masked_logits(logits, key_mask))
        # The softmax alone gives padding exactly 0, unless a row has no real key.
        if not some_real:
            weights = zero_padding(weights, key_mask)
    return ops.cast(weights, logits.dtype)


def masked_logits(logits, mask):
    """Logits with `MASKED_LOGIT` for padding, float32.

    A softmax then gives padding nothing. It gives no NaN for a row of padding alone, as it would
    with minus infinity.

    >>> logits = masked_logits(np.array([2.0, 3.0]), np.array([True, False]))
    >>> keras.ops.convert_to_numpy(logits).tolist()
    [2.0, -1.0000000150474662e+30]
    """
    return ops.where(mask, ops.cast(logits, "float32"), ops.full((), MASKED_LOGIT, dtype="float32"))


def masked_max(x, mask):
    """The maximum over the last axis among the real entries alone; 0 where there are none.

    >>> x = np.array([[-3.0, 5.0], [-1.0, -2.0]], "float32")
    >>> mask = np.array([[True, False], [False, False]])
    >>> keras.ops.convert_to_numpy(masked_max(x, mask)).tolist()
    [-3.0, 0.0]
    """
    x = ops.convert_to_tensor(x)
    highest = ops.max(masked_logits(x, mask), axis=-1)
    return ops.cast(zero_padding(highest, ops.any(mask, axis=-1)), x.dtype)


def release_softmax(logits, query_mask, key_mask):
    """The attention softmax of DAM's release, for weights that were trained with it.

    Args:
        logits: Float `(..., Q, K)`.
        query_mask: Boolean `(..., Q)`, `True` = real.
        key_mask: Boolean `(..., K)`.

    Returns:
        Weights of the shape and dtype of `logits`.

    The release replaces the logit of a query and a key by `-2^32 + 1` unless both are real. The
    softmax is then over all keys. So a padded query attends to all keys with the same weight, to
    padding too, and so does a query that has only padded keys. Source: the release's operations.py,
    `mask`.

    >>> query_mask = np.array([False])
    >>> key_mask = np.array([True, False])
    >>> weights = release_softmax(np.zeros((1, 2), "float32"), query_mask, key_mask)
    >>> keras.ops.convert_to_numpy(weights).tolist()
    [[0.5, 0.5]]
    """
    logits = ops.convert_to_tensor(logits)
    pair_mask = query_mask[..., :, None] & key_mask[..., None, :]
    masked = ops.full((), -(2.0**32) + 1, dtype="float32")
    weights = _softmax(ops.where(pair_mask, ops.cast(logits, "float32"), masked))
    return ops.cast(weights, logits.dtype)
