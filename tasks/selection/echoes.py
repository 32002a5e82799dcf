"""Scores of responses that repeat a turn of their own context: `evaluate.py --by=echo`.

A good ranking puts the response that a person gave above a turn that was said already. The
candidates of the corpora are from other conversations, so their scores do not show it.
"""

import numpy as np

from colloquy.tasks.selection.scoring import best_scores
from colloquy.tasks.selection.split import SelectionSplit

ECHOES = {"last turn": 1, "turn before": 2, "two turns before": 3}
"""Which turn of a context is a further candidate, counted from the end."""


def echo_split(split, place):
    """The contexts of a split, each with one candidate: its turn at `place` from the end.

    Contexts without such a turn, and those whose positive response has the same words, have none.
    """
    contexts = np.flatnonzero(split.context_turns >= place)
    turns = split.context_start[contexts] + split.context_turns[contexts] - place
    said_again = repeated_responses(split, contexts, turns)
    return SelectionSplit(
        turns=split.turns,
        context_start=split.context_start,
        context_turns=split.context_turns,
        responses=split.turns.take(turns[~said_again]),
        context=contexts[~said_again],
        label=np.zeros(np.sum(~said_again), np.int32),
    )


def repeated_responses(split, contexts, turns):
    """Whether a positive response of each context has the words of the turn, bool `(contexts,)`."""
    words_of_turns = dict(zip(contexts.tolist(), split.turns.lists(turns), strict=True))
    repeated = set()
    positives = np.flatnonzero(split.label == 1)
    responses = split.responses.lists(positives)
    for context, response in zip(split.context[positives].tolist(), responses, strict=True):
        if words_of_turns.get(context) == response:
            repeated.add(context)
    return np.isin(contexts, list(repeated))


def echo_rows(split, scores, score):
    """Compares true responses with turns of their contexts.

    Args:
        split: `SelectionSplit`.
        scores: Of its lines, float `(lines,)`.
        score: Function of a `SelectionSplit` that returns the scores of its lines.

    Returns:
        Rows `{"group", "examples", "metrics"}`, one for each of `ECHOES`. `R10@1` is that of the
        same contexts without the turn, `R11@1` with it; `echo above` is the share of contexts in
        which the turn has at least the score of the best positive response.
    """
    best_positive = best_scores(split, scores, split.label == 1)
    best_negative = best_scores(split, scores, split.label == 0)
    is_ranked = np.isfinite(best_positive) & np.isfinite(best_negative)

    rows = []
    for name, place in ECHOES.items():
        echoes = echo_split(split, place)
        is_kept = is_ranked[echoes.context]
        if not is_kept.any():
            continue
        echo = score(echoes)[is_kept]
        positive = best_positive[echoes.context[is_kept]]
        negative = best_negative[echoes.context[is_kept]]
        metrics = {
            "R10@1": float(np.mean(positive > negative)),
            "R11@1": float(np.mean(positive > np.maximum(negative, echo))),
            "echo above": float(np.mean(echo >= positive)),
        }
        rows.append({"group": name, "examples": len(echo), "metrics": metrics})
    return rows
