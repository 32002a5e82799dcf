"""The action mask: leaves out responses that training dialogs never show in the same state.

A state is the slots that the user has named, and `FLAGS`. A template is a response with types in
place of entities. A response is allowed in a state if

- train has its template in this state, and
- each of its entities meets the conditions that, in this template, the entities of its type always
  meet in train.

After Williams, Asadi and Zweig (2017), whose masks are written by hand; these are learnt.

Shape suffixes:
    B dialogs   T turns   M sentences   K entities of a sentence or candidate   S slots and flags
    C candidates   E entities, counted from 1   Q states   L templates   N conditions
"""

import collections
from typing import Literal

import keras
import numpy as np
from keras import ops

from colloquy.base.config import Config, NonNegative
from colloquy.data.json_files import read_json
from colloquy.data.prepared import checked
from colloquy.layers.dialog_state import CONDITIONS, FLAGS, INPUTS, DialogState

FILE = "action_mask.json"


class Rules(Config):
    """The contents of `action_mask.json`, learnt from train."""

    templates: list[str]
    """Responses with types in place of entities."""
    states: dict[str, list[NonNegative]]
    """Names of a state's slots and flags, separated by spaces -> numbers of the templates that
    train shows in it.
    """
    conditions: list[dict[str, list[Literal[CONDITIONS]]]]
    """For each template: type -> conditions that its entities of this type always meet."""
    continues: list[NonNegative]
    """Numbers of the templates after which users are mostly silent."""


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


# === Masking ===


class ActionMask(keras.Model):
    """Finds the candidates that may follow a conversation, by `Rules`.

    From a dict of the arrays `INPUTS`, returns the candidates that may be given at each turn, bool
    `(B, T, C)`, and the entities that the user wishes there, bool `(B, T, 1 + E)`.

    Raises:
        LookupError, ValueError: The rules do not fit the domain.
    """

    def __init__(self, domain, rules):
        super().__init__()
        self.state_of = state_model(domain)
        self.entities_CK = domain.tables.candidate_entities

        template_numbers = {template: number for number, template in enumerate(rules.templates)}
        templates = domain.tables.candidate_templates
        # -1: a template that the rules lack.
        template_C = np.array([template_numbers.get(template, -1) for template in templates])

        self.sign_QS = _sign_states(rules.states, _state_names(domain))
        shown_QL = _mark_templates(rules.states, len(rules.templates))
        # -1 selects the last column, where nothing is marked.
        self.shown_QC = shown_QL[:, template_C]
        self.needs_NCK = _mark_conditions(domain, rules.conditions, template_C)
        self.continues_C = np.isin(template_C, rules.continues)

    def call(self, inputs):
        known_BTS, met_BTNE = self.state_of({name: inputs[name] for name in INPUTS})
        # With signs 1 and -1, the inner product of two equal states is S, that of others is less.
        sign_BTS = ops.where(known_BTS, 1.0, -1.0)
        agreement_BTQ = ops.matmul(sign_BTS, self.sign_QS.T)
        num_signs = known_BTS.shape[2]
        is_state_BTQ = ops.cast(agreement_BTQ == num_signs, "float32")
        allowed_BTC = ops.matmul(is_state_BTQ, self.shown_QC.astype("float32")) > 0

        # Loop over conditions and entities: a single array (B, T, N, C, K) would be large.
        for n in range(len(CONDITIONS)):
            for k in range(self.entities_CK.shape[1]):
                needs_C = self.needs_NCK[n, :, k]
                if needs_C.any():
                    met_BTC = ops.take(met_BTNE[:, :, n], self.entities_CK[:, k], axis=2)
                    allowed_BTC &= met_BTC | ~needs_C
        return allowed_BTC, met_BTNE[:, :, CONDITIONS.index("current")]


def _state_names(domain):
    """Returns the names of slots and flags in `Rules.states`.

    A type that is named like a flag, or has no name, keeps the `R_` of its relation.
    """
    types = [f"R_{name}" if name in ("", *FLAGS) else name for name in domain.types]
    return [*types, *FLAGS]


def _sign_states(states, names):
    """Returns 1 where a rule's state has a slot or flag, -1 elsewhere, float32 `(Q, S)`."""
    sign_QS = np.full((len(states), len(names)), -1.0, np.float32)
    for q, state in enumerate(states):
        for name in state.split():
            sign_QS[q, names.index(name)] = 1.0
    return sign_QS


def _mark_templates(states, count):
    """Marks the templates that train shows in each state, bool `(Q, L + 1)`.

    The last column, without marks, is for templates that the rules lack.
    """
    shown_QL = np.zeros((len(states), count + 1), bool)
    for q, templates in enumerate(states.values()):
        shown_QL[q, templates] = True
    return shown_QL


