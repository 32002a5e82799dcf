"""The rules of the action mask, learnt from the training dialogs: `action_mask.json` of a run.

A *template* is a response with types in place of entities: `how about {restaurant}`.
A *state* describes a turn: which slots the user has named, and which of `FLAGS` hold. It is written
as their names: `cuisine location called found`.
A *condition* describes an entity at a turn, such as `said`: the user has said it.

Shape suffixes:
    B dialogs   T turns   S slots and flags   N conditions   E entities, counted from 1
"""

import collections
import itertools
from typing import Literal, NamedTuple

import keras
import numpy as np

from colloquy.base.config import Config, NonNegative
from colloquy.layers.dialog_state import CONDITIONS, FLAGS, INPUTS, DialogState
from colloquy.tasks.dialog.split import PADDING

BATCH_SIZE = 32


class Rules(Config):
    """The contents of `action_mask.json`."""

    templates: list[str]
    """The templates of all candidates. The other fields refer to them by number, from 0."""
    states: dict[str, list[NonNegative]]
    """State -> numbers of the templates that train shows in it."""
    conditions: list[dict[str, list[Literal[CONDITIONS]]]]
    """For each template: type -> conditions that its entities of this type always meet."""
    continues: list[NonNegative]
    """Numbers of the templates after which users are mostly silent, so that the bot continues."""


# === States ===


def state_model(domain):
    """Makes a model of one `layers.dialog_state.DialogState`, with the tables of a `Domain`.

    The model takes a dict of the arrays `INPUTS`.
    """
    inputs = {}
    for name in INPUTS:
        shape = (None, None) if name == "entities" else (None,)
        inputs[name] = keras.Input(shape, dtype="int32", name=name)
    state = DialogState(
        types=len(domain.types),
        entities=len(domain.entities),
        candidates=len(domain.candidates),
    )
    model = keras.Model(inputs, state(**inputs))
    state.set_weights(domain.tables.state_tables)
    return model


def state_names(domain):
    """Returns the names of slots and flags in `Rules.states`, in the order of `DialogState`.

    A state is their names with spaces between them, so each name must be one word, and no type may
    have the name of a flag: a type without a name is written `R_`, a type `found` `R_found`.
    """
    types = [f"R_{name}" if name in ("", *FLAGS) else name for name in domain.types]
    return [*types, *FLAGS]


# === Learning ===


class UsedResponse(NamedTuple):
    """A response in the training dialogs."""

    dialog: int
    template: int
    """Number of its template."""
    state: list[str]
    """The names of the slots and flags that hold when it is given."""
    conditions: list[tuple[str, list[str]]]
    """For each of its entities, the type, and the `CONDITIONS` that it meets when it is given."""


def learn(domain, split):
    """Learns the `Rules` from the train split, a `tasks.dialog.split.DialogSplit`."""
    responses = _used_responses(domain, split)
    return Rules(
        templates=domain.tables.templates,
        states=_learn_states(responses),
        conditions=_learn_conditions(responses, len(domain.tables.templates)),
        continues=_learn_continues(responses),
    )


def _used_responses(domain, split):
    """Lists the `UsedResponse`s of a split, in order."""
    state_of = state_model(domain)
    names_S = state_names(domain)
    entities_of_candidates = domain.encoded_candidates.entities.lists()
    responses = []
    for start in range(0, len(split), BATCH_SIZE):
        dialogs = range(len(split))[start : start + BATCH_SIZE]
        inputs, answers_BT = split.collate(dialogs, INPUTS)
        known_BTS, met_BTNE = state_of.predict_on_batch(inputs)
        for b, t in np.argwhere(answers_BT != PADDING):
            candidate = answers_BT[b, t]
            conditions = []
            for entity in entities_of_candidates[candidate]:
                met = list(itertools.compress(CONDITIONS, met_BTNE[b, t, :, entity]))
                conditions.append((domain.entity(entity).type, met))
            response = UsedResponse(
                dialog=dialogs[b],
                template=int(domain.tables.template_numbers[candidate]),
                state=list(itertools.compress(names_S, known_BTS[b, t])),
                conditions=conditions,
            )
            responses.append(response)
    return responses


def _learn_states(responses):
    """Learns `Rules.states`, sorted."""
    templates_by_state = collections.defaultdict(set)
    for response in responses:
        state = " ".join(response.state)
        templates_by_state[state].add(response.template)
    return {state: sorted(templates_by_state[state]) for state in sorted(templates_by_state)}


def _learn_conditions(responses, num_templates):
    """Learns `Rules.conditions`, those of each template in the order of `CONDITIONS`."""
    always_met = [{} for _ in range(num_templates)]
    for response in responses:
        conditions_by_type = always_met[response.template]
        for entity_type, met in response.conditions:
            if entity_type in conditions_by_type:
                before = conditions_by_type[entity_type]
                met = [condition for condition in before if condition in met]
            conditions_by_type[entity_type] = met
    return always_met


def _learn_continues(responses):
    """Learns `Rules.continues`: after these templates, users are silent more often than not."""
    balance = collections.Counter()
    for response, following in itertools.pairwise(responses):
        if response.dialog == following.dialog:
            # The user is silent or not between a response and the following one.
            balance[response.template] += 1 if "silent" in following.state else -1
    return sorted(template for template in balance if balance[template] > 0)
