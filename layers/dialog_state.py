"""The state of a conversation: what the user wants, what the bot did and what it found.

Shape suffixes:
    B dialogs   T turns   M sentences   K entities of a sentence   E entities, counted from 1
    Y types     C candidates            N conditions               X numbers of a sentence
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from colloquy.layers.candidates import add_ids

INPUTS = ("speakers", "turns", "entities", "responses")
"""Arrays of `tasks.dialog.split.DialogSplit.collate` that it takes."""
USER, BOT, FACT = 1, 2, 3


class State(NamedTuple):
    """What holds after a sentence.

    A *reset* makes the results of earlier searches obsolete: a call of the bot, or a user who
    changes a wish after a call.
    """

    # Of each dialog, bool `(B,)`.
    called: Any
    """The bot has made a call."""
    changed: Any
    """The user has changed a wish since the last call."""
    nothing: Any
    """A search has found nothing since the last reset."""
    silent: Any
    """The user's last turn was silence."""

    # Of each dialog and entity, bool `(B, 1 + E)`.
    wished: Any
    """The user wishes it. Of the entities of one slot, the user wishes one at most."""
    offered: Any
    """It is the restaurant that the bot has named last since the last reset."""
    said: Any
    """Somebody has named it."""
    found: Any
    """A fact, which is a result of a search, has named it since the last reset."""
    told: Any
    """The bot has named it since the last reset."""


FLAGS = ("called", "changed", "found", "nothing", "offered", "silent")
"""The first output for a dialog: fields of `State`. `found` and `offered` mean: some entity is."""
CONDITIONS = ("said", "current", "found", "new", "offered")
"""The second output for an entity. `said` and `found` are fields of `State`; the others are:

    current: The user wishes it.
    new: The bot has not told it.
    offered: It is the restaurant that is offered, or a value that only this restaurant has.
"""


