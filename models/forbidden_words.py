"""Words that a reply must not continue with: padding, `_UNK_`, an early `_EOS_`, repetitions.

Shape suffixes:
    B batch   K hypotheses   L words of a reply   V words of the vocabulary   F forbidden words
    N hypotheses of the whole batch, B K
"""

from keras import ops

from colloquy.layers.masking import LOWEST

LONGEST_BLOCKED = 10
"""Words of the longest sequence that `block_ngrams` may block."""


def forbid_words(settings, t, ids_BKL, logits_BKV, eos_id, unk_id):
    """Sets the logits of the words that are not allowed at position `t` to `LOWEST`.

    Args:
        settings: Has `min_length` and `block_ngrams`, int32 `(B, 1)`.
        t: Position of the next word, from 0.
        ids_BKL: The replies so far, int32; 0 from position `t` on.
        logits_BKV: Logits of the next word, float32.
        eos_id, unk_id: Ids of `_EOS_` and `_UNK_`.

    Returns:
        The logits, float32 `(B, K, V)`. If every word is forbidden, `_EOS_` is allowed.
    """
    K, L = ids_BKL.shape[1:]
    V = logits_BKV.shape[-1]

    # The forbidden words of each hypothesis: a list of ids, which ids of padding fill up, since
    # padding is always forbidden.
    repeating_BKL = _repeating_words(ids_BKL, t, settings.block_ngrams[..., None])
    unk_BK1 = ops.full_like(ids_BKL[..., :1], unk_id)
    early_eos_B1 = ops.where(t < settings.min_length, eos_id, 0)
    early_eos_BK1 = ops.repeat(early_eos_B1[:, None], K, axis=1)
    words_BKF = ops.concatenate([repeating_BKL, unk_BK1, early_eos_BK1], axis=2)
    allowed_BKV = _set_lowest(logits_BKV, words_BKF)

    # At most L + 3 words are forbidden: those of the reply, padding, `_UNK_` and `_EOS_`. A larger
    # vocabulary has another word.
    if V > L + 3:
        return allowed_BKV
    is_stuck_BK1 = ops.max(allowed_BKV, axis=-1, keepdims=True) == LOWEST
    is_end_V = ops.arange(V) == eos_id
    return ops.where(is_stuck_BK1 & is_end_V, 0.0, allowed_BKV)


def _repeating_words(ids_BKL, t, n_B11):
    """Finds the words which would repeat an n-gram of the reply if they came at position `t`.

    A word of the reply would repeat an n-gram if the n - 1 words before it are the last n - 1 words
    of the reply. For n = 2, the reply [7, 8, 9, 8, 0] and t = 4: the last word is 8, and 9 has an 8
    before it, so 9 must not follow. The result is [0, 0, 9, 0, 0].

    Args:
        n_B11: Length of the n-grams, int32; 0 allows any repetition.

    Returns:
        Int32 `(B, K, L)`: the words of the reply that must not follow, and 0 for the others.
    """
    L = ids_BKL.shape[2]
    position_L = ops.arange(L)
    has_words_before_B1L = (n_B11 > 0) & (position_L < t) & (position_L >= n_B11 - 1)
    is_repeating_BKL = has_words_before_B1L
    for i in range(1, min(LONGEST_BLOCKED, L)):
        # The word i places before each word, [0, 7, 8, 9, 8] for i = 1, and the reply's i-th last
        before_BKL = ops.pad(ids_BKL, [(0, 0), (0, 0), (i, 0)])[..., :L]
        last_BK1 = ops.take(ids_BKL, ops.maximum(t - i, 0), axis=2)[..., None]
        is_beyond_ngram_B11 = i > n_B11 - 1
        is_same_word_BKL = (before_BKL == last_BK1) | is_beyond_ngram_B11
        is_repeating_BKL = is_repeating_BKL & is_same_word_BKL
    return ops.where(is_repeating_BKL, ids_BKL, 0)


def _set_lowest(logits_BKV, words_BKF):
    """Sets the logits of the words `words_BKF` of each hypothesis to `LOWEST`.

    The logits [[5.0, 6.0, 7.0]] and the words [[0, 2]] give [[LOWEST, 6.0, LOWEST]].
    """
    V = logits_BKV.shape[-1]
    F = words_BKF.shape[-1]
    logits_NV = ops.reshape(logits_BKV, (-1, V))
    words_NF = ops.reshape(words_BKF, (-1, F))

    # `scatter_update` takes the places of a matrix as pairs (row, column).
    N = ops.shape(words_NF)[0]
    rows_NF = ops.repeat(ops.arange(N)[:, None], F, axis=1)
    places = ops.reshape(ops.stack([rows_NF, words_NF], axis=2), (-1, 2))
    logits_NV = ops.scatter_update(logits_NV, places, ops.full((N * F,), LOWEST))
    return ops.reshape(logits_NV, ops.shape(logits_BKV))
