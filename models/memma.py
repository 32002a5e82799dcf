"""MEMMA: Ren, Yang, Kong and Zuo, "Memory Network with Multi-Head Attention for Chatbot", Computer Systems &
Applications 2019, 28(9).

words -> sums of word vectors and positions -> S hops of multi-head attention over the history, joined by gated
shortcuts -> user's vector + last hop, times every candidate's vector

Shape suffixes:  B dialogs   M sentences   T turns   C candidates   D features   H heads

Not stated in the paper, and decided here: how a sentence becomes a vector (the sum of its words', as in MemN2N, or
another `encoding`), heads, hops, and that sinusoids are scaled to fresh word vectors (`layers.bag_of_words`).
"""

from typing import Literal

import keras
from pydantic import model_validator

from base.config import Positive
from layers.dialog_history import sentence_mask
from layers.memory_attention import MemoryAttention
from layers.shortcut import Shortcut
from models.dialog_memory import DialogModel, SumConfig, encoded_words, read_history, score_candidates

DIVISORS = {"dimension": 1.0, "root": 0.5}


class MEMMAConfig(SumConfig):
    """Settings of MEMMA; the defaults are the paper's where it states them. `hops` is its `S`."""

    positions: bool = True
    """Add sinusoids to the word vectors (eq. 6 to 8). In a sum they tell only a sentence's length; no other `encoding`
    reads this field."""
    heads: Positive = 4
    """`h`, divides `embedding_dim`."""
    divisor: Literal["dimension", "root"] = "dimension"
    """Attention logits are divided by `d_model` (`dimension`, eq. 9) or by its `root`."""
    shortcut: Literal["gated", "identity", "none"] = "gated"
    """`gated` (eq. 13), `identity` (eq. 12) or `none`."""
    gate: Literal["tanh", "sigmoid"] = "tanh"
    """Activation of the gate: the article's `tanh`, or a `sigmoid` as in highway networks."""
    memory: Literal["sentences", "latest"] = "sentences"
    """Memory of a hop: the `sentences` of the history; or, from the second hop on, the `latest` result of attention
    over the history, one reading of the article's section 1: each sentence goes through the hop before as the user's
    does, over the sentences up to itself, without their distances in time."""

    @model_validator(mode="after")
    def _check_heads(self):
        if self.embedding_dim % self.heads:
            raise ValueError(
                f"heads must divide embedding_dim. Received: heads={self.heads}, embedding_dim={self.embedding_dim}"
            )
        return self


def hops(c, U_1_BTD, memory, speakers):
    """The stacked attention of equations 9 to 14.

    Args:
        c: A `MEMMAConfig`.
        U_1_BTD: The users' sentences.
        memory: Of `models.dialog_memory.read_history`.
        speakers: Of the sentences, int `(B, M)`.

    Returns:
        `U_1 + U_S`, float `(B, T, D)`, and the attention weights of each hop, `(B, H, T, M)`.
    """
    divisor = float(c.embedding_dim) ** DIVISORS[c.divisor]
    u_BTD, attention_weights = U_1_BTD, []
    m_BMD, *features = memory
    for s in range(c.hops):
        attend = MemoryAttention(c.heads, divisor=divisor, name=f"attention_{s}")
        join = Shortcut(c.shortcut, c.gate, name=f"shortcut_{s}")
        o_BTD, a_BHTM = attend(u_BTD, m_BMD, *features)
        u_BTD = join(o_BTD, u_BTD)
        if c.memory == "latest":
            m_BMD = join(attend(m_BMD, m_BMD, sentence_mask(speakers))[0], m_BMD)
        attention_weights.append(a_BHTM)
    return U_1_BTD + u_BTD if c.hops else U_1_BTD, attention_weights


@keras.saving.register_keras_serializable("colloquy")
class MEMMA(DialogModel):
    """What it takes and returns: see `models.dialog_memory.DialogModel`."""

    Config = MEMMAConfig

    @staticmethod
    def network(c, inputs):
        # One matrix E for user, history and candidates (eq. 5 to 8)
        E = encoded_words(c, "bag_of_words", max_words=c.max_words if c.positions else 0, heads=c.heads)
        U_1_BTD, memory = read_history(c, E, inputs)
        state_BTD, attention_weights = hops(c, U_1_BTD, memory, inputs["speakers"])
        # Response (eq. 15): softmax((U_1 + U_S) C)
        return score_candidates(c, state_BTD, E, inputs), attention_weights
