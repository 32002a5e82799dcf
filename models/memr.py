"""MEMR, the recurrent memory network that MEMMA is compared with: its sentences are read by a GRU, word after word.

words -> GRU -> hops of attention over the history -> times every candidate's vector

The MEMMA paper (Ren et al. 2019) gives its figures and no equations. Here it is MemN2N with a GRU (Cho et al. 2014) for
the sentences of user and history; candidates stay sums of word vectors.

Shape suffixes:  B dialogs   M sentences   T turns   D features
"""

import dataclasses

import keras

from layers.bag_of_words import BagOfWords
from layers.dialog_history import at_turns
from layers.sentence_gru import SentenceGRU
from models.dialog_memory import MemoryConfig, encoded, inputs_of, logits_of, memory_of
from models.memn2n import hops


@dataclasses.dataclass(frozen=True)
class MEMRConfig(MemoryConfig):
    """What a MEMR is made of."""

    hops: int = 3

    def __post_init__(self):
        super().__post_init__()
        if self.hops < 0:
            raise ValueError(f"hops must be at least 0. Received: hops={self.hops}")


@keras.saving.register_keras_serializable("colloquy")
class MEMR(keras.Model):
    """Scores every candidate response at every turn of dialogs.

    Args:
        config: A `MEMRConfig`.

    Call arguments: the dict of arrays that `config.reads` names, see `tasks.dialog.batches.DialogSplit.collate`.

    Returns:
        Logits, float32 `(B, T, C)`.

    `attention_weights` holds the symbolic weights of each hop, `(B, 1, T, M)`, for `keras.Model(model.input, ...)`.
    """

    def __init__(self, config, **kwargs):
        c = config

        # === Layers ===
        read = SentenceGRU(c.vocabulary_size, c.embedding_dim, c.train_embedding, name="sentence_gru")
        W = BagOfWords(c.vocabulary_size, c.embedding_dim, trainable=c.train_embedding, name="candidate_embedding")

        # === Memory ===
        inputs = inputs_of(c)
        x_BMD = encoded(read, inputs)
        q_BTD = at_turns(x_BMD, inputs["turns"])

        # === Hops and response, as in MemN2N ===
        q_BTD, attention_weights = hops(c, q_BTD, memory_of(c, x_BMD, inputs))
        super().__init__(inputs, logits_of(c, q_BTD, W, inputs), **kwargs)
        self.config = config
        self.attention_weights = attention_weights

    def get_config(self):
        return {"config": dataclasses.asdict(self.config), "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(MEMRConfig(**config["config"]), name=config["name"])
