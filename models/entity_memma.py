"""EntityMEMMA, an extension of MEMMA to the entities of a knowledge base; not from a paper.

    words -> MEMMA's state -> a hidden layer -> a template
                           -> pointers -> the entities in it

Shape suffixes:
    B dialogs   M sentences   T turns   C candidates   D features   R turn distances   E entities
    N conditions   S slots and flags   L templates   F features of the hidden layer
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
    make_encoder,
    read_history,
    stored_ids,
)
from colloquy.models.memma import MEMMAConfig, make_shared_encoder, read_memory


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
        reads = ["typed_words", "sentences", "speakers", "times", "turns", "mentions"]
        reads += ["entities", "responses"]
        return reads


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
        speakers = inputs["speakers"]
        turns = inputs["turns"]
        follow = DialogState(c.types, c.entities, c.candidates[0], name="dialog_state")
        slots_and_flags_BTS, conditions_BTNE = follow(**{name: inputs[name] for name in INPUTS})

        # MEMMA's state. A projection of slots and flags is added to the user's sentence.
        num_words = c.vocabulary_size + c.types
        encode = make_shared_encoder(c, num_words)
        U_1_BTD, memory = read_history(c, encode, inputs)
        project = keras.layers.Dense(c.embedding_dim, use_bias=False, name="known")
        U_1_BTD = U_1_BTD + project(ops.cast(slots_and_flags_BTS, U_1_BTD.dtype))
        state_BTD, attention_weights = read_memory(c, speakers, U_1_BTD, memory)

        # The entities
        point = EntityPointer(c.candidate_entities, len(CONDITIONS), name="entity_pointer")
        gain_BTC, _ = point(
            state_BTD,
            memory.sentences_BMD,
            seen=history_mask(speakers, turns, including_turn=True),
            mentions=inputs["mentions"],
            time_vectors=memory.times_RD,
            distances=memory.distances_BTMR,
            conditions=conditions_BTNE,
        )

        # The template, from the user's words and the template of the bot's last sentence, too
        template_C = stored_ids(inputs, "candidate_templates", c.candidates[0])
        bag = make_encoder(c, "template_words", num_words)
        distinct_sentence_BT = ops.take_along_axis(inputs["sentences"], turns, axis=1)
        words_BTD = ops.take(bag(inputs["typed_words"]), distinct_sentence_BT, axis=0)
        last_BT = last_template(speakers, turns, inputs["responses"], template_C)
        logits_BTL = _score_templates(c, state_BTD, words_BTD, slots_and_flags_BTS, last_BT)
        combine = TemplateCandidates(name="template_candidates")
        return combine(logits_BTL, gain_BTC, template_C), attention_weights


def _score_templates(c, state_BTD, words_BTD, slots_and_flags_BTS, last_BT):
    """The logits of templates, float `(B, T, L)`, by one hidden layer.

    `last_BT` is the bot's last template, from 1; 0: none. Slots and flags are read twice: each is a
    feature, and `StateVector` has a vector for all of them together.
    """
    vector_BTD = StateVector(c.embedding_dim, name="state_vector")(slots_and_flags_BTS)
    dtype = state_BTD.dtype
    last_BTL = ops.one_hot(last_BT, 1 + c.templates, dtype=dtype)
    features = [state_BTD, ops.cast(slots_and_flags_BTS, dtype), last_BTL]
    features_BTF = ops.concatenate(features, axis=2)

    project = keras.layers.Dense(c.embedding_dim, name="template_features")
    sum_BTD = dropped(c, words_BTD) + dropped(c, vector_BTD) + project(dropped(c, features_BTF))
    return keras.layers.Dense(c.templates, name="templates")(dropped(c, ops.relu(sum_BTD)))
