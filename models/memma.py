"""MEMMA, a memory network with multi-head attention.

Ren, Yang, Kong and Zuo, "Memory Network with Multi-Head Attention for Chatbot", Computer Systems &
Applications 2019, 28(9):

    words -> sums of word vectors and positions: user's sentence U_1, history
    U_1 -> S hops: multi-head attention over the history, joined by a gated shortcut -> U_S
    (U_1 + U_S) times every candidate's vector -> logits

Shape suffixes:
    B dialogs   M sentences   T turns   D features   H heads

Not stated in the paper, and decided here: how a sentence becomes a vector (the sum of its words',
as in MemN2N, or another `encoding`), heads and hops.
"""

from typing import Literal

import keras
from pydantic import model_validator

from colloquy.base.config import Positive
from colloquy.layers.dialog_history import causal_mask
from colloquy.layers.memory_attention import MemoryAttention
from colloquy.layers.shortcut import Shortcut
from colloquy.models.dialog_memory import (
    DialogModel,
    SumConfig,
    make_encoder,
    read_history,
    score_candidates,
)


class MEMMAConfig(SumConfig):
    """Settings of MEMMA; the defaults are the paper's where it states them. `hops` is its `S`."""

    positions: Literal["interleaved", "halves", "none"] = "interleaved"
    """Sinusoids added to the word vectors, see `layers.bag_of_words`: `interleaved`, the article's
    (eq. 6 to 8), `halves`, ours, or `none`. With `encoding=sum` they tell only a sentence's length,
    with `attention` the order of its words. With `position` they are not used."""
    scale_words: bool = False
    """Word vectors are multiplied by the root of `embedding_dim`, as in Vaswani et al. 2017,
    section 3.4, so that the article's sinusoids do not outweigh them; the article does not say."""
    heads: Positive = 4
    """`h`, divides `embedding_dim`."""
    divisor: Literal["dimension", "root"] = "dimension"
    """Attention logits are divided by `d_model` (`dimension`, eq. 9) or by its `root`."""
    shortcut: Literal["gated", "identity", "none"] = "gated"
    """`gated` (eq. 13), `identity` (eq. 12) or `none`."""
    gate: Literal["tanh", "sigmoid"] = "tanh"
    """Activation of the gate: the article's `tanh`, or a `sigmoid` as in highway networks."""
    memory: Literal["sentences", "latest"] = "sentences"
    """`sentences`: each hop reads the sentences of the history. `latest`, another reading of the
    article's section 1: each hop also changes these sentences, by the same layers by which it
    changes the user's, and the next hop reads the changed ones. For this a sentence attends to
    itself and to those before it, without their distances in time."""

    @model_validator(mode="after")
    def _check_heads(self):
        if self.embedding_dim % self.heads:
            raise ValueError(
                "heads must divide embedding_dim. "
                f"Received: heads={self.heads}, embedding_dim={self.embedding_dim}"
            )
        return self


@keras.saving.register_keras_serializable("colloquy")
class MEMMA(DialogModel):
    """See `models.dialog_memory.DialogModel` for inputs and outputs."""

    Config = MEMMAConfig

    @staticmethod
    def equations(c, inputs):
        # The paper's matrix E is one for user, history and candidates (eq. 5 to 8).
        encode = make_shared_encoder(c, c.vocabulary_size)
        U_1_BTD, memory = read_history(c, encode, inputs)
        state_BTD, attention_weights = read_memory(c, inputs["speakers"], U_1_BTD, memory)
        return score_candidates(c, state_BTD, encode, inputs), attention_weights


def make_shared_encoder(c, num_words):
    """`models.dialog_memory.make_encoder` with the settings of a `MEMMAConfig`."""
    scale = c.embedding_dim**0.5 if c.scale_words else 1.0
    return make_encoder(
        c, "bag_of_words", num_words, c.encoding, c.positions, heads=c.heads, scale=scale
    )


def read_memory(c, speakers, U_1_BTD, memory):
    """The hops, and the state that candidates are multiplied with.

    Args:
        c: A `MEMMAConfig`.
        speakers: The input of this name, int32 `(B, M)`.
        U_1_BTD: The users' sentences.
        memory: A `models.dialog_memory.Memory`.

    Returns:
        The state, `(B, T, D)`.
        The attention weights of each hop, `(B, H, T, M)`.
    """
    divisor = float(c.embedding_dim)
    if c.divisor == "root":
        divisor = c.embedding_dim**0.5

    # Hops (eq. 9 to 14)
    u_BTD = U_1_BTD
    m_BMD = memory.sentences_BMD
    attention_weights = []
    for s in range(c.hops):
        attend = MemoryAttention(c.heads, divisor=divisor, name=f"attention_{s}")
        join = Shortcut(c.shortcut, c.gate, name=f"shortcut_{s}")
        o_BTD, a_BHTM = attend(u_BTD, *memory._replace(sentences_BMD=m_BMD))
        u_BTD = join(o_BTD, u_BTD)
        attention_weights.append(a_BHTM)
        if c.memory == "latest":
            o_BMD, _ = attend(m_BMD, m_BMD, causal_mask(speakers))
            m_BMD = join(o_BMD, m_BMD)

    # Response (eq. 15): softmax((U_1 + U_S) C). Without hops there is no U_S.
    state_BTD = U_1_BTD + u_BTD if c.hops else U_1_BTD
    return state_BTD, attention_weights
