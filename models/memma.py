"""MEMMA: Ren, Yang, Kong and Zuo, "Memory Network with Multi-Head Attention for Chatbot", Computer Systems &
Applications 2019, 28(9).

words -> sums of word vectors and positions -> S hops of multi-head attention over the history, joined by gated
shortcuts -> user's vector + last hop, times every candidate's vector

Shape suffixes:  B dialogs   M sentences   T turns   C candidates   D features   H heads

Not stated in the paper, and decided here: how a sentence becomes a vector (the sum of its words', as in MemN2N), heads,
hops, and that sinusoids are scaled to fresh word vectors (`layers.bag_of_words`).
"""

import dataclasses

import keras

from layers.bag_of_words import BagOfWords
from layers.dialog_history import at_turns
from layers.memory_attention import MemoryAttention
from layers.shortcut import KINDS, Shortcut
from models.dialog_memory import MemoryConfig, encoded, inputs_of, logits_of, memory_of

DIVISORS = {"dimension": 1.0, "root": 0.5}


@dataclasses.dataclass(frozen=True)
class MEMMAConfig(MemoryConfig):
    """What a MEMMA is made of; the defaults are the paper's where it says."""

    positions: bool = True
    """Sinusoids are added to the word vectors (eq. 6 to 8)."""
    heads: int = 4
    """`h`, divides `embedding_dim`."""
    hops: int = 3
    """`S`."""
    divisor: str = "dimension"
    """Attention logits are divided by `d_model` (`dimension`, eq. 9) or by its `root`."""
    shortcut: str = "gated"
    """`gated` (eq. 13), `identity` (eq. 12) or `none`."""

    def __post_init__(self):
        super().__post_init__()
        for field, known in (("divisor", tuple(DIVISORS)), ("shortcut", KINDS)):
            if getattr(self, field) not in known:
                raise ValueError(f"{field} must be one of {known}. Received: {field}={getattr(self, field)!r}")
        if self.hops < 0:
            raise ValueError(f"hops must be at least 0. Received: hops={self.hops}")
        if self.heads < 1 or self.embedding_dim % self.heads:
            raise ValueError(
                f"heads must divide embedding_dim. Received: heads={self.heads}, embedding_dim={self.embedding_dim}"
            )


def hops(c, U_1_BTD, memory):
    """The stacked attention of equations 9 to 14.

    Args:
        c: A `MEMMAConfig`.
        U_1_BTD: The users' sentences.
        memory: Of `models.dialog_memory.memory_of`.

    Returns:
        `U_1 + U_S`, float `(B, T, D)`, and the attention weights of each hop, `(B, H, T, M)`.
    """
    divisor = float(c.embedding_dim) ** DIVISORS[c.divisor]
    u_BTD, attention_weights = U_1_BTD, []
    for s in range(c.hops):
        o_BTD, a_BHTM = MemoryAttention(c.heads, divisor=divisor, name=f"attention_{s}")(u_BTD, *memory)
        u_BTD = Shortcut(c.shortcut, name=f"shortcut_{s}")(o_BTD, u_BTD)
        attention_weights.append(a_BHTM)
    return U_1_BTD + u_BTD if c.hops else U_1_BTD, attention_weights


@keras.saving.register_keras_serializable("colloquy")
class MEMMA(keras.Model):
    """Scores every candidate response at every turn of dialogs.

    Args:
        config: A `MEMMAConfig`.

    Call arguments: the dict of arrays that `config.reads` names, see `tasks.dialog.batches.DialogSplit.collate`.

    Returns:
        Logits, float32 `(B, T, C)`.

    `attention_weights` holds the symbolic weights of each hop, `(B, H, T, M)`, for `keras.Model(model.input, ...)`.
    """

    def __init__(self, config, **kwargs):
        c = config

        # === Layers ===
        encode = BagOfWords(  # one matrix E for user, history and candidates
            c.vocabulary_size,
            c.embedding_dim,
            max_words=c.max_words if c.positions else 0,
            trainable=c.train_embedding,
            name="bag_of_words",
        )

        # === Text (eq. 5 to 8) ===
        inputs = inputs_of(c)
        x_BMD = encoded(encode, inputs)
        U_1_BTD = at_turns(x_BMD, inputs["turns"])

        # === Response (eq. 15): softmax((U_1 + U_S) C) ===
        state_BTD, attention_weights = hops(c, U_1_BTD, memory_of(c, x_BMD, inputs))
        logits = logits_of(c, state_BTD, encode, inputs)

        super().__init__(inputs, logits, **kwargs)
        self.config = config
        self.attention_weights = attention_weights

    def get_config(self):
        return {"config": dataclasses.asdict(self.config), "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(MEMMAConfig(**config["config"]), name=config["name"])
