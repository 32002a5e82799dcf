"""Entity MEMMA: MEMMA that knows entities by their type and by what was said of them. An extension, not from a paper.

typed words -> MEMMA -> vector times every candidate's vector + pointers to the entities that the candidate names

Two changes to MEMMA (`models.memma`). First, a word that is a value of an open type of the knowledge base (a place, a
restaurant, a phone number) is read as its type, in memories and candidates alike, so all candidates that differ by such
words alone have one vector. Second, what tells those apart is a pointer (`layers.entity_pointer`): the state of a turn
weighs the sentences of the history, and so the entities in them. No rule of the dialogs is written down: that the best
rated restaurant not yet refused comes next, or that the last cuisine wished for counts, is learnt.

Which words are entities comes from the knowledge base alone (`tasks.dialog.prepare.find_entities`).

Shape suffixes:  B dialogs   M sentences   T turns   C candidates   D features   H heads
"""

import keras
from pydantic import model_validator

from layers.dialog_history import history_mask
from layers.entity_pointer import EntityPointer
from models.dialog_memory import DialogModel, encoded_words, read_history, score_candidates
from models.memma import MEMMAConfig, hops


class EntityMEMMAConfig(MEMMAConfig):
    """Settings of MEMMA; it needs speakers and time, and has no match types, which its pointers include."""

    positions: bool = False
    """Add sinusoids to the word vectors; see `MEMMAConfig`."""

    @model_validator(mode="after")
    def _check_features(self):
        if not (self.speaker and self.time) or self.match_types:
            raise ValueError(
                "entity-memma has speaker and time and no match_types. "
                f"Received: speaker={self.speaker}, time={self.time}, match_types={self.match_types}"
            )
        return self

    @property
    def reads(self):
        return ["typed_words", "sentences", "speakers", "times", "turns", "mentions"]


@keras.saving.register_keras_serializable("colloquy")
class EntityMEMMA(DialogModel):
    """What it takes and returns: see `models.dialog_memory.DialogModel`."""

    Config = EntityMEMMAConfig

    @staticmethod
    def network(c, inputs):
        # MEMMA on typed words
        words, longest = c.vocabulary_size + c.types, c.max_words if c.positions else 0
        E = encoded_words(c, "bag_of_words", max_words=longest, words=words, heads=c.heads)
        U_1_BTD, memory = read_history(c, E, inputs)
        state_BTD, attention_weights = hops(c, U_1_BTD, memory, inputs["speakers"])
        logits_BTC = score_candidates(c, state_BTD, E, inputs)

        # Pointers
        seen_BTM = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        point = EntityPointer(c.candidate_entities, name="entity_pointer")
        memory_BMD, _, time_RD, distances_BTMR = memory
        gain_BTC, _ = point(state_BTD, memory_BMD, seen_BTM, inputs["mentions"], time_RD, distances_BTMR)
        return logits_BTC + gain_BTC, attention_weights