def _mark_conditions(domain, conditions, template_C):
    """Marks the conditions that each entity of a candidate must meet, bool `(N, C, K)`."""
    C, K = domain.tables.candidate_entities.shape
    needs_NCK = np.zeros((len(CONDITIONS), C, K), bool)
    for c, entities in enumerate(domain.tables.candidate_entities):
        if template_C[c] < 0:
            continue
        conditions_by_type = conditions[template_C[c]]
        for k, number in enumerate(entities):
            # 0 is padding.
            if number == 0:
                continue
            _, entity_type, _ = domain.entities[number - 1]
            for condition in conditions_by_type.get(entity_type, ()):
                needs_NCK[CONDITIONS.index(condition), c, k] = True
    return needs_NCK


def load_mask(path, domain):
    """Loads the `ActionMask` of a run; a file that does not fit the domain is a `UserError`."""
    file = path / FILE
    with checked(file, "rules that training learnt for this run"):
        return ActionMask(domain, Rules.model_validate(read_json(file)))


# === Learning ===


def learn(domain, split, batch_size=32):
    """Learns the `Rules` from the train split, a `tasks.dialog.split.DialogSplit`.

    Shape suffix: R responses of the split.
    """
    state_of = state_model(domain)
    known_batches = []
    met_batches = []
    for start in range(0, len(split), batch_size):
        rows = range(start, min(start + batch_size, len(split)))
        inputs, answers_BT = split.collate(rows, INPUTS)
        known_BTS, met_BTNE = state_of.predict_on_batch(inputs)
        # At padding, the answer -1 selects the last candidate; `is_real_BT` leaves it out below.
        entities_BTK = domain.tables.candidate_entities[answers_BT]
        met_BTNK = np.take_along_axis(met_BTNE, entities_BTK[:, :, None], axis=3)
        is_real_BT = answers_BT >= 0
        known_batches.append(known_BTS[is_real_BT])
        met_batches.append(met_BTNK[is_real_BT])
    known_RS = np.concatenate(known_batches)
    met_RNK = np.concatenate(met_batches)
    template_R = domain.tables.template_numbers[split.answers]
    entities_RK = domain.tables.candidate_entities[split.answers]
    silent_column = len(domain.types) + FLAGS.index("silent")
    return Rules(
        templates=domain.tables.templates,
        states=_learn_states(_state_names(domain), known_RS, template_R),
        conditions=_learn_conditions(domain, template_R, entities_RK, met_RNK),
        continues=_learn_continues(split.dialog, known_RS[:, silent_column], template_R),
    )


def _learn_states(names, known_RS, template_R):
    """Returns `{state: numbers of its templates}`, both sorted; see `Rules.states`."""
    names_S = np.array(names)
    templates_by_state = collections.defaultdict(set)
    for known_S, template in zip(known_RS, template_R.tolist(), strict=True):
        state = " ".join(names_S[known_S])
        templates_by_state[state].add(template)
    return {state: sorted(templates_by_state[state]) for state in sorted(templates_by_state)}


def _learn_conditions(domain, template_R, entities_RK, met_RNK):
    """Finds the conditions that, in each template, the entities of a type always meet."""
    always_by_type = [{} for _ in domain.tables.templates]
    for template, entities_K, met_NK in zip(template_R, entities_RK, met_RNK, strict=True):
        always_of_template = always_by_type[template]
        for number, met_N in zip(entities_K, met_NK.T, strict=True):
            # 0 is padding.
            if number == 0:
                continue
            entity_type = domain.entities[number - 1].type
            if entity_type in always_of_template:
                met_N = always_of_template[entity_type] & met_N
            always_of_template[entity_type] = met_N

    conditions = []
    for always_of_template in always_by_type:
        names_by_type = {}
        for entity_type, always_N in always_of_template.items():
            names_by_type[entity_type] = np.array(CONDITIONS)[always_N].tolist()
        conditions.append(names_by_type)
    return conditions


def _learn_continues(dialog_R, is_silent_R, template_R):
    """Finds the templates after which users are silent more often than not."""
    is_same_dialog = dialog_R[1:] == dialog_R[:-1]
    previous_template = template_R[:-1][is_same_dialog]
    is_silent = is_silent_R[1:][is_same_dialog]
    # Per template: +1 for each silence of the user after it, -1 for each sentence.
    balance_L = np.bincount(previous_template, weights=np.where(is_silent, 1, -1))
    return np.flatnonzero(balance_L > 0).tolist()
