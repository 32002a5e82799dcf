"""The action mask: leaves out responses that training dialogs never show in the same state.

A response is allowed at a turn if, by `tasks.dialog.rules`,

- train has its template in the state of this turn, and
- its entities meet some conditions: those that all entities of the same type in the same template
  meet in train.

After Williams, Asadi and Zweig (2017), whose masks are written by hand; these are learnt.

Shape suffixes:
    B dialogs   T turns   S slots and flags   Q states of train   P templates   C candidates
    N conditions   K entities of a candidate   E entities, counted from 1
"""

import keras
import numpy as np
from keras import ops

from colloquy.data.json_files import read_json
from colloquy.data.prepared import checked
from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.layers.dialog_state import CONDITIONS, INPUTS
from colloquy.tasks.dialog.rules import Rules, state_model, state_names

FILE = "action_mask.json"


class ActionMask(keras.Model):
    """Finds the candidates that may follow a conversation, by `Rules`.

    From a dict of the arrays `INPUTS`, returns the candidates that may be given at each turn, bool
    `(B, T, C)`, and the entities that the user wishes there, bool `(B, T, 1 + E)`, which a remark
    names where no candidate may be given.

    `continues_C` marks the candidates after which the bot continues, see `Rules.continues`.

    Raises:
        LookupError, ValueError: The rules do not fit the domain.
    """

    def __init__(self, domain, rules):
        super().__init__()
        if rules.templates != domain.tables.templates:
            raise ValueError("templates must be those of the candidates")
        self.state_of = state_model(domain)
        self.is_padding_E = np.arange(1 + len(domain.entities)) == 0
        self.checks = _find_checks(domain, rules)

        names_S = state_names(domain)
        self.state_QS = np.zeros((len(rules.states), len(names_S)), bool)
        shown_QP = np.zeros((len(rules.states), len(rules.templates)), bool)
        for q, (state, templates) in enumerate(rules.states.items()):
            for name in state.split():
                self.state_QS[q, names_S.index(name)] = True
            shown_QP[q, templates] = True
        continues_P = np.zeros(len(rules.templates), bool)
        continues_P[rules.continues] = True
        # What holds for a template holds for all candidates with it.
        template_C = domain.tables.template_numbers
        self.shown_QC = shown_QP[:, template_C]
        self.continues_C = continues_P[template_C]

    def predict_on_batch(self, inputs):
        # TensorFlow would make another graph for a dict with more arrays than `INPUTS`.
        return super().predict_on_batch({name: inputs[name] for name in INPUTS})

    def call(self, inputs):
        known_BTS, met_BTNE = self.state_of({name: inputs[name] for name in INPUTS})
        allowed_BTC = self._shown_in_state(known_BTS) & self._meets_conditions(met_BTNE)
        # An entity meets `current` if it is the user's last wish for its slot.
        wished_BTE = met_BTNE[:, :, CONDITIONS.index("current")]
        return allowed_BTC, wished_BTE

    def _shown_in_state(self, known_BTS):
        """Finds the candidates whose template train has in the state of each turn."""
        is_equal_BTQS = ops.equal(known_BTS[:, :, None], self.state_QS)
        is_state_BTQ = ops.cast(ops.all(is_equal_BTQS, axis=3), "float32")
        return ops.matmul(is_state_BTQ, self.shown_QC.astype("float32")) > 0

    def _meets_conditions(self, met_BTNE):
        """Finds the candidates whose entities meet all conditions; padding always does."""
        met_or_padding_BTNE = ops.logical_or(met_BTNE, self.is_padding_E)
        meets_BTC = True
        for n, entity_C in self.checks:
            meets_BTC &= ops.take(met_or_padding_BTNE[:, :, n], entity_C, axis=2)
        return meets_BTC


def _find_checks(domain, rules):
    """Lists what `ActionMask` checks: pairs `n, entity_C`.

    Candidate c may be given only if its entity `entity_C[c]` meets condition n. 0, padding, stands
    for no entity. One array holds one entity of each candidate, so that several are several checks.
    """
    templates_C = domain.tables.template_numbers
    checks = {}
    for c, entities in enumerate(domain.encoded_candidates.entities.lists()):
        conditions_by_type = rules.conditions[templates_C[c]]
        for k, entity in enumerate(entities):
            for condition in conditions_by_type.get(domain.entity(entity).type, ()):
                check = (CONDITIONS.index(condition), k)
                entity_C = checks.setdefault(check, np.zeros(len(templates_C), np.int32))
                entity_C[c] = entity
    return [(n, entity_C) for (n, _), entity_C in checks.items()]


def load_mask(path, domain):
    """Loads the `ActionMask` of a run; a file that does not fit the domain is a `UserError`."""
    file = path / FILE
    with checked(file, "rules that training learnt for this run"):
        mask = ActionMask(domain, Rules.model_validate(read_json(file)))
    compile_for_all_sizes(mask, mask.state_of.input)
    return mask
