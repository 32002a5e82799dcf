"""The choice of the next words of a search: the best continuations of a beam, or a random draw.

Shape suffixes:
    B batch   K hypotheses   L words of a reply   V words of the vocabulary
    N hypotheses of the whole batch, B K   n words considered of each hypothesis
"""

from typing import Any, NamedTuple

from keras import ops, tree

from colloquy.layers.masking import LOWEST, masked_logits, masked_softmax
from colloquy.layers.top_words import top_words


class Hypotheses(NamedTuple):
    """The replies of a batch after some steps of the search, K for each source."""

    ids_BKL: Any
    """The words, int32, then 0."""
    word_BK: Any
    """The last word, int32: the input of the next step. 0 if the reply is finished."""
    score_BK: Any
    """Log probability, float32."""
    length_BK: Any
    """Number of words, int32, `_EOS_` included."""
    done_BK: Any
    """True if the reply is finished."""
    states: Any
    """States of the decoder, `(N, ...)`: the K hypotheses of a source are consecutive rows."""


def best_continuations(settings, hypotheses, logits_BKV, allowed_BKV):
    """Chooses the K best hypotheses of the next step: extended by a word, or finished before.

    Args:
        settings: Has `length_penalty`, float32 `(B, 1)`; `anti_lm` is True if the logits are those
            of `models.anti_lm.AntiLM`.
        logits_BKV: The model's logits of the next word, float32.
        allowed_BKV: The same, `LOWEST` for forbidden words.

    Returns:
        The hypotheses that are continued, the best first, without their new words.
        The new words, int32 `(B, K)`.
        The log probabilities with these words, float32 `(B, K)`.
    """
    K, V = logits_BKV.shape[1:]
    n = min(K, V)  # the K best of all are among the K best of each hypothesis
    score_BK1 = hypotheses.score_BK[..., None]
    done_BK1 = hypotheses.done_BK[..., None]

    # An open hypothesis is extended by one of its n likeliest allowed words. Its log probability is
    # that among all words.
    likely_BKn, words_BKn = top_words(allowed_BKV, n)
    is_allowed_BKn = likely_BKn > LOWEST
    log_p_BKn = _log_probabilities(settings, logits_BKV, words_BKn)
    extended_BKn = masked_logits(score_BK1 + log_p_BKn, is_allowed_BKn)

    # A finished one stays as it is. It competes once, so its other n - 1 places are masked.
    is_first_n = ops.arange(n) == 0
    finished_BKn = masked_logits(score_BK1, is_first_n)
    score_BKn = ops.where(done_BK1, finished_BKn, extended_BKn)

    # By log probability alone, long hypotheses would lose.
    length_BK = hypotheses.length_BK + ops.cast(~hypotheses.done_BK, "int32")
    penalty_BK = length_penalty(settings, length_BK)
    ranking_BKn = score_BKn / penalty_BK[..., None]

    # The K * n candidates of each source compete for its K places.
    def flat(x_BKn):
        return ops.reshape(x_BKn, (-1, K * n))

    _, best_BK = ops.top_k(flat(ranking_BKn), K)
    parent_BK = ops.cast(best_BK, "int32") // n
    word_BK = ops.take_along_axis(flat(words_BKn), best_BK, axis=1)
    score_BK = ops.take_along_axis(flat(score_BKn), best_BK, axis=1)
    return _select(hypotheses, parent_BK), word_BK, score_BK


def _select(hypotheses, parent_BK):
    """The hypotheses `parent_BK` of each source, int32 `(B, K)`, in this order.

    Their words and scores are left as they were, because new ones replace them.
    """
    # The number of each in a list of all hypotheses. K = 2: [[1, 1], [0, 1]] -> [[1, 1], [2, 3]]
    B, K = ops.shape(parent_BK)
    first_row_B1 = K * ops.arange(B)[:, None]
    row_BK = first_row_B1 + parent_BK
    row_N = ops.reshape(row_BK, (-1,))

    def select(x_BK):
        x_N = ops.reshape(x_BK, (-1, *x_BK.shape[2:]))
        return ops.take(x_N, row_BK, axis=0)

    return hypotheses._replace(
        ids_BKL=select(hypotheses.ids_BKL),
        length_BK=select(hypotheses.length_BK),
        done_BK=select(hypotheses.done_BK),
        states=tree.map_structure(lambda x: ops.take(x, row_N, axis=0), hypotheses.states),
    )


def length_penalty(settings, length_BK):
    """The divisor of the log probability of a hypothesis (Wu et al. 2016, eq. 14)."""
    return ((5.0 + ops.cast(length_BK, "float32")) / 6.0) ** settings.length_penalty


def _log_probabilities(settings, logits_BKV, words_BKn):
    """Log probabilities of `words_BKn`, float32 `(B, K, n)`; 1e-37 is the lowest probability."""
    if settings.anti_lm:
        # The logits of `AntiLM` are made of log probabilities.
        return ops.take_along_axis(logits_BKV, words_BKn, axis=2)
    p_BKn = ops.take_along_axis(ops.softmax(logits_BKV), words_BKn, axis=2)
    return ops.log(ops.maximum(p_BKn, 1e-37))


def draw(settings, hypotheses, logits_BKV, allowed_BKV, noise_BK):
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
        The words, int32 `(B, K)`; for a finished hypothesis any word.
        The log probabilities of the hypotheses with these words, float32 `(B, K)`.
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
    log_p_BK = _log_probabilities(settings, logits_BKV, word_BK1)[..., 0]
    score_BK = hypotheses.score_BK + ops.where(hypotheses.done_BK, 0.0, log_p_BK)
    return word_BK1[..., 0], score_BK
