"""Turns of a context beside the true response: `evaluate.py --by=echo`."""

import numpy as np

from colloquy.tasks.selection.echoes import echo_rows
from colloquy.tasks.selection.split import SelectionSplit

EOS = 1
CONTEXTS = [[5, 6, EOS, 7, 8, 9, 10, EOS], [14, EOS], [15, 16, EOS, 17, 18, EOS]]
RESPONSES = [[20], [30], [21, 22], [31], [17, 18], [32]]  # of each context a positive first


def test_rows_compare_the_true_response_with_each_turn_that_differs_from_it():
    contexts = [context for context in CONTEXTS for _ in range(2)]
    split = SelectionSplit.of(contexts, RESPONSES, [1, 0] * 3, EOS)

    # The score of a candidate is its smallest id: turns 7.. and 14 lose to responses 20 and 21.
    def score(lines):
        return np.array([min(ids) for ids in lines.responses.lists()], float)

    last, before = echo_rows(split, -score(split), lambda lines: -score(lines))
    # Context 2 says its last turn again: it is left out there.
    assert last == ("last turn", 2, {"R10@1": 1.0, "R11@1": 0.0, "echo above": 1.0})
    assert before.examples == 2
    last, before = echo_rows(split, score(split), score)
    assert last.metrics == {"R10@1": 0.0, "R11@1": 0.0, "echo above": 0.0}
