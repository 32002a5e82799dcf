"""Supervised embeddings: Bordes, Boureau and Weston 2017, section 4.1 (the "LTR-SEM" of the MEMMA paper).

words of the whole conversation -> one sum of word vectors -> times every candidate's sum: f(x, y) = (A x) . (B y)

Trained here by the softmax over all candidates that the memory networks have; the paper's margin ranking loss is
`--set loss=margin`.

Shape suffixes:  B dialogs   M sentences   T turns   D features
"""

import keras
from keras import ops
from pydantic import model_validator

from layers.dialog_history import history_mask
from models.dialog_memory import DialogModel, MemoryConfig, encode_sentences, score_candidates, word_sums


class SupervisedEmbeddingsConfig(MemoryConfig):
    """Settings of supervised embeddings. A sum of words knows no speakers and no time."""

    speaker: bool = False
    """Always `False`."""
    time: bool = False
    """Always `False`."""

    @model_validator(mode="after")
    def _check_features(self):
        if self.speaker or self.time:
            raise ValueError(f"A bag of words has no features. Received: speaker={self.speaker}, time={self.time}")
        return self


@keras.saving.register_keras_serializable("colloquy")
class SupervisedEmbeddings(DialogModel):
    """What it takes and returns: see `models.dialog_memory.DialogModel`; it has no attention weights."""

    Config = SupervisedEmbeddingsConfig

    @staticmethod
    def network(c, inputs):
        A, B = word_sums(c, "conversation_embedding"), word_sums(c, "candidate_embedding")
        x_BMD = encode_sentences(c, A, inputs)
        said_BTM = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        x_BTD = ops.matmul(ops.cast(said_BTM, x_BMD.dtype), x_BMD)
        return score_candidates(c, x_BTD, B, inputs), []
