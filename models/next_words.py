"""The next word of each hypothesis of a search: which words are allowed, and which one is chosen.

Shape suffixes:
    B batch   K hypotheses   L words of a reply   V words of the vocabulary   W V, in whole blocks
"""

from keras import ops

from colloquy.layers.masking import LOWEST, masked_logits, masked_softmax

LONGEST_BLOCKED = 10
"""Words of the longest sequence that `block_ngrams` may block."""
BLOCK = 64
"""Words of a block. `top_words` splits the vocabulary into blocks of this size and searches only
the blocks with the largest maxima."""


# === Scores of words ===


class AntiLM:
    """A model whose logits are `log p(word | source) - weight log p(word | empty source)`.

    `weight` is float `(rows, 1)`. States and cache are those of the source, then those of the empty
    source.
    """

    def __init__(self, model, weight, eos_id):
        self.model = model
        self.weight = weight
        self.eos_id = eos_id
        self.begin_id = model.begin_id

    def encode(self, source):
        B = ops.shape(source)[0]
        states, cache = self.model.encode(source)
        empty_source = ops.full((1, 1), self.eos_id, "int32")
        empty_states, empty_cache = self.model.encode(empty_source)
        empty_states = [ops.repeat(x, B, axis=0) for x in empty_states]
        empty_cache = [ops.repeat(x, B, axis=0) for x in empty_cache]
        return [*states, *empty_states], [*cache, *empty_cache]

    def step(self, words, states, cache):
        n = len(states) // 2
        m = len(cache) // 2
        logits, after, weights = self.model.step(words, states[:n], cache[:m])
        empty_logits, empty_after, _ = self.model.step(words, states[n:], cache[m:])
        log_p = ops.log_softmax(ops.cast(logits, "float32"))
        empty_log_p = ops.log_softmax(ops.cast(empty_logits, "float32"))
        return log_p - self.weight * empty_log_p, [*after, *empty_after], weights


def length_penalty(settings, length_BK):
    return ((5.0 + ops.cast(length_BK, "float32")) / 6.0) ** settings.length_penalty


def _log_probabilities(settings, logits_BKV, words_BKn):
    """Log probabilities of `words_BKn`, float32 `(B, K, n)`; 1e-37 is the lowest probability."""
    if settings.anti_lm:  # the logits of `AntiLM` are log probabilities
        return ops.take_along_axis(logits_BKV, words_BKn, axis=2)
    p_BKn = ops.take_along_axis(ops.softmax(logits_BKV), words_BKn, axis=2)
    return ops.log(ops.maximum(p_BKn, 1e-37))


def forbid(settings, t, ids_BKL, logits_BKV, eos_id, unk_id):
    """Sets the logits of words that are not allowed at position `t` to `LOWEST`.

    Returns float32 `(B, K, W)`; the words from V on, which fill the last block, are `LOWEST` too.
    """
    B = ops.shape(logits_BKV)[0]
    V = logits_BKV.shape[-1]
    K, L = ids_BKL.shape[1:]
    W = V + -V % BLOCK

    # The ids of forbidden words. Where a word is allowed, the id is that of padding, 0.
    end_B1 = ops.where(t >= settings.min_length, 0, eos_id)
    fixed_B2 = ops.concatenate([ops.full_like(end_B1, unk_id), end_B1], axis=1)
    fixed_BK2 = ops.repeat(fixed_B2[:, None], K, axis=1)
    repeating_BKL = _repeating(ids_BKL, t, settings.block_ngrams[..., None])
    words_BKn = ops.concatenate([repeating_BKL, fixed_BK2], axis=2)

    filled_BKW = ops.pad(logits_BKV, [(0, 0), (0, 0), (0, W - V)], constant_values=LOWEST)
    index_BKn = W * ops.reshape(ops.arange(B * K), (B, K, 1)) + words_BKn
    lowest = ops.full((B * K * words_BKn.shape[-1],), LOWEST)
    flat = ops.reshape(filled_BKW, (-1,))
    flat = ops.scatter_update(flat, ops.reshape(index_BKn, (-1, 1)), lowest)
    allowed_BKW = ops.reshape(flat, (B, K, W))

    # If all words are forbidden, the reply ends. A larger vocabulary always has an allowed one: at
    # most the reply's words and three others are forbidden.
    if V > L + 3:
        return allowed_BKW
    is_stuck_BK1 = ops.max(allowed_BKW, axis=-1, keepdims=True) == LOWEST
    return ops.where(is_stuck_BK1 & (ops.arange(W) == eos_id), 0.0, allowed_BKW)


