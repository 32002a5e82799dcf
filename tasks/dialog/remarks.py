"""What the bot says where none of its responses fits. A remark never claims anything.

Shape suffixes:
    B dialogs   T turns   E entities, counted from 1   V values of slots   R restaurants
"""

import keras
import numpy as np
from keras import ops

from colloquy.layers.dialog_state import CONDITIONS, INPUTS
from colloquy.tasks.dialog.action_mask import state_model

UNKNOWN_WORDS = "i do not know: "
NOTHING_FOUND = "nothing found for "
NOTHING_ELSE = "nothing else found for "
NO_RESPONSE = "i have no response to this"


def unknown_words(domain, words):
    return f"{UNKNOWN_WORDS}{', '.join(words)}. {domain.search_values}"


def no_response(domain):
    return f"{NO_RESPONSE}. {domain.search_values}"


class Wishes(keras.Model):
    """Follows the wishes of users.

    From a dict of the arrays `layers.dialog_state.INPUTS`, returns:
        The values that the user wishes, bool `(B, T, 1 + E)`.
        True if a restaurant has all of them, bool `(B, T)`.
        True if such a restaurant can still be offered, bool `(B, T)`.
    """

    def __init__(self, domain):
        super().__init__()
        self.state_of = state_model(domain)
        numbers = {}
        for number, entity in enumerate(domain.entities, 1):
            numbers[entity.name, entity.type] = number
        slot_values = []
        for slot, values in domain.slot_values.items():
            slot_values += [(value, slot) for value in values]
        self.value_V = np.array([numbers[pair] for pair in slot_values], np.int32)

        restaurants = [place for place in domain.restaurants if place.entity]
        self.restaurant_R = np.array([place.entity for place in restaurants], np.int32)
        self.lacks_VR = np.ones((len(slot_values), len(restaurants)), np.float32)
        for r, place in enumerate(restaurants):
            for v, (value, _) in enumerate(slot_values):
                self.lacks_VR[v, r] = value not in place.values

    def call(self, inputs):
        _, met_BTNE = self.state_of({name: inputs[name] for name in INPUTS})
        wished_BTE = met_BTNE[:, :, CONDITIONS.index("current")]
        new_BTE = met_BTNE[:, :, CONDITIONS.index("new")]
        wished_BTV = ops.cast(ops.take(wished_BTE, self.value_V, axis=2), "float32")
        has_all_BTR = ops.matmul(wished_BTV, self.lacks_VR) == 0
        open_BTR = has_all_BTR & ops.take(new_BTE, self.restaurant_R, axis=2)
        return wished_BTE, ops.any(has_all_BTR, axis=2), ops.any(open_BTR, axis=2)
