"""MemN2N for dialog: Bordes, Boureau and Weston, "Learning End-to-End Goal-Oriented Dialog", ICLR 2017, section 4.2,
after Sukhbaatar et al. 2015; gated: Liu and Perez, "Gated End-to-End Memory Networks", EACL 2017.

words -> sums of word vectors -> hops over the history -> times every candidate's vector

Shape suffixes:  B dialogs   M sentences   T turns   D features
"""

import keras

from layers.memory_attention import MemoryAttention
from layers.shortcut import Shortcut
from models.dialog_memory import DialogModel, SumConfig, encoded_words, read_history, score_candidates, word_sums


class MemN2NConfig(SumConfig):
    """Settings of MemN2N. Bordes et al. chose 1 to 3 hops and 20 to 128 features by task."""

    gated: bool = False
    """A sigmoid gate per hop instead of the sum of state and output (Liu and Perez)."""


def hops(c, q_BTD, memory, gated=False):
    """The hops of both papers: `p_i = softmax(q . m_i)`, `o = R sum_i p_i m_i`, `q' = o + q` or the gated sum.

    Args:
        c: A config with `embedding_dim` and `hops`.
        q_BTD: The users' sentences.
        memory: Of `models.dialog_memory.read_history`.
        gated: See `MemN2NConfig`.

    Returns:
        The last state, float `(B, T, D)`, and the attention weights of each hop, `(B, 1, T, M)`.
    """
    attend = MemoryAttention(projected=False, name="attention")
    R = keras.layers.Dense(c.embedding_dim, use_bias=False, name="output_projection")
    kind = {"kind": "gated", "activation": "sigmoid"} if gated else {"kind": "identity"}
    attention_weights = []
    for hop in range(c.hops):
        read_BTD, a_B1TM = attend(q_BTD, *memory)
        q_BTD = Shortcut(**kind, name=f"shortcut_{hop}")(R(read_BTD), q_BTD)
        attention_weights.append(a_B1TM)
    return q_BTD, attention_weights


@keras.saving.register_keras_serializable("colloquy")
class MemN2N(DialogModel):
    """What it takes and returns: see `models.dialog_memory.DialogModel`."""

    Config = MemN2NConfig

    @staticmethod
    def network(c, inputs):
        A, W = encoded_words(c, "memory_embedding"), word_sums(c, "candidate_embedding")
        q_BTD, memory = read_history(c, A, inputs)
        q_BTD, attention_weights = hops(c, q_BTD, memory, c.gated)
        # Response: softmax(q . W y)
        return score_candidates(c, q_BTD, W, inputs), attention_weights
