"""Metrics of groups of contexts, as in section 5 of the DAM paper: `evaluate.py --by=turns`.

Letter: C contexts
"""

import numpy as np

from colloquy.engine.scoring import Group
from colloquy.metrics.ranking import ranking_metrics

BREAKDOWNS = {
    "turns": tuple(range(10)),
    "last_turn": (5, 10, 15, 20, 30, 50),
    "words": (5, 10, 15, 20, 30, 50),
}
"""What contexts are grouped by -> the upper limits of the groups. A last group has all above.

`turns` is the number of turns, `last_turn` the words of the last turn, `words` the mean number of
words of a turn.
"""


def groups_of_contexts(split, scores, grouping, ties="loss"):
    """The metrics of groups of contexts, see `engine.task.Task.metrics_by_group`.

    Args:
        split: `SelectionSplit`.
        scores: Float `(lines,)`.
        grouping: A key of `BREAKDOWNS`.
        ties: See `metrics.ranking.ranking_metrics`.
    """
    upper_limits = BREAKDOWNS[grouping]
    # With the limits 5 and 10, sizes up to 5 are group 0, up to 10 group 1, all others group 2.
    group_C = np.searchsorted(upper_limits, _sizes_of_contexts(split, grouping))
    group_of_line = group_C[split.context_of_line]
    groups = []
    for group, name in enumerate(_group_names(upper_limits)):
        lines = group_of_line == group
        try:
            result = ranking_metrics(
                scores[lines], split.label[lines], split.context_of_line[lines], ties=ties
            )
        except ValueError:  # no context of the group has both labels
            continue
        num_contexts = len(result.by_context["R10@1"])
        groups.append(Group(name, num_contexts, result.metrics))
    return groups


def _sizes_of_contexts(split, grouping):
    """The numbers by which contexts are grouped, `(C,)`; see `BREAKDOWNS`."""
    num_turns_C = split.num_turns_of_context
    if grouping == "turns":
        return num_turns_C
    if grouping == "last_turn":
        last_turn_C = split.first_turn_of_context + num_turns_C - 1
        # The turn -1 has no words.
        return split.turns.lengths_at(np.where(num_turns_C > 0, last_turn_C, -1))
    context_of_turn = np.repeat(np.arange(split.num_contexts), num_turns_C)
    words_of_turn = split.turns.lengths
    words_C = np.bincount(context_of_turn, words_of_turn, minlength=split.num_contexts)
    return words_C / np.maximum(num_turns_C, 1)


def _group_names(upper_limits):
    """Names of the groups up to each limit, and above the last.

    >>> _group_names((0, 1, 5))
    ['0', '1', '2-5', '6+']
    """
    names = []
    low = 0
    for high in upper_limits:
        names.append(f"{low}-{high}" if low < high else f"{low}")
        low = high + 1
    return [*names, f"{low}+"]
