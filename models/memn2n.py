"""MemN2N for dialog: Bordes, Boureau and Weston, "Learning End-to-End Goal-Oriented Dialog", ICLR 2017, section 4.2,
after Sukhbaatar et al. 2015; gated: Liu and Perez, "Gated End-to-End Memory Networks", EACL 2017.

words -> sums of word vectors -> hops over the history -> times every candidate's vector

Shape suffixes:  B dialogs   M sentences   T turns   D features
"""

import dataclasses

import keras

from layers.bag_of_words import BagOfWords
from layers.dialog_history import at_turns
from layers.memory_attention import MemoryAttention
from layers.shortcut import Shortcut
from models.dialog_memory import MemoryConfig, encoded, inputs_of, logits_of, memory_of


@dataclasses.dataclass(frozen=True)
class MemN2NConfig(MemoryConfig):
    """What a MemN2N is made of. Bordes et al. chose 1 to 3 hops and 20 to 128 features by task."""

    hops: int = 3
    """`N`."""
    gated: bool = False
    """A sigmoid gate a hop instead of the sum of state and output (Liu and Perez)."""

    def __post_init__(self):
        super().__post_init__()
        if self.hops < 0:
            raise ValueError(f"hops must be at least 0. Received: hops={self.hops}")


def hops(c, q_BTD, memory, gated=False):
    """The hops of both papers: `p_i = softmax(q . m_i)`, `o = R sum_i p_i m_i`, `q' = o + q` or the gated sum.

    Args:
        c: A config with `embedding_dim` and `hops`.
        q_BTD: The users' sentences.
        memory: Of `models.dialog_memory.memory_of`.
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
class MemN2N(keras.Model):
    """Scores every candidate response at every turn of dialogs.

    Args:
        config: A `MemN2NConfig`.

    Call arguments: the dict of arrays that `config.reads` names, see `tasks.dialog.batches.DialogSplit.collate`.

    Returns:
        Logits, float32 `(B, T, C)`.

    `attention_weights` holds the symbolic weights of each hop, `(B, 1, T, M)`, for `keras.Model(model.input, ...)`.
    """

    def __init__(self, config, **kwargs):
        c = config

        # === Layers ===
        A, W = (
            BagOfWords(c.vocabulary_size, c.embedding_dim, trainable=c.train_embedding, name=name)
            for name in ("memory_embedding", "candidate_embedding")
        )

        # === Memory ===
        inputs = inputs_of(c)
        x_BMD = encoded(A, inputs)
        q_BTD = at_turns(x_BMD, inputs["turns"])
        q_BTD, attention_weights = hops(c, q_BTD, memory_of(c, x_BMD, inputs), gated=c.gated)

        # === Response: softmax(q . W y) ===
        super().__init__(inputs, logits_of(c, q_BTD, W, inputs), **kwargs)
        self.config = config
        self.attention_weights = attention_weights

    def get_config(self):
        return {"config": dataclasses.asdict(self.config), "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(MemN2NConfig(**config["config"]), name=config["name"])
