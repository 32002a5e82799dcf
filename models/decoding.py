"""Writing replies with a model that scores them word by word: greedy search, beam search and
sampling.

One loop in the graph writes all replies of a batch at once, and ends when each has its `_EOS_`. The
beam, the room for a reply, sampling and `against_empty` change the graph. All other settings are
inputs, a number for each source.

Shape suffixes:  B batch   K hypotheses   L words of a reply   V words of the vocabulary   W V
filled to whole blocks
"""

from types import SimpleNamespace
from typing import Annotated

import keras
from keras import ops
from pydantic import Field, model_validator

from colloquy.base.config import Config, NonNegative, Positive
from colloquy.layers.masking import LOWEST, masked_logits, masked_softmax

LONGEST_BLOCKED = 10  # words of the longest sequence that `block_ngrams` may block
# words of a block; of each the largest logit is looked at first where the likeliest words are
# searched
BLOCK = 64


class Decoding(Config):
    """Settings of the search for replies; the default, a beam of 1, is greedy search."""

    beam: Positive = 1
    """Hypotheses kept; with `sample`, replies drawn."""
    sample: bool = False
    """Draw words by their probability instead of searching for the most probable reply."""
    max_length: Positive = 30
    """Words, `_EOS_` included; a reply without one ends there."""
    min_length: NonNegative = 0
    """Words before `_EOS_` is allowed."""
    length_penalty: Annotated[float, Field(ge=0, le=10)] = 0.0
    """`alpha` of Wu et al. 2016, eq. 14: hypotheses are ranked by log probability / ((5 + words) /
    6) ** alpha.
    """
    block_ngrams: Annotated[int, Field(ge=0, le=LONGEST_BLOCKED)] = 0
    """Length of the word sequences that a reply must not repeat; 0: any may be repeated."""
    allow_unknown: bool = False
    """A reply may contain `_UNK_`."""
    against_empty: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Weight of a word's log probability after an empty source, `_EOS_` alone. It is subtracted,
    for it is high in replies that would answer anything (MMI-antiLM of Li et al. 2016; the language
    model is the model itself)."""
    temperature: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    """Sampling: logits are divided by it."""
    top_k: NonNegative = 0
    """Sampling: only among the `top_k` most probable words; 0: all."""
    top_p: Annotated[float, Field(ge=1e-6, le=1)] = 1.0
    """Sampling: only among the fewest words that together have this probability (Holtzman et al.
    2020).
    """

    @model_validator(mode="after")
    def _check_together(self):
        if self.min_length >= self.max_length:
            raise ValueError(
                f"min_length must be below max_length={self.max_length}. Received: {self.min_length}"
            )
        if not self.sample and (self.temperature, self.top_k, self.top_p) != (1, 0, 1):
            raise ValueError("temperature, top_k and top_p need sample=true")
        return self


INPUTS = {
    **dict.fromkeys(("max_length", "min_length", "block_ngrams", "top_k"), "int32"),
    **dict.fromkeys(("length_penalty", "temperature", "top_p", "against_empty"), "float32"),
    "allow_unknown": "bool",
}
"""Fields of a `Decoding` that are inputs of a search, with their types."""


def decode(model, inputs, beam, room, eos_id, unk_id, against=False):
    """Writes replies.

    Args:
        model: Has `encode`, `step` and `begin_id` as `models.seq2seq.Seq2Seq`.
        inputs: A dict of `source`, int32 `(B, S)`; the `INPUTS`, `(B, 1)` each; and, to sample,
            `noise`, uniform in [0, 1), float32 `(B, K, L)`: the same numbers draw the same replies.
        beam, room: `K`, and `L`, which is at least each `max_length`.
        eos_id, unk_id: Ids of `_EOS_` and `_UNK_`; id 0 is padding, which no reply holds.
        against: `True` subtracts what `against_empty` weights, by a second step of the decoder for
            each word.

    Returns:
        Ids, int32 `(B, K, L)`, `_EOS_` included, then 0, the best reply first; and what they are
        ranked by, float32 `(B, K)`: the log probability by the model, less what `against_empty`
        subtracts, divided by the length penalty. Where there are fewer replies than K, the others
        are 0 throughout and ranked by `LOWEST`.
    """
    d, noise = SimpleNamespace(**inputs, against=against), inputs.get("noise")
    K, L, B = beam, room, ops.shape(d.source)[0]
    model = _scorer(model, d, K, eos_id)
    states, cache = model.encode(d.source)
    # (B K, ...)
    states, cache = ([ops.repeat(x, K, axis=0) for x in each] for each in (states, cache))
    ids_BKL = ops.zeros((B, K, L), "int32")
    # A beam starts from one hypothesis, else its K would be the same K times.
    score_K = masked_logits(ops.zeros(K), ops.arange(K) == 0) if noise is None else ops.zeros(K)
    score_BK = ops.tile(score_K[None], (B, 1))
    length_BK = ops.zeros((B, K), "int32")
    done_BK = ops.zeros((B, K), "bool")

    def going_on(t, ids_BKL, score_BK, length_BK, done_BK, *states):
        return (t < L) & ~ops.all(done_BK)

    def write(t, ids_BKL, score_BK, length_BK, done_BK, *states):
        before = ops.take(ids_BKL, ops.maximum(t - 1, 0), axis=2)
        before = ops.where(t == 0, ops.full_like(before, model.begin_id), before)
        logits, states, _ = model.step(ops.reshape(before, (-1,)), list(states), cache)
        logits_BKV = ops.reshape(ops.cast(logits, "float32"), (B, K, logits.shape[-1]))
        allowed_BKW = _only_allowed(d, t, ids_BKL, logits_BKV, eos_id, unk_id)
        if noise is not None:
            word_BK, gained_BK = _draw(d, logits_BKV, allowed_BKW, ops.take(noise, t, axis=2))
            score_BK = score_BK + ops.where(done_BK, 0.0, gained_BK)
        else:
            parent_BK, word_BK, score_BK = _best(
                d, logits_BKV, allowed_BKW, score_BK, length_BK, done_BK
            )
            ids_BKL, length_BK, done_BK = (
                _rows_of(x, parent_BK) for x in (ids_BKL, length_BK, done_BK)
            )
            split = [ops.reshape(x, (B, K, *x.shape[1:])) for x in states]
            states = [ops.reshape(_rows_of(x, parent_BK), (B * K, *x.shape[2:])) for x in split]
        word_BK = ops.where(done_BK, 0, word_BK)
        ids_BKL = ops.where(ops.arange(L) == t, word_BK[..., None], ids_BKL)
        length_BK = length_BK + ops.cast(~done_BK, "int32")
        done_BK = done_BK | (word_BK == eos_id) | (t + 1 >= d.max_length)
        return [t + 1, ids_BKL, score_BK, length_BK, done_BK, *states]

    start = [ops.convert_to_tensor(0), ids_BKL, score_BK, length_BK, done_BK, *states]
    _, ids_BKL, score_BK, length_BK, _, *_ = ops.while_loop(going_on, write, start)
    return _ranked(d, ids_BKL, score_BK, length_BK)


class AgainstEmpty:
    """A model whose logits are `log p(word | source) - weight log p(word | empty source)`; `weight`
    is `(rows, 1)`.
    """

    def __init__(self, model, weight, eos_id):
        self.model, self.weight, self.eos_id, self.begin_id = model, weight, eos_id, model.begin_id

    def encode(self, source):
        B, of_source = ops.shape(source)[0], self.model.encode(source)
        of_empty = self.model.encode(ops.full((1, 1), self.eos_id, "int32"))
        both = zip(of_source, of_empty, strict=True)
        return [[*given, *(ops.repeat(x, B, axis=0) for x in empty)] for given, empty in both]

    def step(self, words, states, cache):
        n, m = len(states) // 2, len(cache) // 2
        logits, after, weights = self.model.step(words, states[:n], cache[:m])
        of_empty, after_empty, _ = self.model.step(words, states[n:], cache[m:])
        log_p, log_u = (ops.log_softmax(ops.cast(x, "float32")) for x in (logits, of_empty))
        return log_p - self.weight * log_u, [*after, *after_empty], weights


def _scorer(model, d, K, eos_id):
    return (
        AgainstEmpty(model, ops.repeat(d.against_empty, K, axis=0), eos_id) if d.against else model
    )


def _ranked(d, ids_BKL, score_BK, length_BK):
    found_BK = score_BK > LOWEST
    ids_BKL = ops.where(found_BK[..., None], ids_BKL, 0)
    ranking_BK = ops.where(found_BK, score_BK / _penalty(d, length_BK), LOWEST)
    order = ops.argsort(-ranking_BK, axis=1)
    return _rows_of(ids_BKL, order), _rows_of(ranking_BK, order)


def _rows_of(x_BK, row_BK):
    """Gathers the rows `row_BK` of each source from `x_BK`, `(B, K, ...)`."""
    first_B1 = x_BK.shape[1] * ops.arange(ops.shape(row_BK)[0])[:, None]
    return ops.take(
        ops.reshape(x_BK, (-1, *x_BK.shape[2:])), first_B1 + ops.cast(row_BK, "int32"), axis=0
    )


def write(model, inputs, eos_id, unk_id):
    """Writes one reply to one source as `decode` does with a beam of 1, word by word.

    Yields the id of each word and its attention weights `(S,)`, or `None`.
    """
    d, noise = SimpleNamespace(**inputs, against=inputs["against_empty"].any()), inputs.get("noise")
    L, word, model = int(d.max_length[0, 0]), model.begin_id, _scorer(model, d, 1, eos_id)
    ids_L, (states, cache) = [0] * L, model.encode(d.source)
    for t in range(L):
        logits, states, weights = model.step(ops.convert_to_tensor([word], "int32"), states, cache)
        logits_BKV = ops.cast(logits, "float32")[:, None]
        allowed_BKW = _only_allowed(
            d, t, ops.convert_to_tensor([[ids_L]], "int32"), logits_BKV, eos_id, unk_id
        )
        if noise is not None:
            word_BK, _ = _draw(d, logits_BKV, allowed_BKW, noise[:, :1, t])
        else:
            word_BK = ops.argmax(allowed_BKW, axis=-1)
        word = ids_L[t] = int(word_BK[0, 0])
        yield word, None if weights is None else weights[0]
        if word == eos_id:
            return


def _penalty(d, length):
    return ((5.0 + ops.cast(length, "float32")) / 6.0) ** d.length_penalty


def _only_allowed(d, t, ids_BKL, logits_BKV, eos_id, unk_id):
    """The logits, float32 `(B, K, W)`: `LOWEST` for words that are not allowed at place `t`, and
    for the fill.
    """
    (B, V), (K, L) = (ops.shape(logits_BKV)[0], logits_BKV.shape[-1]), ids_BKL.shape[1:]
    W = V + -V % BLOCK
    # 0: padding
    unknown_B1, end_B1 = (
        ops.where(d.allow_unknown, 0, unk_id),
        ops.where(t >= d.min_length, 0, eos_id),
    )
    fixed_BK2 = ops.repeat(ops.concatenate([unknown_B1, end_B1], axis=1)[:, None], K, axis=1)
    words_BKn = ops.concatenate(
        [_repeating(ids_BKL, t, d.block_ngrams[..., None]), fixed_BK2], axis=2
    )
    places_BKn = W * ops.reshape(ops.arange(B * K), (B, K, 1)) + words_BKn
    filled_BKW = ops.pad(logits_BKV, [(0, 0), (0, 0), (0, W - V)], constant_values=LOWEST)
    lowest = ops.full((B * K * words_BKn.shape[-1],), LOWEST)
    flat = ops.scatter_update(
        ops.reshape(filled_BKW, (-1,)), ops.reshape(places_BKn, (-1, 1)), lowest
    )
    allowed_BKW = ops.reshape(flat, (B, K, W))
    if V > L + 3:  # at most 3 and the words of a reply are forbidden
        return allowed_BKW
    stuck = ops.max(allowed_BKW, axis=-1, keepdims=True) == LOWEST
    # a reply that cannot go on ends
    return ops.where(stuck & (ops.arange(W) == eos_id), 0.0, allowed_BKW)


def _repeating(ids_BKL, t, n):
    """Words that would repeat an n-gram at place `t`, int32 `(B, K, L)`, else 0; `n`, int `(B, 1,
    1)`, 0: they may.
    """
    L = ids_BKL.shape[2]
    end = ops.arange(L)  # of the sequences that the reply has
    same = ops.broadcast_to((end < t) & (end >= n - 1) & (n > 0), ops.shape(ids_BKL))
    for i in range(1, min(LONGEST_BLOCKED, L)):  # the word i before the end, and that i before t
        there = ops.take(ids_BKL, ops.maximum(t - i, 0), axis=2)[..., None]
        same &= (ops.pad(ids_BKL, [(0, 0), (0, 0), (i, 0)])[..., :L] == there) | (i >= n)
    return ops.where(same, ids_BKL, 0)


def _best(d, logits_BKV, allowed_BKW, score_BK, length_BK, done_BK):
    """Parents and words of the K best continuations, int32 `(B, K)`, and their log probabilities,
    float32 `(B, K)`.
    """
    K, V = logits_BKV.shape[1:]
    n = min(K, V)  # the K best of all are among the K best of each hypothesis
    likely_BKn, words_BKn = _top_words(allowed_BKW, n)
    log_p_BKn = _log_probabilities(d, logits_BKV, words_BKn)
    goes_on = masked_logits(score_BK[..., None] + log_p_BKn, likely_BKn > LOWEST)
    stays = masked_logits(score_BK[..., None], ops.arange(n) == 0)
    # a finished hypothesis is kept as it is, once
    total_BKn = ops.where(done_BK[..., None], stays, goes_on)
    penalty = _penalty(d, ops.where(done_BK, length_BK, length_BK + 1))[..., None]
    _, best_BK = ops.top_k(ops.reshape(total_BKn / penalty, (-1, K * n)), K)
    total_BK, word_BK = (
        ops.take_along_axis(ops.reshape(x, (-1, K * n)), best_BK, axis=1)
        for x in (total_BKn, words_BKn)
    )
    return ops.cast(best_BK, "int32") // n, word_BK, total_BK


def _top_words(logits_BKW, n):
    """As `ops.top_k`, which takes TensorFlow twice as long: only the `n` blocks with the largest
    are searched.
    """
    K, W = logits_BKW.shape[1:]
    rows = ops.reshape(logits_BKW, (-1, W // BLOCK, BLOCK))
    _, block = ops.top_k(ops.max(rows, axis=2), min(n, W // BLOCK))
    block = ops.sort(ops.cast(block, "int32"), axis=1)  # of equal words the first
    likely, place = ops.top_k(ops.reshape(_rows_of(rows, block), (-1, block.shape[1] * BLOCK)), n)
    place = ops.cast(place, "int32")
    words = ops.take_along_axis(block, place // BLOCK, axis=1) * BLOCK + place % BLOCK
    return ops.reshape(likely, (-1, K, n)), ops.reshape(words, (-1, K, n))


def _draw(d, logits_BKV, allowed_BKW, noise_BK):
    """Draws words among those that `top_k` and `top_p` leave, int32 `(B, K)`, and their log
    probabilities by the model.

    The likeliest words come first, and the word is drawn at whose place the sum of probabilities
    passes the noise.
    """
    V = logits_BKV.shape[-1]
    likely_BKV, words_BKV = ops.top_k(allowed_BKW / d.temperature[..., None], V)
    most = ops.where(d.top_k > 0, d.top_k, V)[..., None]
    p = masked_softmax(likely_BKV, ops.arange(V) < most)
    before = ops.cumsum(p, axis=-1) - p
    p = ops.where(before < d.top_p[..., None], p, 0.0)  # the first stays, whatever it has
    passed = ops.cumsum(p, axis=-1) <= noise_BK[..., None] * ops.sum(p, axis=-1, keepdims=True)
    place = ops.minimum(
        ops.sum(ops.cast(passed, "int32"), axis=-1), ops.sum(ops.cast(p > 0, "int32"), axis=-1) - 1
    )
    word_BK1 = ops.cast(ops.take_along_axis(words_BKV, place[..., None], axis=2), "int32")
    return word_BK1[..., 0], _log_probabilities(d, logits_BKV, word_BK1)[..., 0]


def _log_probabilities(d, logits_BKV, words_BKn):
    """Log probabilities of some words, float32 `(B, K, n)`; a probability below 1e-37 counts as
    1e-37.
    """
    if d.against:  # `AgainstEmpty` has computed them
        return ops.take_along_axis(logits_BKV, words_BKn, axis=2)
    p_BKn = ops.take_along_axis(ops.softmax(logits_BKV), words_BKn, axis=2)
    return ops.log(ops.maximum(p_BKn, 1e-37))


class Decoder(keras.Model):
    """`decode`, compiled on every backend for some of its arguments; it is called with the
    `inputs`.

    `noise` stays float32 whatever the precision policy: bfloat16 has no more than a few hundred
    different draws.
    """

    def __init__(self, model, beam, room, eos_id, unk_id, against=False):
        super().__init__(dtype="float32")
        self.model, self.fixed = model, (beam, room, eos_id, unk_id, against)

    def call(self, inputs):
        return decode(self.model, inputs, *self.fixed)
