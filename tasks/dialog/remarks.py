"""What the bot says where none of its responses fits. A remark never claims anything."""

UNKNOWN_WORDS = "i do not know: "
NOTHING_FOUND = "nothing found for "
NO_RESPONSE = "i have no response to this"


def name_unknown(domain, words):
    """To a sentence with `words` that users of the training dialogs never say."""
    return f"{UNKNOWN_WORDS}{', '.join(words)}. {domain.slot_values_text}"


def name_missing(domain, wishes):
    """To a user who wishes these values, where no response fits."""
    if wishes and not any(place.values.issuperset(wishes) for place in domain.restaurants):
        return f"{NOTHING_FOUND}{', '.join(wishes)}"
    return f"{NO_RESPONSE}. {domain.slot_values_text}"
