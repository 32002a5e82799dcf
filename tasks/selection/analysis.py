"""Which contexts does a model rank well? The analyses of the DAM paper (section 5): by turns and by length."""

import numpy as np

from metrics.ranking import ranking_metrics

TURNS = 10  # contexts of so many turns and more are one group
WORDS = (5, 10, 15, 20, 30, 50)  # upper ends of the groups by words


def _last_turn_words(split):
    last = split.context_start + split.context_turns - 1
    return np.where(split.context_turns > 0, split.turns.lengths[np.maximum(last, 0)], 0)


def _mean_words(split):
    total = np.concatenate([[0], np.cumsum(split.turns.lengths)])
    words = total[split.context_start + split.context_turns] - total[split.context_start]
    return words / np.maximum(split.context_turns, 1)


def by_turns(split):
    """The group of each context, int `(contexts,)`, and what the groups are called."""
    return np.minimum(split.context_turns, TURNS), [*map(str, range(TURNS)), f"{TURNS}+"]


def by_last_turn(split):
    """Likewise, by words of the last turn."""
    return np.searchsorted(WORDS, _last_turn_words(split)), _ranges()


def by_words(split):
    """Likewise, by words of a turn in the mean, as the paper's figure."""
    return np.searchsorted(WORDS, _mean_words(split)), _ranges()


GROUPINGS = {"turns": by_turns, "last_turn": by_last_turn, "words": by_words}


def _ranges():
    """
    >>> _ranges()
    ['0-5', '6-10', '11-15', '16-20', '21-30', '31-50', '51+']
    """
    begins = [0, *(end + 1 for end in WORDS)]
    return [*(f"{begin}-{end}" for begin, end in zip(begins, WORDS, strict=False)), f"{begins[-1]}+"]


def metrics_by(split, scores, grouping):
    """The metrics of groups of contexts, see `engine.task.Task.metrics_by`.

    Args:
        split: A `tasks.selection.split.SelectionSplit`.
        scores: The model's, of each of its lines.
        grouping: A value of `GROUPINGS`.
    """
    group, names = grouping(split)
    found = []
    for number in np.unique(group):
        lines = np.flatnonzero(group[split.context] == number)
        try:
            result = ranking_metrics(scores[lines], split.label[lines], split.context[lines])
        except ValueError:  # none of its contexts has both labels
            continue
        counts = result.counts
        ranked = counts["contexts"] - counts["without_positive"] - counts["without_negative"]
        found.append({"group": names[number], "examples": ranked, "metrics": result.metrics})
    return found
