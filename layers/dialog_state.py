"""The state of a conversation: what the user wants, what the bot did and what it found.

Shape suffixes:
    B dialogs   T turns   M sentences   K entities of a sentence   E entities, counted from 1
    Y types     C candidates            N conditions               F flags, or numbers of a sentence
    D features
"""

import keras
from keras import ops

from colloquy.layers.candidates import add_ids

INPUTS = ("speakers", "turns", "entities", "responses")
"""Arrays of `tasks.dialog.split.DialogSplit.collate` that it takes."""
USER, BOT, FACT = 1, 2, 3
FLAGS = ("called", "changed", "found", "nothing", "offered", "silent")
"""What holds for a dialog at a turn:

    called: The bot has made a call.
    changed: Since then, the user has named another value.
    found, nothing, offered: Since the last call or change, there were facts; there were none; the
        bot named a restaurant.
    silent: The user says nothing.
"""
CONDITIONS = ("said", "current", "found", "new", "offered")
"""What holds for an entity at a turn:

    said: Somebody named it.
    current: It is the user's last wish for its slot.
    found: Since the last call or change, facts name it.
    new: Since the last call or change, the bot did not name it.
    offered: It is the restaurant that the bot named last, or known of this restaurant alone.
"""
DIALOG_STATE = ("called", "changed", "nothing", "silent")
"""What is followed from sentence to sentence, a truth value per dialog."""
ENTITY_STATE = ("wished", "offered", "said", "found", "told")
"""The same, a truth value per dialog and entity. `told`: the bot named it since the last call."""


@keras.saving.register_keras_serializable("colloquy")
class DialogState(keras.layers.Layer):
    """Follows conversations, without trained weights. Slots are the types of entities in calls.

    Args:
        types: Y.
        entities: E.
        candidates: C.

    Call arguments:
        speakers: Int `(B, M)`: 0 padding, 1 user, 2 bot, 3 fact.
        turns: Index of each turn's sentence, int `(B, T)`.
        entities: Entities of each sentence, int `(B, M, K)`, 0 = padding.
        responses: The candidate that a sentence is, from 1; 0: none; -1: silence; int `(B, M)`.

    Returns:
        The slots that the user has named, by type, and `FLAGS`, bool `(B, T, Y + 6)`; and the
        `CONDITIONS` that each entity meets, bool `(B, T, N, 1 + E)`.

    The weights are int32 tables, set by `set_weights`. The first has 1 for each candidate that is a
    call, `(C,)`; the others, `(1 + E,)`, have for each entity its type if that is a slot, from 1;
    itself if it is a restaurant; and the only restaurant that has this value; 0: none.

    After the context features of Williams, Asadi and Zweig (2017), section 2.
    """

    def __init__(self, types, entities, candidates, **kwargs):
        super().__init__(**kwargs)
        self.types = types
        self.entities = entities
        self.candidates = candidates

    def build(self, *_):
        entities_shape = (1 + self.entities,)
        self.is_call_C = add_ids(self, "calls", (self.candidates,))
        self.slot_E = add_ids(self, "slots", entities_shape)
        self.restaurant_E = add_ids(self, "restaurants", entities_shape)
        self.owner_E = add_ids(self, "owners", entities_shape)

    def call(self, speakers, turns, entities, responses):
        slot_of_type_Y1 = ops.arange(1, 1 + self.types)[:, None]
        is_slot_YE = self.slot_E == slot_of_type_Y1
        states = self._follow(speakers, entities, responses, is_slot_YE)
        at_turn = _select_turns(states, turns)

        wished_BTE = at_turn["wished"]
        found_BTE = at_turn["found"]
        offered_BTE = at_turn["offered"]
        slots_BTY = ops.any(wished_BTE[:, :, None] & is_slot_YE, axis=3)
        flags = {
            "called": at_turn["called"],
            "changed": at_turn["changed"],
            "found": ops.any(found_BTE, axis=2),
            "nothing": at_turn["nothing"],
            "offered": ops.any(offered_BTE, axis=2),
            "silent": at_turn["silent"],
        }
        flags_BTF = ops.stack([flags[name] for name in FLAGS], axis=2)

        # A value that only the offered restaurant has, such as its phone, is offered with it.
        with_offer_BTE = ops.take(offered_BTE, self.owner_E, axis=2)
        conditions = {
            "said": at_turn["said"],
            "current": wished_BTE,
            "found": found_BTE,
            "new": ~at_turn["told"],
            "offered": offered_BTE | with_offer_BTE,
        }
        conditions_BTNE = ops.stack([conditions[name] for name in CONDITIONS], axis=2)
        return ops.concatenate([slots_BTY, flags_BTF], axis=2), conditions_BTNE

    def _follow(self, speakers, entities, responses, is_slot_YE):
        """Returns the states after each sentence, `{name: (M, B) or (M, B, 1 + E)}`."""
        B = ops.shape(speakers)[0]
        state = {}
        for name in DIALOG_STATE:
            state[name] = ops.zeros((B,), "bool")
        for name in ENTITY_STATE:
            state[name] = ops.zeros((B, 1 + self.entities), "bool")
        tables = {
            "is_call_C": ops.convert_to_tensor(self.is_call_C),
            "slot_E": ops.convert_to_tensor(self.slot_E),
            "is_slot_YE": is_slot_YE,
            "restaurant_E": ops.convert_to_tensor(self.restaurant_E),
        }

        # `ops.scan` takes one array: each sentence is a row of speaker, response, entities.
        columns = [speakers[:, :, None], responses[:, :, None], entities]
        sentences_BMF = ops.concatenate(columns, axis=2)

        def step(state, sentence_BF):
            state = _after_sentence(state, sentence_BF, **tables)
            return state, state

        _, states = ops.scan(step, state, ops.transpose(sentences_BMF, (1, 0, 2)))
        return states


