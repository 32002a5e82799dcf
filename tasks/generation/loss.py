"""The loss of a generation model: the negative log-likelihood of words.

Letters: B pairs   T target words   V words of the vocabulary   R unpadded words of a batch
"""

from keras import ops

from colloquy.layers.masking import mask_from_ids, zero_padding
from colloquy.layers.unpadding import Unpadding


def word_nll(target, logits):
    """The negative log-likelihood of each word in nats.

    Args:
        target: Int32 `(B, T)`, 0 = padding.
        logits: Float `(B, T, V)`, or `(R, V)` without those of padding.

    Returns:
        Float32 `(B, T)`, 0 for padding.

    >>> logits = np.log(np.array([[[0.125, 0.125, 0.75], [1.0, 1.0, 1.0]]], "float32"))
    >>> [round(float(x), 4) for x in ops.exp(-word_nll(np.array([[2, 0]]), logits))[0]]
    [0.75, 1.0]
    """
    mask_BT = mask_from_ids(target)
    logits = ops.cast(logits, "float32")
    is_unpadded = len(logits.shape) == 2
    if is_unpadded:
        return _unpadded_word_nll(target, logits, mask_BT)
    nll_BT = ops.sparse_categorical_crossentropy(target, logits, from_logits=True)
    return zero_padding(nll_BT, mask_BT)


def _unpadded_word_nll(target, logits_RV, mask_BT):
    rows = Unpadding(mask_BT)
    words_R = rows.unpad(target[..., None])[:, 0]
    nll_R = ops.sparse_categorical_crossentropy(words_R, logits_RV, from_logits=True)
    return rows.repad(nll_R[:, None])[..., 0]


def word_loss(target, logits):
    """The loss of each pair, float32 `(B,)`; arguments as in `word_nll`.

        loss = B / words * (sum of the negative log-likelihoods of the pair's words)

    Keras averages it over the `B` pairs, which gives the mean over all `words` of the batch.
    """
    target = ops.cast(target, "int32")
    words = ops.maximum(ops.sum(ops.cast(mask_from_ids(target), "float32")), 1.0)
    nll_B = ops.sum(word_nll(target, logits), axis=1)
    return nll_B * ops.cast(ops.shape(target)[0], "float32") / words
