"""The action mask: leaves out responses that no training dialog shows in the state of a conversation.

After Williams, Asadi and Zweig (2017), but learnt: a template, a response with types in place of entities, is allowed
in the states in which train has it, and its entities must meet the conditions that they always meet in train. A state
consists of the slots that the user has named and of `FLAGS`.

Shape suffixes:  B dialogs   T turns   M sentences   K entities of a sentence or candidate   S slots   C candidates
    E entities, counted from 1   Q states   N conditions
"""

import collections
import itertools
from typing import Literal

import keras
import numpy as np
from keras import ops

from base.config import Config
from data.prepared import checked
from data.text_files import read_json
from tasks.dialog.prepare import CALL, RESTAURANT, SPEAKERS

FILE = "action_mask.json"
READS = ("speakers", "turns", "entities", "responses")  # arrays of `DialogSplit.collate` that the mask reads
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
    """Tracks conversations in a `tasks.dialog.data.World`, from a dict of the arrays `READS`.

    Returns the state of each turn, int32 `(B, T)`, whose bit `i` is `names[i]`; and for each of `CONDITIONS` the
    entities that meet it, bool `(B, T, E)`.
    """

    def __init__(self, world):
        super().__init__()
        entities = world.encoded_candidates.entities.lists()
        self.types = [None, *(type for _, type, _ in world.entities)]
        self.is_call_C = np.array([text.startswith(CALL) for text in world.candidates])
        calls = itertools.compress(entities, self.is_call_C)
        slots = sorted({self.types[entity] for called in calls for entity in called})
        self.names = [*slots, *FLAGS]
        self.id_E = np.array([-1, *range(1, len(self.types))], np.int32)  # 0 is padding
        self.slot_SE = [np.array([type == slot for type in self.types]) for slot in slots]
        self.restaurant_E = np.where([type == RESTAURANT for type in self.types], self.id_E, 0)
        self.owner_E = _owners(world)

    def call(self, inputs):
        speakers, turns, entities, responses = (ops.cast(inputs[name], "int32") for name in READS)
        B, M = ops.shape(speakers)
        flags, sets = ("called", "changed", "nothing", "silent"), ("wished", "offered", "said", "found", "told")
        start = {name: ops.zeros((B,), "bool") for name in flags}
        start |= {name: ops.zeros((B, len(self.types)), "bool") for name in sets}
        sentences = ops.concatenate([speakers[:, :, None], responses[:, :, None], entities], axis=2)
        _, heard = ops.scan(self._hear, start, ops.transpose(sentences, (1, 0, 2)))  # Keras needs M of several arrays
        places = turns * B + ops.arange(B)[:, None]
        at = {name: ops.take(ops.reshape(x, (M * B, *x.shape[2:])), places, axis=0) for name, x in heard.items()}
        offered = at["offered"] | ops.take(at["offered"], self.owner_E, axis=2)
        conditions = [at["said"], at["wished"], at["found"], ~at["told"], offered]
        at |= {name: ops.any(at[name], axis=2) for name in ("found", "offered")}
        bits = [ops.any(ops.logical_and(at["wished"], slot_E), axis=2) for slot_E in self.slot_SE]
        bits += [at[name] for name in FLAGS]
        return sum(ops.cast(bit, "int32") * (1 << i) for i, bit in enumerate(bits)), conditions

    def _hear(self, state, sentence):
        """The state after one more sentence of each dialog: its speaker, response and entities, int `(B, 2 + K)`."""
        speaker, response, entities_BK = sentence[:, 0], sentence[:, 1], sentence[:, 2:]
        user, bot, fact = (speaker[:, None] == SPEAKERS[name] for name in ("user", "bot", "fact"))
        order_K1 = ops.arange(1, ops.shape(entities_BK)[1] + 1)[:, None]
        place_BE = ops.max(ops.where(entities_BK[:, :, None] == self.id_E, order_K1, 0), axis=1)
        named_BE = place_BE > 0
        # The user's wish for a slot is the last value that differs, as in "rome instead of paris"
        other_BE, wished_BE = ops.where(user & ~state["wished"], place_BE, 0), state["wished"]
        for slot_E in self.slot_SE:
            last_B1 = ops.max(ops.where(slot_E, other_BE, 0), axis=1, keepdims=True)
            wished_BE = ops.where(ops.logical_and(slot_E, last_B1 > 0), other_BE == last_B1, wished_BE)
        calls = bot[:, 0] & (response > 0) & ops.take(self.is_call_C, ops.maximum(response - 1, 0))
        changes = state["called"] & ops.any(wished_BE != state["wished"], axis=1)
        stays = ~(calls | changes)
        offer_B1 = ops.max(ops.where(named_BE & bot, self.restaurant_E, 0), axis=1, keepdims=True)
        after = {
            "called": state["called"] | calls,
            "changed": (state["changed"] & ~calls) | changes,
            "nothing": (state["nothing"] & stays) | (fact[:, 0] & ~ops.any(named_BE, axis=1)),
            "silent": ops.where(user[:, 0], response < 0, state["silent"]),
            "wished": wished_BE,
            "offered": ops.where(offer_B1 > 0, self.id_E == offer_B1, state["offered"] & stays[:, None]),
            "said": state["said"] | named_BE,
            "found": (state["found"] & stays[:, None]) | (named_BE & fact),
            "told": (state["told"] & stays[:, None]) | (named_BE & bot),
        }
        return after, after


class ActionMask(keras.Model):
    """Finds the candidates that may follow a conversation, by `Rules`; a `LookupError` if they do not fit the world.

    From a dict of the arrays `READS`, returns the candidates that may be given at each turn, bool `(B, T, C)`.
    """

    def __init__(self, world, rules):
        super().__init__()
        self.tracker = StateTracker(world)
        self.entities_CK = world.candidate_entities
        numbers = {template: number for number, template in enumerate(rules.templates)}
        template_C = np.array([numbers.get(world.template(text), -1) for text in world.candidates])
        shown_QL = np.zeros((len(rules.states), len(numbers) + 1), bool)  # the last: templates that train lacks
        for row, shown in zip(shown_QL, rules.states.values(), strict=True):
            row[shown] = True
        states = [sum(1 << self.tracker.names.index(name) for name in state.split()) for state in rules.states]
        self.state_Q, self.shown_QC = np.array(states, np.int32), shown_QL[:, template_C]
        conditions = [rules.conditions[template] if template >= 0 else {} for template in template_C]
        needed_CK = [
            [needed.get(self.tracker.types[entity], ()) for entity in entities]
            for needed, entities in zip(conditions, self.entities_CK, strict=True)
        ]
        self.needs_NCK = np.array([[[name in each for each in row] for row in needed_CK] for name in CONDITIONS])
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
        conditions=[{type: [*itertools.compress(CONDITIONS, met)] for type, met in of.items()} for of in conditions],
        continues=np.flatnonzero(silences > 0).tolist(),
    )
