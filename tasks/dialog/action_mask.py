"""The action mask: leaves out responses that no training dialog shows in the state of a conversation.

After Williams, Asadi and Zweig (2017), but learnt: a template, a response with types in place of entities, is allowed
in the states in which train has it, and its entities must meet the conditions that they always meet in train. A state
consists of the slots that the user has named and of `FLAGS`.

Shape suffixes:
    B dialogs   T turns   M sentences   K entities of a sentence or candidate   E entities, counted from 1   S slots
    C candidates   Q states   N conditions
"""

import collections
from typing import Literal

import keras
import numpy as np
from keras import ops

from base.config import Config
from data.prepared import checked
from data.sequences import stack
from data.text_files import read_json
from tasks.dialog.prepare import CALL, RESTAURANT, SPEAKERS

FILE = "action_mask.json"
READS = ("speakers", "turns", "entities", "responses")
"""Arrays of `tasks.dialog.data.DialogSplit.collate` that the mask reads."""
FLAGS = ("called", "changed", "found", "nothing", "offered", "silent")
"""The bot has called; the user named another value since; facts, a search without result, or a restaurant that the bot
named, since the last call or change; the user is silent."""
CONDITIONS = ("said", "current", "found", "new", "offered")
"""Somebody named the entity; it is the user's last wish for its slot; since the last call or change, facts name it, or
the bot did not; it is the restaurant that the bot named last, or known of this restaurant alone."""


class Rules(Config):
    """The contents of `action_mask.json`, learnt from train."""

    templates: list[str]
    """Responses with types in place of entities."""
    states: dict[str, list[int]]
    """Names of a state's slots and flags, separated by spaces -> numbers of the templates that train shows in it."""
    conditions: list[dict[str, list[Literal[CONDITIONS]]]]
    """For each template: type -> conditions that its entities of this type always meet."""
    continues: list[int]
    """Templates after which users are mostly silent."""


