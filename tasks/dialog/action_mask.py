"""The action mask: leaves out responses that no training dialog shows in the state of a
conversation.

After Williams, Asadi and Zweig (2017), but learnt: a template, a response with types in place of
entities, is allowed in the states in which train has it, and its entities must meet the conditions
that they always meet in train. A state consists of the slots that the user has named and of
`FLAGS`.

Shape suffixes:  B dialogs   T turns   M sentences   K entities of a sentence or candidate   S slots
    C candidates E entities, counted from 1   Q states   N conditions
"""

import collections
import itertools
from typing import Literal

import keras
import numpy as np
from keras import ops

from colloquy.base.config import Config
from colloquy.data.prepared import checked
from colloquy.data.text_files import read_json
from colloquy.layers.dialog_state import CONDITIONS, FLAGS, READS, DialogState

FILE = "action_mask.json"


class Rules(Config):
    """The contents of `action_mask.json`, learnt from train."""

    templates: list[str]
    """Responses with types in place of entities."""
    states: dict[str, list[int]]
    """Names of a state's slots and flags, separated by spaces -> numbers of the templates that
    train shows in it.
    """
    conditions: list[dict[str, list[Literal[CONDITIONS]]]]
    """For each template: type -> conditions that its entities of this type always meet."""
    continues: list[int]
    """Templates after which users are mostly silent."""


def state_model(domain):
    """`layers.dialog_state.DialogState` of a `tasks.dialog.data.Domain`, from a dict of the arrays
    `READS`.
    """
    shapes = {name: (None, None) if name == "entities" else (None,) for name in READS}
    inputs = {name: keras.Input(shape, dtype="int32", name=name) for name, shape in shapes.items()}
    state = DialogState(len(domain.types), len(domain.entities), len(domain.candidates))
    model = keras.Model(inputs, state(**inputs))
    state.set_weights(domain.state_tables)
    return model


class ActionMask(keras.Model):
    """Finds the candidates that may follow a conversation, by `Rules`; a `LookupError` if they do
    not fit the domain.

    From a dict of the arrays `READS`, returns the candidates that may be given at each turn, bool
    `(B, T, C)`.
    """

    def __init__(self, domain, rules):
        super().__init__()
        self.state_of = state_model(domain)
        self.entities_CK = domain.candidate_entities
        numbers = {template: number for number, template in enumerate(rules.templates)}
        template_C = np.array(
            [numbers.get(domain.template(text), -1) for text in domain.candidates]
        )
        # the last: templates that train lacks
        shown_QL = np.zeros((len(rules.states), len(numbers) + 1), bool)
        for row, shown in zip(shown_QL, rules.states.values(), strict=True):
            row[shown] = True
        names, types = [*domain.types, *FLAGS], [None, *(type for _, type, _ in domain.entities)]
        self.shown_QC = shown_QL[:, template_C]
        self.sign_QS = np.full((len(rules.states), len(names)), -1.0, np.float32)
        for sign_S, state in zip(self.sign_QS, rules.states, strict=True):
            sign_S[[names.index(name) for name in state.split()]] = 1.0
        conditions = [
            rules.conditions[template] if template >= 0 else {} for template in template_C
        ]
        needed_CK = [
            [needed.get(types[entity], ()) for entity in entities]
            for needed, entities in zip(conditions, self.entities_CK, strict=True)
        ]
        self.needs_NCK = np.array(
            [[[name in each for each in row] for row in needed_CK] for name in CONDITIONS]
        )
        self.continues_C = np.isin(template_C, rules.continues)

    def call(self, inputs):
        known, met_BTNE = self.state_of({name: inputs[name] for name in READS})
        agreement = ops.matmul(ops.where(known, 1.0, -1.0), self.sign_QS.T)
        same = ops.cast(agreement == known.shape[2], "float32")
        allowed = ops.matmul(same, self.shown_QC.astype("float32")) > 0
        for n, needs_CK in enumerate(self.needs_NCK):
            for needs_C, entity_C in zip(needs_CK.T, self.entities_CK.T, strict=True):
                if needs_C.any():
                    allowed &= ops.take(met_BTNE[:, :, n], entity_C, axis=2) | ~needs_C
        return allowed


def load_mask(path, domain):
    """The `ActionMask` of a run, `None` if it has none; a file that does not fit the domain is a
    `UserError`.
    """
    file = path / FILE
    if not file.is_file():
        return None
    with checked(file, "rules that training learnt for this run"):
        return ActionMask(domain, Rules.model_validate(read_json(file)))


def learn(domain, split, batch_size=32):
    """Learns the `Rules` from a `tasks.dialog.data.DialogSplit`, train."""
    state_of, entities = state_model(domain), domain.encoded_candidates.entities.lists()
    names, types = [*domain.types, *FLAGS], [type for _, type, _ in domain.entities]
    templates, template_C = np.unique(
        [domain.template(text) for text in domain.candidates], return_inverse=True
    )
    states, conditions = collections.defaultdict(set), [{} for _ in templates]
    silences, silent = np.zeros(len(templates), int), names.index("silent")
    for start in range(0, len(split), batch_size):
        inputs, answers = split.collate(range(start, min(start + batch_size, len(split))), READS)
        known_BTS, met_BTNE = state_of.predict_on_batch(inputs)
        for b, t in zip(*np.nonzero(answers >= 0), strict=True):
            answer = answers[b, t]
            states[" ".join(itertools.compress(names, known_BTS[b, t]))].add(
                int(template_C[answer])
            )
            for entity in entities[answer]:
                met = conditions[template_C[answer]].setdefault(
                    types[entity - 1], np.ones(len(CONDITIONS), bool)
                )
                met &= met_BTNE[b, t, :, entity]
            if t:
                silences[template_C[answers[b, t - 1]]] += 1 if known_BTS[b, t, silent] else -1
    return Rules(
        templates=templates.tolist(),
        states={state: sorted(shown) for state, shown in sorted(states.items())},
        conditions=[
            {type: [*itertools.compress(CONDITIONS, met)] for type, met in of.items()}
            for of in conditions
        ],
        continues=np.flatnonzero(silences > 0).tolist(),
    )
