"""The choice of the next words of a search: the best continuations of a beam, or a random draw.

Shape suffixes:
    B batch   K hypotheses   V words of the vocabulary   n words considered of each hypothesis
"""

from keras import ops

from colloquy.layers.masking import LOWEST, masked_logits, masked_softmax
from colloquy.layers.top_words import top_words


def best_continuations(settings, logits_BKV, allowed_BKV, score_BK, length_BK, done_BK):
    """Chooses the K best hypotheses of the next step: extended by a word, or finished before.

    Args:
        settings: Has `length_penalty`, float32 `(B, 1)`; `anti_lm` is True if the logits are those
            of `models.anti_lm.AntiLM`.
        logits_BKV: The model's logits of the next word, float32.
        allowed_BKV: The same, `LOWEST` for forbidden words.
        score_BK: The log probability of each hypothesis, float32.
        length_BK: Its number of words, int32.
        done_BK: True if it is finished.

    Returns:
        The hypothesis that each one continues, int32 `(B, K)`.
        Its new word, int32 `(B, K)`.
        Its log probability, float32 `(B, K)`.
    """
    K, V = logits_BKV.shape[1:]
    n = min(K, V)  # the K best of all are among the K best of each hypothesis
    score_BK1 = score_BK[..., None]
    done_BK1 = done_BK[..., None]

    # An open hypothesis is extended by one of its n likeliest words.
    likely_BKn, words_BKn = top_words(allowed_BKV, n)
    is_allowed_BKn = likely_BKn > LOWEST
    log_p_BKn = _log_probabilities(settings, logits_BKV, words_BKn)
    extended_BKn = masked_logits(score_BK1 + log_p_BKn, is_allowed_BKn)

    # A finished one stays as it is. It competes once, so only the first of its n places is real.
    is_first_n = ops.arange(n) == 0
    finished_BKn = masked_logits(score_BK1, is_first_n)
    score_BKn = ops.where(done_BK1, finished_BKn, extended_BKn)

    # By log probability alone, long hypotheses would lose.
    length_BK = ops.where(done_BK, length_BK, length_BK + 1)
    penalty_BK = length_penalty(settings, length_BK)
    ranking_BKn = score_BKn / penalty_BK[..., None]

    # The K * n candidates of each source compete for its K places.
    def flat(x_BKn):
        return ops.reshape(x_BKn, (-1, K * n))

    _, best_BK = ops.top_k(flat(ranking_BKn), K)
    parent_BK = ops.cast(best_BK, "int32") // n
    word_BK = ops.take_along_axis(flat(words_BKn), best_BK, axis=1)
    score_BK = ops.take_along_axis(flat(score_BKn), best_BK, axis=1)
    return parent_BK, word_BK, score_BK


def length_penalty(settings, length_BK):
    """The divisor of the log probability of a hypothesis, by its number of words."""
    return ((5.0 + ops.cast(length_BK, "float32")) / 6.0) ** settings.length_penalty


def _log_probabilities(settings, logits_BKV, words_BKn):
    """Log probabilities of `words_BKn`, float32 `(B, K, n)`; 1e-37 is the lowest probability."""
    if settings.anti_lm:
        # The logits of `AntiLM` are made of log probabilities.
        return ops.take_along_axis(logits_BKV, words_BKn, axis=2)
    p_BKn = ops.take_along_axis(ops.softmax(logits_BKV), words_BKn, axis=2)
    return ops.log(ops.maximum(p_BKn, 1e-37))


def draw(settings, logits_BKV, allowed_BKV, noise_BK):
    """Draws the next word of each hypothesis, among the likeliest ones that `top_p` leaves.

    Three words of probabilities .6, .3 and .1, `top_p` .8 and noise .7:

        1. The words before the third have .9 already, more than `top_p`: [.6, .3, 0] is left.
        2. Side by side they fill a line from 0 to .9: the first ends at .6, the second at .9.
        3. The noise is a point on this line, .7 * .9 = .63. The first word ends before it, so the
           second word is drawn.

    Args:
        settings: Has `temperature` and `top_p`, float32 `(B, 1)`, and `anti_lm`.
        logits_BKV: The model's logits of the next word, float32.
        allowed_BKV: The same, `LOWEST` for forbidden words.
        noise_BK: Uniform in [0, 1), float32.

    Returns:
        The words, int32 `(B, K)`.
        Their log probabilities by the model, float32 `(B, K)`.
    """
    V = logits_BKV.shape[-1]
    likely_BKV, words_BKV = ops.top_k(allowed_BKV / settings.temperature[..., None], V)
    p_BKV = masked_softmax(likely_BKV)

    # 1. The words that `top_p` leaves; the first is always among them.
    sum_before_BKV = ops.cumsum(p_BKV, axis=-1) - p_BKV
    p_BKV = ops.where(sum_before_BKV < settings.top_p[..., None], p_BKV, 0.0)
    num_left_BK = ops.sum(ops.cast(p_BKV > 0, "int32"), axis=-1)

    # 2. Their places on the line
    end_BKV = ops.cumsum(p_BKV, axis=-1)
    length_BK1 = ops.sum(p_BKV, axis=-1, keepdims=True)

    # 3. The number of words that end before the point. By rounding it may be all of them.
    is_before_BKV = end_BKV <= noise_BK[..., None] * length_BK1
    rank_BK = ops.sum(ops.cast(is_before_BKV, "int32"), axis=-1)
    rank_BK = ops.minimum(rank_BK, num_left_BK - 1)

    word_BK1 = ops.cast(ops.take_along_axis(words_BKV, rank_BK[..., None], axis=2), "int32")
    log_p_BK1 = _log_probabilities(settings, logits_BKV, word_BK1)
    return word_BK1[..., 0], log_p_BK1[..., 0]
