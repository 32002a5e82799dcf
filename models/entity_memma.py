"""EntityMEMMA, an extension of MEMMA to the entities of a knowledge base; not from a paper.

    words -> MEMMA's state -> a hidden layer -> a template
                           -> pointers -> the entities in it

Shape suffixes:
    B dialogs   M sentences   T turns   C candidates   D features   R turn distances   E entities
    N conditions   S slots and flags   L templates
"""

from typing import Literal

import keras
from keras import ops

from colloquy.base.config import Positive
from colloquy.layers.dialog_history import history_mask
from colloquy.layers.dialog_state import CONDITIONS, INPUTS, DialogState
from colloquy.layers.entity_pointer import EntityPointer
from colloquy.layers.state_vector import StateVector
from colloquy.layers.templates import TemplateCandidates, last_template
from colloquy.models.dialog_memory import (
    DialogModel,
    dropped,
    encoded_words,
    read_history,
    stored_ids,
)
from colloquy.models.memma import MEMMAConfig, read_memory, shared_words


class EntityMEMMAConfig(MEMMAConfig):
    """Settings of EntityMEMMA."""

    templates: Positive
    """Number of templates of the candidates, L. `train.py` takes it from the prepared dataset."""
    positions: Literal["interleaved", "halves", "none"] = "none"
    """Sinusoids added to the word vectors; see `MEMMAConfig`."""
    speaker: Literal[True] = True
    """Always `True`."""
    time: Literal[True] = True
    """Always `True`: the pointers read the distances in time."""
    match_types: Literal[False] = False
    """Always `False`: the pointers include them."""

    @property
    def reads(self):
        arrays = ["typed_words", "sentences", "speakers", "times", "turns", "mentions"]
        return [*arrays, "entities", "responses"]


@keras.saving.register_keras_serializable("colloquy")
class EntityMEMMA(DialogModel):
    """MEMMA that chooses a template, and points at the entities that are named in it.

    A word that is a value of an open type of the knowledge base (a place, a restaurant, a phone
    number) is read as its type. A template is a candidate with types in place of all its entities.

    The hidden layer reads MEMMA's state, the user's words, the state of the conversation
    (`layers.dialog_state`) and the template that the bot used last. A pointer
    (`layers.entity_pointer`) tells the candidates of one template apart: MEMMA's state weighs the
    sentences of the history, and so the entities in them. No rule of the dialogs is written down:
    that the best rated restaurant not yet refused comes next, or that the last cuisine wished for
    counts, is learnt.

    Which words are entities comes from the knowledge base alone
    (`tasks.dialog.knowledge.find_entities`).
    """

    Config = EntityMEMMAConfig

    @staticmethod
    def equations(c, inputs):
        follow = DialogState(c.types, c.entities, c.candidates[0], name="dialog_state")
        known_BTS, conditions_BTNE = follow(**{name: inputs[name] for name in INPUTS})

        # MEMMA's state. The user's sentence also has what is known of the conversation.
        num_words = c.vocabulary_size + c.types
        encode = shared_words(c, num_words)
        U_1_BTD, memory = read_history(c, encode, inputs)
        project = keras.layers.Dense(c.embedding_dim, use_bias=False, name="known")
        U_1_BTD = U_1_BTD + project(ops.cast(known_BTS, U_1_BTD.dtype))
        state_BTD, attention_weights = read_memory(c, inputs, U_1_BTD, memory)

        # The entities
        seen_BTM = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        point = EntityPointer(c.candidate_entities, len(CONDITIONS), name="entity_pointer")
        gain_BTC, _ = point(
            state_BTD,
            memory.sentences_BMD,
            seen_BTM,
            inputs["mentions"],
            memory.times_RD,
            memory.distances_BTMR,
            conditions_BTNE,
        )

        # The template
        template_C = stored_ids(inputs, "candidate_templates", c.candidates[0])
        bag = encoded_words(c, "template_words", num_words)
        words_BTD = _user_words(bag, inputs)
        last_BT = last_template(
            inputs["speakers"], inputs["turns"], inputs["responses"], template_C
        )
        logits_BTL = _score_templates(c, state_BTD, words_BTD, known_BTS, last_BT)
        combine = TemplateCandidates(name="template_candidates")
        return combine(logits_BTL, gain_BTC, template_C), attention_weights


def _user_words(bag, inputs):
    """The sum of the word vectors of each turn's sentence, `(B, T, D)`."""
    # Rows of `typed_words`, the distinct sentences of the batch
    row_BT = ops.take_along_axis(inputs["sentences"], inputs["turns"], axis=1)
    return ops.take(bag(inputs["typed_words"]), row_BT, axis=0)


def _score_templates(c, state_BTD, words_BTD, known_BTS, last_BT):
    """The logits of templates, float `(B, T, L)`.

    `last_BT` is the bot's last template, from 1; 0: none.
    """
    # Slots and flags are read twice: each by itself, and all together as one of many states.
    known_BTD = StateVector(c.embedding_dim, name="state_vector")(known_BTS)
    dtype = state_BTD.dtype
    last_BTL = ops.one_hot(last_BT, 1 + c.templates, dtype=dtype)
    features = [state_BTD, ops.cast(known_BTS, dtype), last_BTL]
    features = ops.concatenate(features, axis=2)

    project = keras.layers.Dense(c.embedding_dim, name="template_features")
    sum_BTD = dropped(c, words_BTD) + dropped(c, known_BTD) + project(dropped(c, features))
    return keras.layers.Dense(c.templates, name="templates")(dropped(c, ops.relu(sum_BTD)))