def _after_sentence(state, sentence_BF, is_call_C, slot_E, is_slot_YE, restaurant_E):
    """Returns the state after one more sentence of each dialog.

    `sentence_BF` is its speaker, response and entities, int `(B, 2 + K)`.
    """
    speaker_B = sentence_BF[:, 0]
    response_B = sentence_BF[:, 1]
    entities_BK = sentence_BF[:, 2:]
    is_user_B = speaker_B == USER
    is_bot_B = speaker_B == BOT
    is_fact_B = speaker_B == FACT
    id_E = ops.arange(restaurant_E.shape[0])

    # The position of each entity in the sentence, from 1; 0: not named. Entity 0 is padding.
    position_K1 = ops.arange(1, ops.shape(entities_BK)[1] + 1)[:, None]
    position_BKE = ops.where(entities_BK[:, :, None] == id_E, position_K1, 0)
    is_entity_E = ops.cast(id_E > 0, "int32")
    position_BE = ops.max(position_BKE, axis=1) * is_entity_E
    named_BE = position_BE > 0

    # The user's wish for a slot is the last value that differs, as in "rome instead of paris".
    is_other_BE = is_user_B[:, None] & ~state["wished"]
    other_BE = ops.where(is_other_BE, position_BE, 0)
    last_BY = ops.max(ops.where(is_slot_YE, other_BE[:, None], 0), axis=2)
    last_BE = ops.take(ops.pad(last_BY, [[0, 0], [1, 0]]), slot_E, axis=1)
    wished_BE = ops.where(last_BE > 0, other_BE == last_BE, state["wished"])

    # A call, or another wish after it, makes earlier facts and offers obsolete.
    is_call_B = ops.take(is_call_C, ops.maximum(response_B - 1, 0)) > 0
    calls_B = is_bot_B & (response_B > 0) & is_call_B
    changes_B = state["called"] & ops.any(wished_BE != state["wished"], axis=1)
    stays_B = ~(calls_B | changes_B)
    stays_B1 = stays_B[:, None]

    named_by_bot_BE = named_BE & is_bot_B[:, None]
    named_by_fact_BE = named_BE & is_fact_B[:, None]
    is_empty_fact_B = is_fact_B & ~ops.any(named_BE, axis=1)
    offer_B1 = ops.max(ops.where(named_by_bot_BE, restaurant_E, 0), axis=1, keepdims=True)
    return {
        "called": state["called"] | calls_B,
        "changed": (state["changed"] & ~calls_B) | changes_B,
        "nothing": (state["nothing"] & stays_B) | is_empty_fact_B,
        "silent": ops.where(is_user_B, response_B < 0, state["silent"]),
        "wished": wished_BE,
        "offered": ops.where(offer_B1 > 0, id_E == offer_B1, state["offered"] & stays_B1),
        "said": state["said"] | named_BE,
        "found": (state["found"] & stays_B1) | named_by_fact_BE,
        "told": (state["told"] & stays_B1) | named_by_bot_BE,
    }


def _select_turns(states, turns):
    """Selects the states at `turns`, int `(B, T)`: `{name: (B, T) or (B, T, 1 + E)}`."""
    B = ops.shape(turns)[0]
    row_BT = turns * B + ops.arange(B)[:, None]
    at_turn = {}
    for name, state in states.items():
        flat = ops.reshape(state, (-1, *state.shape[2:]))
        at_turn[name] = ops.take(flat, row_BT, axis=0)
    return at_turn


@keras.saving.register_keras_serializable("colloquy")
class StateVector(keras.layers.Layer):
    """A learnt vector for each combination of slots and flags.

    Combinations are numbered by a hash, so a few of them share a vector.

    Args:
        dimension: D.

    Call arguments:
        known: Bool `(..., F)`.

    Returns:
        Float `(..., D)`. A combination that is not in training has zeros.
    """

    VECTORS = 4096

    def __init__(self, dimension, **kwargs):
        super().__init__(**kwargs)
        self.dimension = dimension

    def build(self, known_shape):
        self.vectors = self.add_weight(
            name="vectors", shape=(self.VECTORS, self.dimension), initializer="zeros"
        )
        self.power_F = [3**place % 8191 for place in range(known_shape[-1])]

    def call(self, known):
        powers = ops.cast(known, "int32") * ops.array(self.power_F, "int32")
        number = ops.sum(powers, axis=-1) % self.VECTORS
        # A product with 1 makes the gradient of the table dense, see `layers.word_embedding`.
        vectors = ops.multiply(self.vectors, ops.ones((), dtype=self.vectors.dtype))
        return ops.cast(ops.take(vectors, number, axis=0), self.compute_dtype)
