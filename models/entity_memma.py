"""Entity MEMMA: MEMMA that knows things by their type and by what was said of them. An extension, not from a paper.

typed words -> MEMMA -> vector times every candidate's vector + pointers to the entities that the candidate names

Two changes to MEMMA (`models.memma`). First, a word that is a value of an open type of the knowledge base (a place, a
restaurant, a phone number) is read as its type, in memories and candidates alike, so all candidates that differ by such
words alone have one vector. Second, what tells those apart is a pointer (`layers.entity_pointer`): the state of a turn
weighs the sentences of the history, and so the things in them. No rule of the dialogs is written down: that the best
rated restaurant not yet refused comes next, or that the last cuisine wished for counts, is learnt.

Which words are entities comes from the knowledge base alone (`tasks.dialog.prepare.find_entities`).

Shape suffixes:  B dialogs   M sentences   T turns   C candidates   D features   H heads
"""

import dataclasses

import keras

from layers.bag_of_words import BagOfWords
from layers.dialog_history import at_turns, history_mask
from layers.entity_pointer import EntityPointer
from models.dialog_memory import encoded, inputs_of, logits_of, memory_of
from models.memma import MEMMAConfig, hops


@dataclasses.dataclass(frozen=True)
class EntityMEMMAConfig(MEMMAConfig):
    """A MEMMA's fields; it needs speakers and time, and has no match types, which its pointers include."""

    positions: bool = False

    def __post_init__(self):
        super().__post_init__()
        if not (self.speaker and self.time) or self.match_types:
            raise ValueError(
                "entity-memma has speaker and time and no match_types. "
                f"Received: speaker={self.speaker}, time={self.time}, match_types={self.match_types}"
            )

    @property
    def reads(self):
        return ["typed_words", "sentences", "speakers", "times", "turns", "mentions"]


@keras.saving.register_keras_serializable("colloquy")
class EntityMEMMA(keras.Model):
    """Scores every candidate response at every turn of dialogs.

    Args:
        config: An `EntityMEMMAConfig`.

    Call arguments: the dict of arrays that `config.reads` names, see `tasks.dialog.batches.DialogSplit.collate`.

    Returns:
        Logits, float32 `(B, T, C)`.

    `attention_weights` holds the symbolic weights of each hop, `(B, H, T, M)`, for `keras.Model(model.input, ...)`.
    """

    def __init__(self, config, **kwargs):
        c = config

        # === Layers ===
        encode = BagOfWords(
            c.vocabulary_size + c.types,
            c.embedding_dim,
            max_words=c.max_words if c.positions else 0,
            trainable=c.train_embedding,
            name="bag_of_words",
        )

        # === MEMMA on typed words ===
        inputs = inputs_of(c)
        x_BMD = encoded(encode, inputs)
        memory = memory_of(c, x_BMD, inputs)
        state_BTD, attention_weights = hops(c, at_turns(x_BMD, inputs["turns"]), memory)
        logits = logits_of(c, state_BTD, encode, inputs)

        # === Pointers ===
        seen = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        point = EntityPointer(c.candidate_entities, name="entity_pointer")
        memory_BMD, _, time_RD, distances_BTMR = memory
        gain, _ = point(state_BTD, memory_BMD, seen, inputs["mentions"], time_RD, distances_BTMR)

        super().__init__(inputs, logits + gain, **kwargs)
        self.config = config
        self.attention_weights = attention_weights

    def get_config(self):
        return {"config": dataclasses.asdict(self.config), "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(EntityMEMMAConfig(**config["config"]), name=config["name"])
