"""MEMMA, a memory network with multi-head attention, and its extension to entities, EntityMEMMA.

Ren, Yang, Kong and Zuo, "Memory Network with Multi-Head Attention for Chatbot", Computer Systems &
Applications 2019, 28(9):

    words -> sums of word vectors and positions -> S hops of multi-head attention over the history,
    joined by gated shortcuts -> user's vector + last hop, times every candidate's vector

Shape suffixes:
    B dialogs   M sentences   T turns   C candidates   D features   H heads   R turn distances
    E entities   N conditions   S slots and flags   L templates

Not stated in the paper, and decided here: how a sentence becomes a vector (the sum of its words',
as in MemN2N, or another `encoding`), heads and hops.
"""

from typing import Literal

import keras
from keras import ops
from pydantic import model_validator

from colloquy.base.config import Positive
from colloquy.layers.candidates import IdTable
from colloquy.layers.dialog_history import causal_mask, history_mask
from colloquy.layers.dialog_state import CONDITIONS, INPUTS, DialogState
from colloquy.layers.entity_pointer import EntityPointer
from colloquy.layers.memory_attention import MemoryAttention
from colloquy.layers.shortcut import Shortcut
from colloquy.layers.state_vector import StateVector
from colloquy.layers.templates import TemplateCandidates, last_template
from colloquy.models.dialog_memory import (
    DialogModel,
    SumConfig,
    dropped,
    encoded_words,
    read_history,
    score_candidates,
)


class MEMMAConfig(SumConfig):
    """Settings of MEMMA; the defaults are the paper's where it states them. `hops` is its `S`."""

    positions: Literal["interleaved", "halves", "none"] = "interleaved"
    """Sinusoids added to the word vectors: `interleaved`, the article's (eq. 6 to 8), `halves`,
    ours (`layers.bag_of_words`), or `none`. In a sum they tell only a sentence's length; with
    `encoding=attention` they tell the order of its words. `encoding=position` does not read them.
    """
    scale_words: bool = False
    """Word vectors are multiplied by the root of `embedding_dim`, as in Vaswani et al. 2017,
    section 3.4, so that the article's sinusoids do not outweigh them; the article does not say."""
    heads: Positive = 4
    """`h`, divides `embedding_dim`."""
    divisor: Literal["dimension", "root"] = "dimension"
    """Attention logits are divided by `d_model` (`dimension`, eq. 9) or by its `root`."""
    shortcut: Literal["gated", "identity", "none"] = "gated"
    """`gated` (eq. 13), `identity` (eq. 12) or `none`."""
    gate: Literal["tanh", "sigmoid"] = "tanh"
    """Activation of the gate: the article's `tanh`, or a `sigmoid` as in highway networks."""
    memory: Literal["sentences", "latest"] = "sentences"
    """Memory of a hop: the `sentences` of the history; or, from the second hop on, the `latest`
    result of attention over the history, one reading of the article's section 1: each sentence goes
    through the hop before as the user's does, over the sentences up to itself, without their
    distances in time."""

    @model_validator(mode="after")
    def _check_heads(self):
        if self.embedding_dim % self.heads:
            raise ValueError(
                "heads must divide embedding_dim. "
                f"Received: heads={self.heads}, embedding_dim={self.embedding_dim}"
            )
        return self


@keras.saving.register_keras_serializable("colloquy")
class MEMMA(DialogModel):
    """See `models.dialog_memory.DialogModel` for inputs and outputs."""

    Config = MEMMAConfig

    @staticmethod
    def equations(c, inputs):
        # One matrix E for user, history and candidates (eq. 5 to 8)
        E = _shared_words(c)
        state_BTD, attention_weights, _ = _read_memory(c, inputs, E)
        return score_candidates(c, state_BTD, E, inputs), attention_weights


def _shared_words(c, words=None):
    """The layer from a sentence's words to its vector, see `models.dialog_memory.encoded_words`."""
    scale = c.embedding_dim**0.5 if c.scale_words else 1.0
    return encoded_words(c, "bag_of_words", c.encoding, c.positions, words, c.heads, scale)


def _read_memory(c, inputs, E, known_BTS=None):
    """The equations of MEMMA up to the state that candidates are multiplied with.

    Returns:
        The state, `(B, T, D)`.
        The attention weights of each hop, `(B, H, T, M)`.
        The memory, see `models.dialog_memory.read_history`.
    """
    U_1_BTD, memory = read_history(c, E, inputs)
    if known_BTS is not None:
        project = keras.layers.Dense(c.embedding_dim, use_bias=False, name="known")
        U_1_BTD = U_1_BTD + project(ops.cast(known_BTS, U_1_BTD.dtype))

    # Hops (eq. 9 to 14)
    divisor = c.embedding_dim ** {"dimension": 1.0, "root": 0.5}[c.divisor]
    u_BTD = U_1_BTD
    attention_weights = []
    m_BMD, *features = memory
    for s in range(c.hops):
        attend = MemoryAttention(c.heads, divisor=divisor, name=f"attention_{s}")
        join = Shortcut(c.shortcut, c.gate, name=f"shortcut_{s}")
        o_BTD, a_BHTM = attend(u_BTD, m_BMD, *features)
        u_BTD = join(o_BTD, u_BTD)
        if c.memory == "latest":
            o_BMD, _ = attend(m_BMD, m_BMD, causal_mask(inputs["speakers"]))
            m_BMD = join(o_BMD, m_BMD)
        attention_weights.append(a_BHTM)

    # Response (eq. 15): softmax((U_1 + U_S) C)
    state_BTD = U_1_BTD + u_BTD if c.hops else U_1_BTD
    return state_BTD, attention_weights, memory


