"""What the bot says where none of its responses fits. A remark never claims anything."""

import numpy as np

UNKNOWN_WORDS = "i do not know: "
NOTHING_FOUND = "nothing found for "
NO_RESPONSE = "i have no response to this"


def with_values(remark, slot_values_text):
    """A remark, and the values that the bot knows if it knows any."""
    return f"{remark}. {slot_values_text}".rstrip()


def name_unknown(domain, words):
    """The remark on a sentence with `words` that users of the training dialogs never say."""
    return with_values(UNKNOWN_WORDS + ", ".join(words), domain.slot_values_text)


def name_missing(domain, wished_E):
    """The remark to a user who wishes these entities, bool `(1 + E,)`, if no response fits."""
    wishes = [domain.entity(number).name for number in np.flatnonzero(wished_E)]
    values_by_restaurant = domain.values_by_subject.values()
    if wishes and not any(values.issuperset(wishes) for values in values_by_restaurant):
        return f"{NOTHING_FOUND}{', '.join(wishes)}"
    return with_values(NO_RESPONSE, domain.slot_values_text)
