"""The configs of the memory networks for dialog: what they refuse."""

import pytest
from dialog_models import (
    NAMES,
    D,
    config,
)

# === Errors ===

NO_FEATURES = r"A bag of words has no features\. Received: "
POINTER = r"has speaker and time and no match_types\. Received: "
HEADS = "heads must divide embedding_dim. Received: "


@pytest.mark.parametrize(
    ("names", "settings", "message"),
    [
        *(
            (NAMES, {field: value}, f"^{field} must be at least 1. Received: {field}={value}$")
            for field in ("vocabulary_size", "max_words", "embedding_dim", "time_limit")
            for value in (0, -1)
        ),
        (NAMES[:2], {"divisor": "none"}, r"divisor must be one of \('dimension', 'root'\)\. Received: divisor='none'$"),
        (NAMES[:2], {"shortcut": "highway"}, r"shortcut must be one of \(.*\)\. Received: shortcut='highway'$"),
        (NAMES[:2], {"gate": "relu"}, r"gate must be one of \('tanh', 'sigmoid'\)\. Received: gate='relu'$"),
        (NAMES[:2], {"memory": "u"}, r"memory must be one of \('sentences', 'latest'\)\. Received: memory='u'$"),
        (NAMES[:2], {"hops": -1}, r"hops must be at least 0\. Received: hops=-1$"),
        *((NAMES[:2], {"heads": n}, f"{HEADS}heads={n}, embedding_dim={D}$") for n in (3, 0, -2)),
        (NAMES[1:2], {"speaker": False}, POINTER + "speaker=False, time=True, match_types=False$"),
        (NAMES[1:2], {"time": False}, POINTER + "speaker=True, time=False, match_types=False$"),
        (NAMES[1:2], {"match_types": True}, POINTER + "speaker=True, time=True, match_types=True$"),
        (NAMES[4:], {"speaker": True}, NO_FEATURES + "speaker=True, time=False$"),
        (NAMES[4:], {"time": True}, NO_FEATURES + "speaker=False, time=True$"),
    ],
)
def test_config_rejects(names, settings, message):
    for name in names:
        with pytest.raises(ValueError, match=message):
            config(name, **settings)
