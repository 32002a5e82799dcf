"""Writes replies word by word: greedy search, beam search and sampling.

One loop in the graph writes all replies of a batch at once, and ends when each has its `_EOS_`. The
arguments of `decode` change the graph. The settings in `INPUTS` do not: they are tensors, one
number per source.

Shape suffixes:
    B batch   K hypotheses   L words of a reply   V words of the vocabulary   T earlier replies
    N hypotheses of the whole batch, B K
"""

from types import SimpleNamespace
from typing import Annotated

import keras
from keras import ops, tree
from pydantic import Field, model_validator

from colloquy.base.config import Config, NonNegative
from colloquy.layers.masking import LOWEST, MASKED_LOGIT
from colloquy.models.anti_lm import AntiLM
from colloquy.models.forbidden_words import LONGEST_BLOCKED, forbid_words
from colloquy.models.next_words import Hypotheses, best_continuations, draw, length_penalty

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
    """MMI-antiLM of Li et al. 2016: a word's log probability after an empty source, `_EOS_` alone,
    times this weight, is subtracted from its log probability after the source. Replies that would
    answer anything are probable after the empty source, too, and so lose."""
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
        anti_lm: Whether `anti_lm_weight` is used. It takes a second step of the decoder for each
            word.

    Returns:
        Ids, int32 `(B, K, L)`, `_EOS_` included, then 0, the best reply first.
        Their scores, by which they are sorted, float32 `(B, K)`: the log probability by the model,
        less what `anti_lm_weight` subtracts, divided by the length penalty.
        A search may find fewer replies than K. Then the last rows of ids are 0, with the score
        `LOWEST`.
    """
    K = num_beams
    L = reply_length
    source_BS = inputs["source"]
    noise_BKL = inputs.get("noise")
    # The tensors of the inputs: `settings.min_length`, for example, is `(B, 1)`.
    settings = SimpleNamespace(**inputs, anti_lm=anti_lm)
    if anti_lm:
        weight_N1 = ops.repeat(settings.anti_lm_weight, K, axis=0)
        model = AntiLM(model, weight_N1, eos_id)

    # Each source is encoded once.
    states, cache = model.encode(source_BS)
    states = tree.map_structure(lambda x: ops.repeat(x, K, axis=0), states)
    cache = tree.map_structure(lambda x: ops.repeat(x, K, axis=0), cache)

    def is_any_open(t, hypotheses):
        return (t < L) & ~ops.all(hypotheses.done_BK)

    def add_word(t, hypotheses):
        # 1. The logits of the next word
        word_N = ops.reshape(hypotheses.word_BK, (-1,))
        logits_NV, states, _ = model.step(word_N, hypotheses.states, cache)
        hypotheses = hypotheses._replace(states=states)
        logits_BKV = ops.reshape(ops.cast(logits_NV, "float32"), (-1, K, logits_NV.shape[-1]))
        allowed_BKV = forbid_words(settings, t, hypotheses.ids_BKL, logits_BKV, eos_id, unk_id)

        # 2. The choice of a word. A search also chooses the hypotheses that are continued.
        if noise_BKL is None:
            hypotheses, word_BK, score_BK = best_continuations(
                settings, hypotheses, logits_BKV, allowed_BKV
            )
        else:
            noise_BK = ops.take(noise_BKL, t, axis=2)
            word_BK, score_BK = draw(settings, hypotheses, logits_BKV, allowed_BKV, noise_BK)

        # 3. The word is written at place t, if the reply is not finished.
        is_open_BK = ~hypotheses.done_BK
        word_BK = ops.where(is_open_BK, word_BK, 0)
        is_last_BK = (word_BK == eos_id) | (t + 1 >= settings.max_length)
        hypotheses = Hypotheses(
            ids_BKL=ops.where(ops.arange(L) == t, word_BK[..., None], hypotheses.ids_BKL),
            word_BK=word_BK,
            score_BK=score_BK,
            length_BK=hypotheses.length_BK + ops.cast(is_open_BK, "int32"),
            done_BK=hypotheses.done_BK | is_last_BK,
            states=hypotheses.states,
        )
        return t + 1, hypotheses

    B = ops.shape(source_BS)[0]
    first_score_K = ops.zeros(K)
    if noise_BKL is None:
        # A beam starts from one hypothesis: K equal ones would find each reply K times.
        first_score_K = ops.where(ops.arange(K) == 0, 0.0, MASKED_LOGIT)
    start = Hypotheses(
        ids_BKL=ops.zeros((B, K, L), "int32"),
        word_BK=ops.full((B, K), model.begin_id, "int32"),
        score_BK=ops.tile(first_score_K[None], (B, 1)),
        length_BK=ops.zeros((B, K), "int32"),
        done_BK=ops.zeros((B, K), "bool"),
        states=states,
    )
    _, found = ops.while_loop(is_any_open, add_word, (ops.convert_to_tensor(0), start))
    return _sort_replies(settings, found)


def _sort_replies(settings, found):
    """Sorts replies, the best first, and empties those that the search did not find.

    Returns the ids, int32 `(B, K, L)`, and what they are ranked by, float32 `(B, K)`.
    """
    is_reply_BK = found.score_BK > LOWEST
    ids_BKL = ops.where(is_reply_BK[..., None], found.ids_BKL, 0)
    ranking_BK = found.score_BK / length_penalty(settings, found.length_BK)
    ranking_BK = ops.where(is_reply_BK, ranking_BK, LOWEST)
    return _reorder(ids_BKL, ranking_BK, ops.argsort(-ranking_BK, axis=1))


def put_new_replies_first(ids_BKL, scores_BK, said_BTL):
    """Sorts the replies to each source: those that were given before come behind the others.

    Args:
        ids_BKL: Replies as `decode` returns them, int32.
        scores_BK: Their scores, float32.
        said_BTL: The replies that were given before, int32; rows of 0 are none.

    Returns:
        The ids and the scores in the new order. Replies of one kind keep their order.
    """
    K = ids_BKL.shape[1]
    is_equal_BKTL = ids_BKL[:, :, None, :] == said_BTL[:, None, :, :]
    is_said_BK = ops.any(ops.all(is_equal_BKTL, axis=3), axis=2)

    # Group 0 is new, group 1 was given before, group 2 are places without a reply: they stay last.
    group_BK = ops.cast(is_said_BK, "int32")
    group_BK = ops.where(scores_BK > LOWEST, group_BK, 2)
    # Groups [1, 0, 1] of three replies -> keys [3, 1, 5] -> order [1, 0, 2]
    key_BK = group_BK * K + ops.arange(K)
    return _reorder(ids_BKL, scores_BK, ops.argsort(key_BK, axis=1))


def _reorder(ids_BKL, scores_BK, order_BK):
    sorted_BKL = ops.take_along_axis(ids_BKL, order_BK[..., None], axis=1)
    return sorted_BKL, ops.take_along_axis(scores_BK, order_BK, axis=1)


class Decoder(keras.Model):
    """`decode` as a model that is called with the `inputs`, so that every backend compiles it.

    `noise` stays float32 whatever the precision policy: bfloat16 has no more than a few hundred
    different draws.
    """

    def __init__(self, model, num_beams, reply_length, eos_id, unk_id, anti_lm=False):
        super().__init__(dtype="float32")
        self.model = model
        self.arguments = (num_beams, reply_length, eos_id, unk_id, anti_lm)

    def call(self, inputs):
        return decode(self.model, inputs, *self.arguments)
