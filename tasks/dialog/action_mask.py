"""The action mask: leaves out responses that training dialogs never show in the same state.

A response is allowed at a turn if, by `tasks.dialog.rules`,

- train has its template in the state of this turn, and
- each of its entities meets the conditions that entities of its type always meet in this template.

After Williams, Asadi and Zweig (2017), whose masks are written by hand; these are learnt.

Shape suffixes:
    B dialogs   T turns   S slots and flags   Q states of train   N conditions   C candidates
    K entities of a candidate   E entities, counted from 1
"""

import keras
import numpy as np
from keras import ops

from colloquy.data.json_files import read_json
from colloquy.data.prepared import checked
from colloquy.layers.dialog_state import CONDITIONS, INPUTS
from colloquy.tasks.dialog.rules import Rules, state_model, state_names

FILE = "action_mask.json"


class ActionMask(keras.Model):
    """Finds the candidates that may follow a conversation, by `Rules`.

    From a dict of the arrays `INPUTS`, returns the candidates that may be given at each turn, bool
    `(B, T, C)`, and the entities that the user wishes there, bool `(B, T, 1 + E)`.

    `continues_C` marks the candidates after which the bot continues, see `Rules.continues`.

    Raises:
        LookupError, ValueError: The rules do not fit the domain.
    """

    def __init__(self, domain, rules):
        super().__init__()
        self.state_of = state_model(domain)
        self.is_padding_E = np.arange(1 + len(domain.entities)) == 0

        templates_C = domain.tables.candidate_templates
        self.state_QS = _mark_states(rules.states, state_names(domain))
        self.shown_QC = np.zeros((len(rules.states), len(templates_C)), bool)
        for q, numbers in enumerate(rules.states.values()):
            self.shown_QC[q] = _have_templates(templates_C, rules, numbers)
        self.continues_C = _have_templates(templates_C, rules, rules.continues)
        self.required_NCK = _required_entities(domain, rules)

    def call(self, inputs):
        known_BTS, met_BTNE = self.state_of({name: inputs[name] for name in INPUTS})

        # The candidates whose template train has in the state of each turn.
        is_equal_BTQS = ops.equal(known_BTS[:, :, None], self.state_QS)
        is_state_BTQ = ops.cast(ops.all(is_equal_BTQS, axis=3), "float32")
        allowed_BTC = ops.matmul(is_state_BTQ, self.shown_QC.astype("float32")) > 0

        # Of these, the candidates whose entities meet all conditions; padding always does.
        met_or_padding_BTNE = ops.logical_or(met_BTNE, self.is_padding_E)
        # One entity of each candidate at a time: an array `(B, T, N, C, K)` would be large.
        for n, required_CK in enumerate(self.required_NCK):
            for required_C in required_CK.T:
                if required_C.any():
                    met_BTC = ops.take(met_or_padding_BTNE[:, :, n], required_C, axis=2)
                    allowed_BTC &= met_BTC

        # An entity meets `current` if it is the user's last wish for its slot.
        wished_BTE = met_BTNE[:, :, CONDITIONS.index("current")]
        return allowed_BTC, wished_BTE


def _mark_states(states, names):
    """Marks the slots and flags of each state in the rules, bool `(Q, S)`."""
    state_QS = np.zeros((len(states), len(names)), bool)
    for q, state in enumerate(states):
        for name in state.split():
            state_QS[q, names.index(name)] = True
    return state_QS


def _have_templates(templates_C, rules, numbers):
    """Marks the candidates with one of these templates of the rules, bool `(C,)`."""
    templates = set(np.array(rules.templates)[numbers].tolist())
    return np.array([template in templates for template in templates_C])


def _required_entities(domain, rules):
    """Returns the entities of each candidate that must meet each condition, int32 `(N, C, K)`.

    0 is padding, and stands for entities that need not meet the condition.
    """
    numbers = {template: number for number, template in enumerate(rules.templates)}
    entities_CK = domain.tables.candidate_entities
    required_NCK = np.zeros((len(CONDITIONS), *entities_CK.shape), np.int32)
    for c, template in enumerate(domain.tables.candidate_templates):
        if template not in numbers:
            continue  # never allowed
        conditions_by_type = rules.conditions[numbers[template]]
        for k, entity in enumerate(entities_CK[c]):
            if entity == 0:
                continue
            for condition in conditions_by_type.get(domain.entity(entity).type, ()):
                required_NCK[CONDITIONS.index(condition), c, k] = entity
    return required_NCK


def load_mask(path, domain):
    """Loads the `ActionMask` of a run; a file that does not fit the domain is a `UserError`."""
    file = path / FILE
    with checked(file, "rules that training learnt for this run"):
        return ActionMask(domain, Rules.model_validate(read_json(file)))
