"""Supervised embeddings: Bordes, Boureau and Weston 2017, section 4.1 (the "LTR-SEM" of the MEMMA paper).

words of the whole conversation -> one sum of word vectors -> times every candidate's sum: f(x, y) = (A x) . (B y)

Trained here by the softmax over all candidates that the memory networks have; the paper's margin ranking loss is
`--set loss=margin`.

Shape suffixes:  B dialogs   M sentences   T turns   D features
"""

import dataclasses

import keras
from keras import ops

from layers.bag_of_words import BagOfWords
from layers.dialog_history import history_mask
from models.dialog_memory import MemoryConfig, encoded, inputs_of, logits_of


@dataclasses.dataclass(frozen=True)
class SupervisedEmbeddingsConfig(MemoryConfig):
    """What supervised embeddings are made of. A sum of words knows no speakers and no time."""

    speaker: bool = False
    time: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.speaker or self.time:
            raise ValueError(f"A bag of words has no features. Received: speaker={self.speaker}, time={self.time}")


@keras.saving.register_keras_serializable("colloquy")
class SupervisedEmbeddings(keras.Model):
    """Scores every candidate response at every turn of dialogs.

    Args:
        config: A `SupervisedEmbeddingsConfig`.

    Call arguments: the dict of arrays that `config.reads` names, see `tasks.dialog.batches.DialogSplit.collate`.

    Returns:
        Logits, float32 `(B, T, C)`.
    """

    def __init__(self, config, **kwargs):
        c = config
        A, B = (
            BagOfWords(c.vocabulary_size, c.embedding_dim, trainable=c.train_embedding, name=name)
            for name in ("conversation_embedding", "candidate_embedding")
        )
        inputs = inputs_of(c)
        x_BMD = encoded(A, inputs)
        said_BTM = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        x_BTD = ops.matmul(ops.cast(said_BTM, x_BMD.dtype), x_BMD)
        super().__init__(inputs, logits_of(c, x_BTD, B, inputs), **kwargs)
        self.config = config
        self.attention_weights = []

    def get_config(self):
        return {"config": dataclasses.asdict(self.config), "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(SupervisedEmbeddingsConfig(**config["config"]), name=config["name"])
