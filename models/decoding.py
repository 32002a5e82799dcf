"""Writes replies word by word: greedy search, beam search and sampling.

One loop in the graph writes all replies of a batch at once, and ends when each has its `_EOS_`. The
number of hypotheses, the length of the buffer for a reply, sampling and `anti_lm_weight` change the
graph. All other settings are inputs, one number per source.

Shape suffixes:
    B batch   K hypotheses   L words of a reply   V words of the vocabulary   W V, in whole blocks
"""

from types import SimpleNamespace
from typing import Annotated

import keras
from keras import ops
from pydantic import Field, model_validator

from colloquy.base.config import Config, NonNegative
from colloquy.layers.masking import LOWEST, masked_logits, masked_softmax

MOST_BEAMS = 100
"""Most hypotheses of a search: each needs a row of logits over the whole vocabulary."""
LONGEST_REPLY = 500
"""Most words of a reply: the buffer of each hypothesis has as many."""
LONGEST_BLOCKED = 10
"""Words of the longest sequence that `block_ngrams` may block."""
BLOCK = 64
"""Words of a block. `_top_words` splits the vocabulary into blocks of this size and searches only
the blocks with the largest maxima."""


class Decoding(Config):
    """Settings of the search for replies; the default, a beam of 1, is greedy search."""

    beam: Annotated[int, Field(ge=1, le=MOST_BEAMS)] = 1
    """Hypotheses kept; with `sample`, replies drawn."""
    sample: bool = False
    """Draw words by their probability instead of searching for the most probable reply."""
    max_length: Annotated[int, Field(ge=1, le=LONGEST_REPLY)] = 30
    """Words, `_EOS_` included; a reply without one ends there."""
    min_length: NonNegative = 0
    """Words before `_EOS_` is allowed."""
    length_penalty: Annotated[float, Field(ge=0, le=10)] = 0.0
    """`alpha` of Wu et al. 2016, eq. 14: hypotheses are ranked by log probability / ((5 + words) /
    6) ** alpha."""
    block_ngrams: Annotated[int, Field(ge=0, le=LONGEST_BLOCKED)] = 0
    """Length of the word sequences that a reply must not repeat; 0: any may be repeated."""
    anti_lm_weight: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Weight of a word's log probability after an empty source, `_EOS_` alone. It is subtracted:
    it is high in replies that would answer anything (MMI-antiLM of Li et al. 2016; the language
    model is the model itself)."""
    temperature: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    """Sampling: logits are divided by it."""
    top_p: Annotated[float, Field(ge=1e-6, le=1)] = 1.0
    """Sampling: only among the fewest words that together have this probability (Holtzman et al.
    2020)."""

    @model_validator(mode="after")
    def _check_together(self):
        if self.min_length >= self.max_length:
            raise ValueError(
                f"min_length must be below max_length={self.max_length}. "
                f"Received: {self.min_length}"
            )
        if not self.sample and (self.temperature, self.top_p) != (1, 1):
            raise ValueError("temperature and top_p need sample=true")
        return self


INPUTS = {
    "max_length": "int32",
    "min_length": "int32",
    "block_ngrams": "int32",
    "length_penalty": "float32",
    "temperature": "float32",
    "top_p": "float32",
    "anti_lm_weight": "float32",
}
"""Fields of a `Decoding` that are inputs of a search, with their types."""


# === Search ===


def decode(model, inputs, num_beams, reply_length, eos_id, unk_id, anti_lm=False):
    """Writes replies.

    Args:
        model: Has `encode`, `step` and `begin_id` as `models.seq2seq.Seq2Seq`.
        inputs: A dict of `source`, int32 `(B, S)`; the `INPUTS`, `(B, 1)` each; and, to sample,
            `noise`, uniform in [0, 1), float32 `(B, K, L)`: the same numbers draw the same replies.
        num_beams: `K`.
        reply_length: `L`, at least each `max_length`.
        eos_id, unk_id: Ids of `_EOS_` and `_UNK_`; id 0 is padding, which no reply holds.
        anti_lm: `True` subtracts what `anti_lm_weight` weights, by a second step of the decoder for
            each word.

    Returns:
        Ids, int32 `(B, K, L)`, `_EOS_` included, then 0, the best reply first.
        What they are ranked by, float32 `(B, K)`: the log probability by the model, less what
        `anti_lm_weight` subtracts, divided by the length penalty. Where there are fewer replies
        than K, the others are 0 throughout and ranked by `LOWEST`.
    """
    K = num_beams
    L = reply_length
    settings = SimpleNamespace(**inputs, anti_lm=anti_lm)
    noise_BKL = inputs.get("noise")
    B = ops.shape(settings.source)[0]
    model = _scoring_model(model, settings, K, eos_id)

    # Each source is encoded once; its K hypotheses are consecutive rows of the states.
    states, cache = model.encode(settings.source)
    states = [ops.repeat(x, K, axis=0) for x in states]
    cache = [ops.repeat(x, K, axis=0) for x in cache]

    def is_open(t, ids_BKL, score_BK, length_BK, done_BK, *states):
        return (t < L) & ~ops.all(done_BK)

    def add_word(t, ids_BKL, score_BK, length_BK, done_BK, *states):
        before_BK = ops.take(ids_BKL, ops.maximum(t - 1, 0), axis=2)
        before_BK = ops.where(t == 0, ops.full_like(before_BK, model.begin_id), before_BK)
        logits, states, _ = model.step(ops.reshape(before_BK, (-1,)), list(states), cache)
        logits_BKV = ops.reshape(ops.cast(logits, "float32"), (B, K, logits.shape[-1]))
        allowed_BKW = _forbid(settings, t, ids_BKL, logits_BKV, eos_id, unk_id)

        if noise_BKL is not None:
            noise_BK = ops.take(noise_BKL, t, axis=2)
            word_BK, log_p_BK = _draw(settings, logits_BKV, allowed_BKW, noise_BK)
            score_BK = score_BK + ops.where(done_BK, 0.0, log_p_BK)
        else:
            parent_BK, word_BK, score_BK = _best_continuations(
                settings, logits_BKV, allowed_BKW, score_BK, length_BK, done_BK
            )
            ids_BKL = _gather(ids_BKL, parent_BK)
            length_BK = _gather(length_BK, parent_BK)
            done_BK = _gather(done_BK, parent_BK)
            states = [_gather_states(x, parent_BK) for x in states]

        word_BK = ops.where(done_BK, 0, word_BK)
        ids_BKL = ops.where(ops.arange(L) == t, word_BK[..., None], ids_BKL)
        length_BK = length_BK + ops.cast(~done_BK, "int32")
        done_BK = done_BK | (word_BK == eos_id) | (t + 1 >= settings.max_length)
        return [t + 1, ids_BKL, score_BK, length_BK, done_BK, *states]

    start = [
        ops.convert_to_tensor(0),
        ops.zeros((B, K, L), "int32"),
        ops.tile(_first_scores(K, sample=noise_BKL is not None)[None], (B, 1)),
        ops.zeros((B, K), "int32"),
        ops.zeros((B, K), "bool"),
        *states,
    ]
    _, ids_BKL, score_BK, length_BK, *_ = ops.while_loop(is_open, add_word, start)
    return _sort_replies(settings, ids_BKL, score_BK, length_BK)


def put_new_replies_first(ids_BKL, scores_BK, said_BTL):
    """Sorts the replies to each source: those that were given before come behind the others.

    Args:
        ids_BKL: Replies as `decode` returns them, int32.
        scores_BK: Their scores, float32.
        said_BTL: The replies that were given before, int32; rows of 0 are none.

    Returns:
        The ids and the scores in the new order, which is otherwise the old one.
    """
    K = ids_BKL.shape[1]
    is_equal_BKTL = ids_BKL[:, :, None, :] == said_BTL[:, None, :, :]
    is_said_BK = ops.any(ops.all(is_equal_BKTL, axis=3), axis=2)
    group_BK = ops.cast(is_said_BK, "int32")
    # Where a search found fewer than K replies, the missing ones stay last.
    group_BK = ops.where(scores_BK > LOWEST, group_BK, 2)
    order_BK = ops.argsort(group_BK * K + ops.arange(K), axis=1)
    return _gather(ids_BKL, order_BK), _gather(scores_BK, order_BK)


def _first_scores(K, sample):
    """Scores of the empty hypotheses of a source, float32 `(K,)`."""
    if sample:
        return ops.zeros(K)
    # A beam starts from one hypothesis: K equal ones would find each reply K times.
    return masked_logits(ops.zeros(K), ops.arange(K) == 0)


def _sort_replies(settings, ids_BKL, score_BK, length_BK):
    """Sorts replies, the best first, and empties those that the search did not find."""
    is_reply_BK = score_BK > LOWEST
    ids_BKL = ops.where(is_reply_BK[..., None], ids_BKL, 0)
    ranking_BK = score_BK / _length_penalty(settings, length_BK)
    ranking_BK = ops.where(is_reply_BK, ranking_BK, LOWEST)
    order_BK = ops.argsort(-ranking_BK, axis=1)
    return _gather(ids_BKL, order_BK), _gather(ranking_BK, order_BK)


def _gather(x_BK, index_BK):
    """Gathers the hypotheses `index_BK` of each source from `x_BK`, `(B, K, ...)`."""
    K = x_BK.shape[1]
    first_row_B1 = K * ops.arange(ops.shape(index_BK)[0])[:, None]
    rows = ops.reshape(x_BK, (-1, *x_BK.shape[2:]))
    return ops.take(rows, first_row_B1 + ops.cast(index_BK, "int32"), axis=0)


def _gather_states(x, index_BK):
    """The same for a state of the decoder, `(B K, ...)`."""
    K = index_BK.shape[1]
    x_BK = ops.reshape(x, (-1, K, *x.shape[1:]))
    return ops.reshape(_gather(x_BK, index_BK), (-1, *x.shape[1:]))


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


def _scoring_model(model, settings, K, eos_id):
    if not settings.anti_lm:
        return model
    weight = ops.repeat(settings.anti_lm_weight, K, axis=0)
    return AntiLM(model, weight, eos_id)


def _length_penalty(settings, length_BK):
    return ((5.0 + ops.cast(length_BK, "float32")) / 6.0) ** settings.length_penalty


def _log_probabilities(settings, logits_BKV, words_BKn):
    """Log probabilities of `words_BKn`, float32 `(B, K, n)`; 1e-37 is the lowest probability."""
    if settings.anti_lm:  # the logits of `AntiLM` are log probabilities
        return ops.take_along_axis(logits_BKV, words_BKn, axis=2)
    p_BKn = ops.take_along_axis(ops.softmax(logits_BKV), words_BKn, axis=2)
    return ops.log(ops.maximum(p_BKn, 1e-37))


def _forbid(settings, t, ids_BKL, logits_BKV, eos_id, unk_id):
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


def _best_continuations(settings, logits_BKV, allowed_BKW, score_BK, length_BK, done_BK):
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
    likely_BKn, words_BKn = _top_words(allowed_BKW, n)
    is_allowed_BKn = likely_BKn > LOWEST
    log_p_BKn = _log_probabilities(settings, logits_BKV, words_BKn)
    extended_BKn = masked_logits(score_BK1 + log_p_BKn, is_allowed_BKn)

    # A finished one stays as it is, and competes once: in the first of its n places.
    is_first_n = ops.arange(n) == 0
    finished_BKn = masked_logits(score_BK1, is_first_n)
    score_BKn = ops.where(done_BK1, finished_BKn, extended_BKn)

    # By log probability alone, long hypotheses would lose.
    length_BK = ops.where(done_BK, length_BK, length_BK + 1)
    penalty_BK = _length_penalty(settings, length_BK)
    ranking_BKn = score_BKn / penalty_BK[..., None]

    # The K * n candidates of each source compete for its K places.
    def flat(x_BKn):
        return ops.reshape(x_BKn, (-1, K * n))

    _, best_BK = ops.top_k(flat(ranking_BKn), K)
    parent_BK = ops.cast(best_BK, "int32") // n
    word_BK = ops.take_along_axis(flat(words_BKn), best_BK, axis=1)
    score_BK = ops.take_along_axis(flat(score_BKn), best_BK, axis=1)
    return parent_BK, word_BK, score_BK


def _top_words(logits_BKW, n):
    """The `n` largest logits and their words, as `ops.top_k`, which takes TensorFlow twice as long.

    Only the `n` blocks with the largest maxima are searched.
    """
    K, W = logits_BKW.shape[1:]
    blocks = ops.reshape(logits_BKW, (-1, W // BLOCK, BLOCK))
    _, best_blocks = ops.top_k(ops.max(blocks, axis=2), min(n, W // BLOCK))
    # In the order of the vocabulary, so that of equal words the first is chosen.
    best_blocks = ops.sort(ops.cast(best_blocks, "int32"), axis=1)

    searched = ops.reshape(_gather(blocks, best_blocks), (-1, best_blocks.shape[1] * BLOCK))
    likely, index = ops.top_k(searched, n)
    index = ops.cast(index, "int32")
    block = ops.take_along_axis(best_blocks, index // BLOCK, axis=1)
    words = block * BLOCK + index % BLOCK
    return ops.reshape(likely, (-1, K, n)), ops.reshape(words, (-1, K, n))


def _draw(settings, logits_BKV, allowed_BKW, noise_BK):
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


class Decoder(keras.Model):
    """`decode`, compiled on every backend for some of its arguments; called with the `inputs`.

    `noise` stays float32 whatever the precision policy: bfloat16 has no more than a few hundred
    different draws.
    """

    def __init__(self, model, num_beams, reply_length, eos_id, unk_id, anti_lm=False):
        super().__init__(dtype="float32")
        self.model = model
        self.arguments = (num_beams, reply_length, eos_id, unk_id, anti_lm)

    def call(self, inputs):
        return decode(self.model, inputs, *self.arguments)