def _repeating(ids_BKL, t, n):
    """Words that would repeat an n-gram at position `t`, int32 `(B, K, L)`; 0 is none.

    `n` is int `(B, 1, 1)`; 0 allows any repetition.
    """
    L = ids_BKL.shape[2]
    # `same` at l: the n - 1 words before position l are the n - 1 words before t.
    position_L = ops.arange(L)
    is_candidate = (position_L < t) & (position_L >= n - 1) & (n > 0)
    same_BKL = ops.broadcast_to(is_candidate, ops.shape(ids_BKL))
    for i in range(1, min(LONGEST_BLOCKED, L)):
        before_t_BK1 = ops.take(ids_BKL, ops.maximum(t - i, 0), axis=2)[..., None]
        before_BKL = ops.pad(ids_BKL, [(0, 0), (0, 0), (i, 0)])[..., :L]
        same_BKL &= (before_BKL == before_t_BK1) | (i >= n)
    return ops.where(same_BKL, ids_BKL, 0)


# === Choice of words ===


def best_continuations(settings, logits_BKV, allowed_BKW, score_BK, length_BK, done_BK):
    """Chooses the K best hypotheses of the next step: extended by a word, or finished before.

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
    likely_BKn, words_BKn = top_words(allowed_BKW, n)
    is_allowed_BKn = likely_BKn > LOWEST
    log_p_BKn = _log_probabilities(settings, logits_BKV, words_BKn)
    extended_BKn = masked_logits(score_BK1 + log_p_BKn, is_allowed_BKn)

    # A finished one stays as it is, and competes once: in the first of its n places.
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


def top_words(logits_BKW, n):
    """The `n` largest logits and their words, as `ops.top_k`, which takes TensorFlow twice as long.

    Only the `n` blocks with the largest maxima are searched.
    """
    K, W = logits_BKW.shape[1:]
    blocks = ops.reshape(logits_BKW, (-1, W // BLOCK, BLOCK))
    _, best_blocks = ops.top_k(ops.max(blocks, axis=2), min(n, W // BLOCK))
    # In the order of the vocabulary, so that of equal words the first is chosen.
    best_blocks = ops.sort(ops.cast(best_blocks, "int32"), axis=1)

    searched = ops.reshape(gather(blocks, best_blocks), (-1, best_blocks.shape[1] * BLOCK))
    likely, index = ops.top_k(searched, n)
    index = ops.cast(index, "int32")
    block = ops.take_along_axis(best_blocks, index // BLOCK, axis=1)
    words = block * BLOCK + index % BLOCK
    return ops.reshape(likely, (-1, K, n)), ops.reshape(words, (-1, K, n))


def draw(settings, logits_BKV, allowed_BKW, noise_BK):
    """Draws words among those that `top_p` leaves.

    The likeliest words come first; the word drawn is the one at which the sum of probabilities
    passes the noise.

    Returns:
        The words, int32 `(B, K)`.
        Their log probabilities by the model, float32 `(B, K)`.
    """
    V = logits_BKV.shape[-1]
    likely_BKV, words_BKV = ops.top_k(allowed_BKW / settings.temperature[..., None], V)

    # Keep the likeliest words, those that `top_p` needs; at least one.
    p_BKV = masked_softmax(likely_BKV)
    sum_before_BKV = ops.cumsum(p_BKV, axis=-1) - p_BKV
    p_BKV = ops.where(sum_before_BKV < settings.top_p[..., None], p_BKV, 0.0)

    # By rounding, the noise may exceed the sum of all words; the last word is drawn then.
    total_BK1 = ops.sum(p_BKV, axis=-1, keepdims=True)
    is_passed_BKV = ops.cumsum(p_BKV, axis=-1) <= noise_BK[..., None] * total_BK1
    rank_BK = ops.sum(ops.cast(is_passed_BKV, "int32"), axis=-1)
    num_left_BK = ops.sum(ops.cast(p_BKV > 0, "int32"), axis=-1)
    rank_BK = ops.minimum(rank_BK, num_left_BK - 1)

    word_BK1 = ops.cast(ops.take_along_axis(words_BKV, rank_BK[..., None], axis=2), "int32")
    log_p_BK1 = _log_probabilities(settings, logits_BKV, word_BK1)
    return word_BK1[..., 0], log_p_BK1[..., 0]


# === Hypotheses ===


def gather(x_BK, index_BK):
    """Gathers the hypotheses `index_BK` of each source from `x_BK`, `(B, K, ...)`."""
    K = x_BK.shape[1]
    first_row_B1 = K * ops.arange(ops.shape(index_BK)[0])[:, None]
    rows = ops.reshape(x_BK, (-1, *x_BK.shape[2:]))
    return ops.take(rows, first_row_B1 + ops.cast(index_BK, "int32"), axis=0)


def gather_states(x, index_BK):
    """The same for a state of the decoder, `(B K, ...)`."""
    K = index_BK.shape[1]
    x_BK = ops.reshape(x, (-1, K, *x.shape[1:]))
    return ops.reshape(gather(x_BK, index_BK), (-1, *x.shape[1:]))