class StateTracker(keras.Model):
    """Tracks conversations.

    Args:
        world: A `tasks.dialog.data.World`.

    Call arguments: a dict of the arrays `READS`.

    Returns:
        The state of each turn, int32 `(B, T)`, whose bit `i` is `names[i]`; and for each of `CONDITIONS` the entities
        that meet it, bool `(B, T, E)`.
    """

    def __init__(self, world):
        super().__init__()
        entities = world.encoded_candidates.entities.lists()
        self.types = [None, *(type for _, type, _ in world.entities)]
        calls = [number for number, text in enumerate(world.candidates) if text.startswith(CALL)]
        self.slots = sorted({self.types[entity] for call in calls for entity in entities[call]})
        self.names = [*self.slots, *FLAGS]
        self.is_call_C = np.isin(np.arange(len(entities)), calls)
        slots = [self.slots.index(type) if type in self.slots else -1 for type in self.types]
        restaurants = [(type == RESTAURANT) * id for id, type in enumerate(self.types)]
        self.slot_E, self.restaurant_E = np.array(slots, np.int32), np.array(restaurants, np.int32)
        self.owner_E = _owners(world)

    def call(self, inputs):
        speakers, turns, entities, responses = (ops.cast(inputs[name], "int32") for name in READS)
        (B, M), E = ops.shape(speakers), len(self.types)
        start = {"values": ops.zeros((B, len(self.slots)), "int32"), "offer": ops.zeros((B,), "int32")}
        start |= {name: ops.zeros((B,), "bool") for name in ("called", "changed", "nothing", "silent")}
        start |= {name: ops.zeros((B, E), "bool") for name in ("said", "found", "told")}
        sentences = ops.concatenate([speakers[:, :, None], responses[:, :, None], entities], axis=2)
        _, heard = ops.scan(
            self._hear, start, ops.transpose(sentences, (1, 0, 2))
        )  # one array: Keras needs M of several
        places = turns * B + ops.arange(B)[:, None]
        at = {name: ops.take(ops.reshape(x, (M * B, *x.shape[2:])), places, axis=0) for name, x in heard.items()}
        ids, offer = np.arange(E), at["offer"][:, :, None]
        wished = ops.take(at["values"], np.maximum(self.slot_E, 0), axis=2)
        conditions = {
            "said": at["said"],
            "current": (self.slot_E >= 0) & (wished == ids),
            "found": at["found"],
            "new": ~at["told"],
            "offered": (offer > 0) & ((offer == ids) | (offer == self.owner_E)),
        }
        at |= {"found": ops.any(at["found"], axis=2), "offered": at["offer"] > 0}
        bits = [*(at["values"][:, :, slot] > 0 for slot in range(len(self.slots))), *(at[name] for name in FLAGS)]
        state = sum(ops.cast(bit, "int32") * (1 << i) for i, bit in enumerate(bits))
        return state, [conditions[name] for name in CONDITIONS]

    def _hear(self, state, sentence):
        """The state after one more sentence of each dialog: its speaker, response and entities, int `(B, 2 + K)`."""
        speaker, response, entities_BK = sentence[:, 0], sentence[:, 1], sentence[:, 2:]
        user, bot, fact = (speaker == SPEAKERS[name] for name in ("user", "bot", "fact"))
        named_BE = ops.any(entities_BK[:, :, None] == np.arange(1, len(self.types)), axis=1)
        named_BE = ops.pad(named_BE, [[0, 0], [1, 0]])
        values = self._wish(state["values"], ops.where(user[:, None], entities_BK, 0))
        calls = bot & (response > 0) & ops.take(self.is_call_C, ops.maximum(response - 1, 0))
        changes = state["called"] & ops.any(values != state["values"], axis=1)
        stays = ~(calls | changes)
        restaurant = ops.where(bot, ops.max(ops.take(self.restaurant_E, entities_BK), axis=1), 0)
        after = {
            "values": values,
            "offer": ops.where(restaurant > 0, restaurant, ops.where(stays, state["offer"], 0)),
            "called": state["called"] | calls,
            "changed": (state["changed"] & ~calls) | changes,
            "nothing": (state["nothing"] & stays) | (fact & ~ops.any(named_BE, axis=1)),
            "silent": ops.where(user, response < 0, state["silent"]),
            "said": state["said"] | named_BE,
            "found": (state["found"] & stays[:, None]) | (named_BE & fact[:, None]),
            "told": (state["told"] & stays[:, None]) | (named_BE & bot[:, None]),
        }
        return after, after

    def _wish(self, values_BS, entities_BK):
        """The user's wishes after a sentence: the last value that differs, as in "rome instead of paris"."""
        order, slot_BK, found = ops.arange(1, ops.shape(entities_BK)[1] + 1), ops.take(self.slot_E, entities_BK), []
        for slot in range(len(self.slots)):
            value = values_BS[:, slot]
            place = ops.max(ops.where((slot_BK == slot) & (entities_BK != value[:, None]), order, 0), axis=1)
            other = ops.take_along_axis(entities_BK, ops.maximum(place - 1, 0)[:, None], axis=1)[:, 0]
            found.append(ops.where(place > 0, other, value))
        return ops.stack(found, axis=1) if found else values_BS


