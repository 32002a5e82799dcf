"""The state of a conversation about entities: what the user wants, what the bot did and what it
found.

Shape suffixes:
    B dialogs   T turns   M sentences   K entities of a sentence   E entities, counted from 1   Y
    types   C candidates N conditions
"""

import functools

import keras
from keras import ops

READS = ("speakers", "turns", "entities", "responses")
"""Arrays of `tasks.dialog.split.DialogSplit.collate` that it takes."""
USER, BOT, FACT = 1, 2, 3
FLAGS = ("called", "changed", "found", "nothing", "offered", "silent")
"""The bot has called; the user named another value since; facts, a search without result, or a
restaurant that the bot named, since the last call or change; the user is silent."""
CONDITIONS = ("said", "current", "found", "new", "offered")
"""Somebody named the entity; it is the user's last wish for its slot; since the last call or
change, facts name it, or the bot did not; it is the restaurant that the bot named last, or known of
this restaurant alone."""


@keras.saving.register_keras_serializable("colloquy")
class DialogState(keras.layers.Layer):
    """Follows conversations. Slots are the types of entities that calls name. Nothing in it is
    trained.

    Args:
        types: Y.
        entities: E.
        candidates: C.

    Call arguments:
        speakers: Int `(B, M)`: 0 padding, 1 user, 2 bot, 3 fact.
        turns: Place of each turn's sentence, int `(B, T)`.
        entities: Of each sentence, int `(B, M, K)`, 0 = padding.
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
        self.types, self.entities, self.candidates = types, entities, candidates

    def build(self, *_):
        def table(name, size):
            return self.add_weight(
                name=name, shape=(size,), dtype="int32", initializer="zeros", trainable=False
            )

        self.is_call_C = table("calls", self.candidates)
        self.slot_E = table("slots", 1 + self.entities)
        self.restaurant_E = table("restaurants", 1 + self.entities)
        self.owner_E = table("owners", 1 + self.entities)

    def call(self, speakers, turns, entities, responses):
        B, M = ops.shape(speakers)
        flags, sets = (
            ("called", "changed", "nothing", "silent"),
            ("wished", "offered", "said", "found", "told"),
        )
        start = {name: ops.zeros((B,), "bool") for name in flags}
        start |= {name: ops.zeros((B, 1 + self.entities), "bool") for name in sets}
        sentences = ops.concatenate([speakers[:, :, None], responses[:, :, None], entities], axis=2)
        slot_E, is_slot_YE = (
            ops.convert_to_tensor(self.slot_E),
            self.slot_E == ops.arange(1, 1 + self.types)[:, None],
        )
        tables = (
            ops.convert_to_tensor(self.is_call_C),
            slot_E,
            is_slot_YE,
            ops.convert_to_tensor(self.restaurant_E),
        )
        hear = functools.partial(_hear, *tables)
        # Keras needs M of several arrays
        _, heard = ops.scan(hear, start, ops.transpose(sentences, (1, 0, 2)))
        places = turns * B + ops.arange(B)[:, None]
        at = {
            name: ops.take(ops.reshape(x, (M * B, *x.shape[2:])), places, axis=0)
            for name, x in heard.items()
        }
        offered = at["offered"] | ops.take(at["offered"], self.owner_E, axis=2)
        conditions = [at["said"], at["wished"], at["found"], ~at["told"], offered]
        at |= {name: ops.any(at[name], axis=2) for name in ("found", "offered")}
        slots_BTY = ops.any(at["wished"][:, :, None] & is_slot_YE, axis=3)
        flags_BTF = ops.stack([at[name] for name in FLAGS], axis=2)
        return ops.concatenate([slots_BTY, flags_BTF], axis=2), ops.stack(conditions, axis=2)


def _hear(is_call_C, slot_E, is_slot_YE, restaurant_E, state, sentence):
    """The state after one more sentence of each dialog: its speaker, response and entities, int
    `(B, 2 + K)`.
    """
    speaker, response, entities_BK = sentence[:, 0], sentence[:, 1], sentence[:, 2:]
    user, bot, fact = (speaker[:, None] == who for who in (USER, BOT, FACT))
    order_K1 = ops.arange(1, ops.shape(entities_BK)[1] + 1)[:, None]
    id_E = ops.arange(restaurant_E.shape[0])
    place_BE = ops.max(ops.where(entities_BK[:, :, None] == id_E, order_K1, 0), axis=1) * ops.cast(
        id_E > 0, "int32"
    )
    named_BE = place_BE > 0
    # The user's wish for a slot is the last value that differs, as in "rome instead of paris"
    other_BE, wished_BE = ops.where(user & ~state["wished"], place_BE, 0), state["wished"]
    last_BY = ops.max(ops.where(is_slot_YE, other_BE[:, None], 0), axis=2)
    last_BE = ops.take(ops.pad(last_BY, [[0, 0], [1, 0]]), slot_E, axis=1)
    wished_BE = ops.where(last_BE > 0, other_BE == last_BE, wished_BE)
    calls = bot[:, 0] & (response > 0) & (ops.take(is_call_C, ops.maximum(response - 1, 0)) > 0)
    changes = state["called"] & ops.any(wished_BE != state["wished"], axis=1)
    stays = ~(calls | changes)
    offer_B1 = ops.max(ops.where(named_BE & bot, restaurant_E, 0), axis=1, keepdims=True)
    after = {
        "called": state["called"] | calls,
        "changed": (state["changed"] & ~calls) | changes,
        "nothing": (state["nothing"] & stays) | (fact[:, 0] & ~ops.any(named_BE, axis=1)),
        "silent": ops.where(user[:, 0], response < 0, state["silent"]),
        "wished": wished_BE,
        "offered": ops.where(offer_B1 > 0, id_E == offer_B1, state["offered"] & stays[:, None]),
        "said": state["said"] | named_BE,
        "found": (state["found"] & stays[:, None]) | (named_BE & fact),
        "told": (state["told"] & stays[:, None]) | (named_BE & bot),
    }
    return after, after
