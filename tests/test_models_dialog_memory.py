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
            (NAMES, {field: value}, rf"\n{field}\n.*input_value={value}")
            for field in ("vocabulary_size", "max_words", "embedding_dim", "time_limit")
            for value in (0, -1)
        ),
        (NAMES[:2], {"divisor": "none"}, r"\ndivisor\n.*input_value='none'"),
        (NAMES[:2], {"shortcut": "highway"}, r"\nshortcut\n.*input_value='highway'"),
        (NAMES[:2], {"gate": "relu"}, r"\ngate\n.*input_value='relu'"),
        (NAMES[:2], {"memory": "u"}, r"\nmemory\n.*input_value='u'"),
        (NAMES[:2], {"hops": -1}, r"\nhops\n.*input_value=-1"),
        (NAMES[:2], {"heads": 3}, f"{HEADS}heads=3, embedding_dim={D}"),
        *((NAMES[:2], {"heads": n}, rf"\nheads\n.*input_value={n}") for n in (0, -2)),
        (NAMES[1:2], {"speaker": False}, POINTER + "speaker=False, time=True, match_types=False"),
        (NAMES[1:2], {"time": False}, POINTER + "speaker=True, time=False, match_types=False"),
        (NAMES[1:2], {"match_types": True}, POINTER + "speaker=True, time=True, match_types=True"),
        (NAMES[4:], {"speaker": True}, NO_FEATURES + "speaker=True, time=False"),
        (NAMES[4:], {"time": True}, NO_FEATURES + "speaker=False, time=True"),
    ],
)
def test_config_rejects(names, settings, message):
    for name in names:
        with pytest.raises(ValueError, match=message):
            config(name, **settings)
