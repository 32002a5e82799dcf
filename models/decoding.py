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
from colloquy.layers.masking import LOWEST, masked_logits
from colloquy.models.next_words import (
    LONGEST_BLOCKED,
    AntiLM,
    best_continuations,
    draw,
    forbid,
    gather,
    gather_states,
    length_penalty,
)

MOST_BEAMS = 100
"""Most hypotheses of a search: each needs a row of logits over the whole vocabulary."""
LONGEST_REPLY = 500
"""Most words of a reply: the buffer of each hypothesis has as many."""


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
    if anti_lm:
        weight = ops.repeat(settings.anti_lm_weight, K, axis=0)
        model = AntiLM(model, weight, eos_id)

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
        allowed_BKW = forbid(settings, t, ids_BKL, logits_BKV, eos_id, unk_id)

        if noise_BKL is not None:
            noise_BK = ops.take(noise_BKL, t, axis=2)
            word_BK, log_p_BK = draw(settings, logits_BKV, allowed_BKW, noise_BK)
            score_BK = score_BK + ops.where(done_BK, 0.0, log_p_BK)
        else:
            parent_BK, word_BK, score_BK = best_continuations(
                settings, logits_BKV, allowed_BKW, score_BK, length_BK, done_BK
            )
            ids_BKL = gather(ids_BKL, parent_BK)
            length_BK = gather(length_BK, parent_BK)
            done_BK = gather(done_BK, parent_BK)
            states = [gather_states(x, parent_BK) for x in states]

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
    sorted_BKL = ops.take_along_axis(ids_BKL, order_BK[..., None], axis=1)
    return sorted_BKL, ops.take_along_axis(scores_BK, order_BK, axis=1)


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
    ranking_BK = score_BK / length_penalty(settings, length_BK)
    ranking_BK = ops.where(is_reply_BK, ranking_BK, LOWEST)
    order_BK = ops.argsort(-ranking_BK, axis=1)
    return gather(ids_BKL, order_BK), gather(ranking_BK, order_BK)


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