@keras.saving.register_keras_serializable("colloquy")
class DialogState(keras.layers.Layer):
    """Follows conversations, without trained weights.

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
        Bool `(B, T, Y + 6)`: for each type, whether the user wishes a value of it; then `FLAGS`.
        Bool `(B, T, N, 1 + E)`: the `CONDITIONS` that each entity meets.

    The weights are int32 tables, set by `set_weights`:
        is_call_C: 1 for a candidate that is a call.
        slot_E: The number of the entity's type, from 1, if calls have values of this type: a slot.
            Otherwise 0.
        restaurant_E: The entity's own number if it is a restaurant; otherwise 0.
        owner_E: For a value that only one restaurant has, such as its phone, the number of this
            restaurant; otherwise 0.

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
        states = self._follow(speakers, entities, responses)
        at_turn = State(*[_select_turns(array, turns) for array in states])

        is_wished_BTYE = at_turn.wished[:, :, None] & self._is_slot()
        slots_BTY = ops.any(is_wished_BTYE, axis=3)
        # In the order of `FLAGS`.
        flags = [
            at_turn.called,
            at_turn.changed,
            ops.any(at_turn.found, axis=2),
            at_turn.nothing,
            ops.any(at_turn.offered, axis=2),
            at_turn.silent,
        ]
        slots_and_flags = ops.concatenate([slots_BTY, ops.stack(flags, axis=2)], axis=2)

        # Entity 0, which stands for no owner, is never offered.
        with_offer_BTE = ops.take(at_turn.offered, self.owner_E, axis=2)
        # In the order of `CONDITIONS`.
        conditions = [
            at_turn.said,
            at_turn.wished,
            at_turn.found,
            ~at_turn.told,
            at_turn.offered | with_offer_BTE,
        ]
        return slots_and_flags, ops.stack(conditions, axis=2)

    def _is_slot(self):
        """Whether an entity is a value of a slot, bool `(Y, 1 + E)`."""
        slot_Y1 = ops.arange(1, 1 + self.types)[:, None]
        return self.slot_E == slot_Y1

    def _follow(self, speakers, entities, responses):
        """The `State` after each sentence: its arrays are `(M, B)` or `(M, B, 1 + E)`."""
        B = ops.shape(speakers)[0]
        false_B = ops.zeros((B,), "bool")
        false_BE = ops.zeros((B, 1 + self.entities), "bool")
        start = State(
            called=false_B,
            changed=false_B,
            nothing=false_B,
            silent=false_B,
            wished=false_BE,
            offered=false_BE,
            said=false_BE,
            found=false_BE,
            told=false_BE,
        )

        def step(state, sentence_BX):
            state = self._after_sentence(state, sentence_BX)
            return state, state

        # `ops.scan` takes one array: a sentence is a row of its speaker, response and entities.
        sentences_BMX = ops.concatenate(
            [speakers[:, :, None], responses[:, :, None], entities], axis=2
        )
        _, states = ops.scan(step, start, ops.transpose(sentences_BMX, (1, 0, 2)))
        return states

    def _after_sentence(self, state, sentence_BX):
        """The `State` after one more sentence of each dialog."""
        speaker_B = sentence_BX[:, 0]
        response_B = sentence_BX[:, 1]
        is_user_B = speaker_B == USER
        is_bot_B = speaker_B == BOT
        is_fact_B = speaker_B == FACT

        # The sentence names entities.
        position_BE = _positions(sentence_BX[:, 2:], 1 + self.entities)
        named_BE = position_BE > 0
        named_by_bot_BE = named_BE & is_bot_B[:, None]
        named_by_fact_BE = named_BE & is_fact_B[:, None]
        finds_nothing_B = is_fact_B & ~ops.any(named_BE, axis=1)

        # A user's sentence may replace wishes.
        position_by_user_BE = ops.where(is_user_B[:, None], position_BE, 0)
        wished_BE = self._wishes(state.wished, position_by_user_BE)

        # A reset ends what was offered, found and told.
        response_index_B = ops.maximum(response_B - 1, 0)
        is_call_B = ops.take(self.is_call_C, response_index_B) > 0
        calls_B = is_bot_B & (response_B > 0) & is_call_B
        changes_B = state.called & ops.any(wished_BE != state.wished, axis=1)
        keeps_B = ~(calls_B | changes_B)
        keeps_B1 = keeps_B[:, None]

        # If the bot names several restaurants, the offer is the one with the highest number.
        # JAX's `where` does not take a variable.
        restaurant_E = ops.convert_to_tensor(self.restaurant_E)
        offer_B1 = ops.max(ops.where(named_by_bot_BE, restaurant_E, 0), axis=1, keepdims=True)
        is_offer_BE = ops.arange(1 + self.entities) == offer_B1
        return State(
            called=state.called | calls_B,
            changed=(state.changed & ~calls_B) | changes_B,
            nothing=(state.nothing & keeps_B) | finds_nothing_B,
            silent=ops.where(is_user_B, response_B < 0, state.silent),
            wished=wished_BE,
            offered=ops.where(offer_B1 > 0, is_offer_BE, state.offered & keeps_B1),
            said=state.said | named_BE,
            found=(state.found & keeps_B1) | named_by_fact_BE,
            told=(state.told & keeps_B1) | named_by_bot_BE,
        )

    def _wishes(self, wished_BE, position_BE):
        """The user's wishes after a sentence that names entities at these positions.

        The new wish for a slot is the last of its values that was not the wish before: after "rome
        instead of paris" it is rome, if it was paris before. A slot without such a value keeps its
        wish.
        """
        new_BE = ops.where(wished_BE, 0, position_BE)
        last_BY = ops.max(ops.where(self._is_slot(), new_BE[:, None], 0), axis=2)
        # The last position in the slot of each entity; 0 for entities without a slot.
        last_BE = ops.take(ops.pad(last_BY, [(0, 0), (1, 0)]), self.slot_E, axis=1)
        return ops.where(last_BE > 0, new_BE == last_BE, wished_BE)


def _positions(entities_BK, num_entities):
    """The last position of each entity in a sentence, from 1; 0: the sentence does not name it.

    With 4 entities, `[[3, 1, 0]] -> [[0, 2, 0, 1]]`: 0 in a sentence is padding.
    """
    position_K = ops.arange(1, ops.shape(entities_BK)[1] + 1)
    position_BK = ops.where(entities_BK > 0, position_K, 0)
    is_entity_BKE = entities_BK[:, :, None] == ops.arange(num_entities)
    return ops.max(ops.where(is_entity_BKE, position_BK[:, :, None], 0), axis=1)


def _select_turns(array, turns):
    """Selects the sentences `turns`, int `(B, T)`: from `(M, B, ...)` to `(B, T, ...)`."""
    B = ops.shape(turns)[0]
    # Without its two first axes, the array has sentence m of dialog b in row m * B + b.
    rows = ops.reshape(array, (-1, *array.shape[2:]))
    row_BT = turns * B + ops.arange(B)[:, None]
    return ops.take(rows, row_BT, axis=0)
