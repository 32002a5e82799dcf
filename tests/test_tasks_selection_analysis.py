"""`tasks.selection.scoring`: which group each context belongs to, and what each group scores."""

import numpy as np
import pytest

from tasks.selection.scoring import GROUPINGS, metrics_by
from tasks.selection.split import SelectionSplit

EOS = 1
CONTEXTS = [  # turns of so many words
    [3],
    [2, 7],
    [1, 6],
    [4] * 12,
    [60, 5, 51],
]


@pytest.fixture
def split():
    contexts = [[id for words in turns for id in (*[5] * words, EOS)] for turns in CONTEXTS]
    lines = [(context, place) for context in contexts for place in range(3)]
    labels = [int(place == 0) for _, place in lines]
    labels[3:6] = [0, 0, 0]  # the second context has no positive
    return SelectionSplit.of([context for context, _ in lines], [[5, 6]] * len(lines), labels, EOS)


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("turns", ["1", "2", "2", "10+", "3"]),
        ("last_turn", ["0-5", "6-10", "6-10", "0-5", "51+"]),
        ("words", ["0-5", "0-5", "0-5", "0-5", "31-50"]),  # 3, 4.5, 3.5, 4, 38.7
    ],
)
def test_each_context_has_its_group(split, name, groups):
    group, names = GROUPINGS[name](split)
    assert [names[number] for number in group] == groups


def test_groups_are_scored_by_themselves(split):
    scores = np.zeros(15, "float32")
    scores[[0, 7, 9, 12]] = 1.0  # contexts 1, 4 and 5 are ranked right, 3 is not
    found = metrics_by(split, scores, GROUPINGS["turns"])
    assert [(each["group"], each["examples"], each["metrics"]["R10@1"]) for each in found] == [
        *(("1", 1, 1.0), ("2", 1, 0.0), ("3", 1, 1.0), ("10+", 1, 1.0))
    ]
    found = metrics_by(split, scores, GROUPINGS["last_turn"])
    assert [(each["group"], each["examples"], each["metrics"]["R10@1"]) for each in found] == [
        *(("0-5", 2, 1.0), ("6-10", 1, 0.0), ("51+", 1, 1.0))
    ]


def test_a_group_without_both_labels_is_left_out(split):
    only = SelectionSplit(
        split.turns, split.context_start, split.context_turns, split.responses, split.context, split.label * 0
    )
    assert metrics_by(only, np.zeros(15), GROUPINGS["turns"]) == []
