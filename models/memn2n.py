"""The three models that MEMMA is compared with.

    Supervised embeddings   Bordes, Boureau and Weston, "Learning End-to-End Goal-Oriented Dialog",
                            ICLR 2017, section 4.1
    MemN2N                  Sukhbaatar et al. 2015; for dialogs Bordes et al., section 4.2; gated:
                            Liu and Perez, "Gated End-to-End Memory Networks", EACL 2017
    MEMR                    MemN2N with a GRU that reads the sentences

    words -> vectors of sentences -> hops over the history -> times every candidate's vector

Shape suffixes:  B dialogs   M sentences   T turns   D features
"""

from typing import Literal

import keras
from keras import ops

from colloquy.layers.dialog_history import history_mask
from colloquy.layers.memory_attention import MemoryAttention
from colloquy.layers.sentence_gru import SentenceGRU
from colloquy.layers.shortcut import Shortcut
from colloquy.models.dialog_memory import (
    DialogModel,
    HopConfig,
    MemoryConfig,
    SumConfig,
    encode_sentences,
    make_encoder,
    read_history,
    score_candidates,
)


class SupervisedEmbeddingsConfig(MemoryConfig):
    """Settings of supervised embeddings. A sum of words has no speakers and no time."""

    speaker: Literal[False] = False
    """Always `False`."""
    time: Literal[False] = False
    """Always `False`."""


@keras.saving.register_keras_serializable("colloquy")
class SupervisedEmbeddings(DialogModel):
    """`f(x, y) = (A x) . (B y)` of the words `x` of the whole conversation.

    It is the "LTR-SEM" of the MEMMA paper, trained by the softmax over all candidates, as the
    memory networks are; the paper's margin ranking loss is `--set loss=margin`. It has no attention
    weights.
    """

    Config = SupervisedEmbeddingsConfig

    @staticmethod
    def equations(c, inputs):
        A = make_encoder(c, "conversation_embedding", c.vocabulary_size)
        B = make_encoder(c, "candidate_embedding", c.vocabulary_size)
        x_BMD = encode_sentences(c, A, inputs)
        said_BTM = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        x_BTD = ops.matmul(ops.cast(said_BTM, x_BMD.dtype), x_BMD)
        return score_candidates(c, x_BTD, B, inputs), []


class MemN2NConfig(SumConfig):
    """Settings of MemN2N. Bordes et al. chose 1 to 3 hops and 20 to 128 features by task."""

    gated: bool = False
    """A sigmoid gate per hop instead of the sum of state and output (Liu and Perez)."""


@keras.saving.register_keras_serializable("colloquy")
class MemN2N(DialogModel):
    """Reads the history as sums of word vectors."""

    Config = MemN2NConfig

    @staticmethod
    def equations(c, inputs):
        # In a plain sum the order of words does not count; with `encoding=attention` it does.
        positions = "none" if c.encoding == "sum" else "halves"
        A = make_encoder(c, "memory_embedding", c.vocabulary_size, c.encoding, positions)
        W = make_encoder(c, "candidate_embedding", c.vocabulary_size)
        q_BTD, memory = read_history(c, A, inputs)
        q_BTD, attention_weights = _hops(c, q_BTD, memory, c.gated)
        # Response: softmax(q . W y)
        return score_candidates(c, q_BTD, W, inputs), attention_weights


class MEMRConfig(HopConfig):
    """Settings of MEMR."""


@keras.saving.register_keras_serializable("colloquy")
class MEMR(DialogModel):
    """MemN2N with a GRU (Cho et al. 2014) for the sentences of user and history.

    Candidates stay sums of word vectors. The MEMMA paper (Ren et al. 2019) gives MEMR's scores and
    no equations.
    """

    Config = MEMRConfig

    @staticmethod
    def equations(c, inputs):
        read = SentenceGRU(
            c.vocabulary_size, c.embedding_dim, c.train_embedding, name="sentence_gru"
        )
        W = make_encoder(c, "candidate_embedding", c.vocabulary_size)
        q_BTD, memory = read_history(c, read, inputs)
        q_BTD, attention_weights = _hops(c, q_BTD, memory)
        return score_candidates(c, q_BTD, W, inputs), attention_weights


def _hops(c, q_BTD, memory, gated=False):
    """The hops of MemN2N and of MEMR.

        p_i = softmax(q . m_i),   o = R sum_i p_i m_i,   q' = o + q, or the gated sum of both

    `memory` is a `models.dialog_memory.Memory`, whose fields are arguments of the attention.
    Returns the last state, float `(B, T, D)`, and the attention weights of each hop, `(B, 1, T,
    M)`.
    """
    attend = MemoryAttention(projected=False, name="attention")
    R = keras.layers.Dense(c.embedding_dim, use_bias=False, name="output_projection")
    kind = "gated" if gated else "identity"
    attention_weights = []
    for hop in range(c.hops):
        read_BTD, a_B1TM = attend(q_BTD, *memory)
        join = Shortcut(kind, activation="sigmoid", name=f"shortcut_{hop}")
        q_BTD = join(R(read_BTD), q_BTD)
        attention_weights.append(a_B1TM)
    return q_BTD, attention_weights