class ActionMask(keras.Model):
    """Finds the candidates that may follow a conversation.

    Args:
        world: A `tasks.dialog.data.World`.
        rules: A `Rules`; a `LookupError` if it does not fit the world.

    Call arguments: a dict of the arrays `READS`.

    Returns:
        The candidates that may be given at each turn, bool `(B, T, C)`.
    """

    def __init__(self, world, rules):
        super().__init__()
        self.tracker = StateTracker(world)
        self.entities_CK = stack(world.encoded_candidates.entities.lists())
        numbers = {template: number for number, template in enumerate(rules.templates)}
        template_C = np.array([numbers.get(world.template(text), -1) for text in world.candidates])
        shown_QL = np.zeros((len(rules.states), len(numbers) + 1), bool)  # the last: templates that train lacks
        for row, shown in zip(shown_QL, rules.states.values(), strict=True):
            row[shown] = True
        states = [sum(1 << self.tracker.names.index(name) for name in state.split()) for state in rules.states]
        self.state_Q, self.shown_QC = np.array(states, np.int32), shown_QL[:, template_C]
        self.needs_NCK = np.zeros((len(CONDITIONS), *self.entities_CK.shape), bool)
        for c, k in zip(*np.nonzero((template_C >= 0)[:, None] * self.entities_CK), strict=True):
            needed = rules.conditions[template_C[c]].get(self.tracker.types[self.entities_CK[c, k]], ())
            self.needs_NCK[:, c, k] = [name in needed for name in CONDITIONS]
        self.continues_C = np.isin(template_C, rules.continues)

    def call(self, inputs):
        state, conditions = self.tracker(inputs)
        same = ops.cast(state[:, :, None] == self.state_Q, "float32")
        allowed = ops.matmul(same, self.shown_QC.astype("float32")) > 0
        for needs_CK, met_BTE in zip(self.needs_NCK, conditions, strict=True):
            for needs_C, entity_C in zip(needs_CK.T, self.entities_CK.T, strict=True):
                if needs_C.any():
                    allowed &= ops.take(met_BTE, entity_C, axis=2) | ~needs_C
        return allowed


def load_mask(path, world):
    """The `ActionMask` of a run, `None` if it has none; a file that does not fit the world is a `UserError`."""
    file = path / FILE
    if not file.is_file():
        return None
    with checked(file, "rules that training learnt for this run"):
        return ActionMask(world, Rules.model_validate(read_json(file)))


def _owners(world):
    """For each entity the restaurant with a fact that has this value, 0 unless it is the only one; int32 `(E,)`."""
    number = {name: id for id, (name, _, source) in enumerate(world.entities, 1) if source == "subjects"}
    subjects = collections.defaultdict(set)
    for subject, _, value in world.knowledge:
        subjects[value].add(number.get(subject, 0))
    known = [subjects[name] for name, _, _ in world.entities]
    return np.array([0, *(min(each) if len(each) == 1 else 0 for each in known)], np.int32)


def learn(world, split, batch_size=32):
    """Learns the `Rules` from a `tasks.dialog.data.DialogSplit`, train."""
    tracker, entities = StateTracker(world), world.encoded_candidates.entities.lists()
    templates, template_C = np.unique([world.template(text) for text in world.candidates], return_inverse=True)
    states, conditions = collections.defaultdict(set), [{} for _ in templates]
    silences, silent = np.zeros(len(templates), int), tracker.names.index("silent")
    for start in range(0, len(split), batch_size):
        inputs, answers = split.collate(range(start, min(start + batch_size, len(split))), READS)
        state_BT, met = tracker.predict_on_batch(inputs)
        for b, t in zip(*np.nonzero(answers >= 0), strict=True):
            answer = answers[b, t]
            states[int(state_BT[b, t])].add(int(template_C[answer]))
            for entity in entities[answer]:
                known = conditions[template_C[answer]].setdefault(tracker.types[entity], np.ones(len(CONDITIONS), bool))
                known &= [met_BTE[b, t, entity] for met_BTE in met]
            if t:
                silences[template_C[answers[b, t - 1]]] += 1 if state_BT[b, t] >> silent & 1 else -1
    return Rules(
        templates=templates.tolist(),
        states={
            " ".join(name for i, name in enumerate(tracker.names) if state >> i & 1): sorted(shown)
            for state, shown in sorted(states.items())
        },
        conditions=[
            {type: [name for name, always in zip(CONDITIONS, met, strict=True) if always] for type, met in of.items()}
            for of in conditions
        ],
        continues=np.flatnonzero(silences > 0).tolist(),
    )