# === An extension, not from a paper ===


class EntityMEMMAConfig(MEMMAConfig):
    """Settings of EntityMEMMA."""

    templates: Positive
    """Number of templates of the candidates, L. `train.py` takes it from the prepared dataset."""
    positions: Literal["interleaved", "halves", "none"] = "none"
    """Sinusoids added to the word vectors; see `MEMMAConfig`."""
    speaker: Literal[True] = True
    """Always `True`."""
    time: Literal[True] = True
    """Always `True`."""
    match_types: Literal[False] = False
    """Always `False`: the pointers include them."""

    @property
    def reads(self):
        arrays = ["typed_words", "sentences", "speakers", "times", "turns", "mentions"]
        return [*arrays, "entities", "responses"]


@keras.saving.register_keras_serializable("colloquy")
class EntityMEMMA(DialogModel):
    """MEMMA that chooses a template, and points at the entities that are named in it.

    typed words -> MEMMA's state -> a hidden layer -> a template
                                 -> pointers -> the entities in it

    A word that is a value of an open type of the knowledge base (a place, a restaurant, a phone
    number) is read as its type. A template is a candidate with types in place of all its entities.
    The hidden layer also reads the user's words, the state of the conversation
    (`layers.dialog_state`) and the template that the bot used last. A pointer
    (`layers.entity_pointer`) tells the candidates of one template apart: MEMMA's state weighs the
    sentences of the history, and so the entities in them. No rule of the dialogs is written down:
    that the best rated restaurant not yet refused comes next, or that the last cuisine wished for
    counts, is learnt.

    Which words are entities comes from the knowledge base alone
    (`tasks.dialog.entities.find_entities`).
    """

    Config = EntityMEMMAConfig

    @staticmethod
    def equations(c, inputs):
        follow = DialogState(c.types, c.entities, c.candidates[0], name="dialog_state")
        known_BTS, conditions_BTNE = follow(**{name: inputs[name] for name in INPUTS})

        # The entities
        words = c.vocabulary_size + c.types
        E = _shared_words(c, words)
        state_BTD, attention_weights, memory = _read_memory(c, inputs, E, known_BTS)
        memory_BMD, _, time_RD, distances_BTMR = memory
        seen_BTM = history_mask(inputs["speakers"], inputs["turns"], including_turn=True)
        point = EntityPointer(c.candidate_entities, len(CONDITIONS), name="entity_pointer")
        gain_BTC, _ = point(
            state_BTD,
            memory_BMD,
            seen_BTM,
            inputs["mentions"],
            time_RD,
            distances_BTMR,
            conditions_BTNE,
        )

        # The template
        template_C = IdTable(c.candidates[:1], name="candidate_templates")(inputs["turns"])
        template_logits_BTL = _score_templates(c, inputs, words, state_BTD, known_BTS, template_C)
        combine = TemplateCandidates(name="template_candidates")
        return combine(template_logits_BTL, gain_BTC, template_C), attention_weights


def _score_templates(c, inputs, words, state_BTD, known_BTS, template_C):
    """The logits of templates, float `(B, T, L)`."""
    D = c.embedding_dim
    bag = encoded_words(c, "template_words", words=words)
    sentence_BT = ops.take_along_axis(inputs["sentences"], inputs["turns"], axis=1)
    user_BTD = ops.take(bag(inputs["typed_words"]), sentence_BT, axis=0)

    # Slots and flags count one by one, and as a whole.
    whole_BTD = StateVector(D, name="state_vector")(known_BTS)
    each_BTS = ops.cast(known_BTS, state_BTD.dtype)

    arrays = [inputs[name] for name in ("speakers", "turns", "responses")]
    last_BT = last_template(*arrays, template_C)
    last_BTL = ops.one_hot(last_BT, 1 + c.templates, dtype=state_BTD.dtype)

    features = ops.concatenate([state_BTD, each_BTS, last_BTL], axis=2)
    project = keras.layers.Dense(D, name="template_features")
    sum_BTD = dropped(c, user_BTD) + dropped(c, whole_BTD) + project(dropped(c, features))
    return keras.layers.Dense(c.templates, name="templates")(dropped(c, ops.relu(sum_BTD)))
