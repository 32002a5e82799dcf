"""MEMR, the recurrent memory network that MEMMA is compared with: its sentences are read by a GRU, word after word.

words -> GRU -> hops of attention over the history -> times every candidate's vector

The MEMMA paper (Ren et al. 2019) gives its scores and no equations. Here it is MemN2N with a GRU (Cho et al. 2014) for
the sentences of user and history; candidates stay sums of word vectors.

Shape suffixes:  B dialogs   M sentences   T turns   D features
"""

import keras

from layers.sentence_gru import SentenceGRU
from models.dialog_memory import DialogModel, HopConfig, read_history, score_candidates, word_sums
from models.memn2n import hops


class MEMRConfig(HopConfig):
    """Settings of MEMR."""


@keras.saving.register_keras_serializable("colloquy")
class MEMR(DialogModel):
    """What it takes and returns: see `models.dialog_memory.DialogModel`."""

    Config = MEMRConfig

    @staticmethod
    def network(c, inputs):
        read = SentenceGRU(c.vocabulary_size, c.embedding_dim, c.train_embedding, name="sentence_gru")
        W = word_sums(c, "candidate_embedding")
        q_BTD, memory = read_history(c, read, inputs)
        # Hops and response, as in MemN2N
        q_BTD, attention_weights = hops(c, q_BTD, memory)
        return score_candidates(c, q_BTD, W, inputs), attention_weights
