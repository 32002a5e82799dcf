"""Scores of responses that repeat a turn of their own context: `evaluate.py --by=echo`.

A good ranking puts the response that a person gave above a turn that was said already. The
negatives of the corpora are from other conversations, so R10@1 does not show whether a model
prefers such echoes.
"""

import dataclasses

import numpy as np

from colloquy.engine.scoring import Group
from colloquy.tasks.selection.scoring import best_scores

ECHOES = {"last turn": 1, "turn before": 2, "two turns before": 3}
"""Name of a row -> the turn that becomes a candidate, counted from the end of its context."""


def echo_split(split, turn_from_end):
    """Makes a split whose contexts have one candidate each: a turn of their own.

    A context that is too short for `turn_from_end` gets no candidate. Neither does a context whose
    positive response has the words of the turn: there the turn is a correct answer.
    """
    positives = np.flatnonzero(split.label == 1)
    contexts_of_positives = split.context_of_line[positives].tolist()
    responses = split.responses.lists(positives)
    correct = set()
    for context, words in zip(contexts_of_positives, responses, strict=True):
        correct.add((context, *words))

    num_turns = split.num_turns_of_context
    contexts = np.flatnonzero(num_turns >= turn_from_end)
    turns = split.first_turn_of_context[contexts] + num_turns[contexts] - turn_from_end
    is_echo = np.zeros(len(contexts), bool)
    for place, words in enumerate(split.turns.lists(turns)):
        is_echo[place] = (contexts[place], *words) not in correct
    return dataclasses.replace(
        split,
        responses=split.turns.take(turns[is_echo]),
        context_of_line=contexts[is_echo],
        label=np.zeros(np.sum(is_echo), np.int32),
    )


def echo_rows(split, scores, score_lines):
    """Compares true responses with turns of their contexts.

    The metrics of a row:
        R10@1: the fraction of contexts whose best positive response beats every negative.
        R11@1: the fraction in which it also beats the turn, an eleventh candidate.
        echo above: the fraction in which the turn has at least the score of the best positive.

    All three are measured on the same contexts: those that `echo_split` gives a candidate and that
    have a positive and a negative response.

    Args:
        split: `SelectionSplit`.
        scores: The scores of its lines, float `(lines,)`.
        score_lines: Function of a `SelectionSplit` that returns the scores of its lines.

    Returns:
        A `Group` per name of `ECHOES`, except those without such a context.
    """
    best_positive = best_scores(split, scores, label=1)
    best_negative = best_scores(split, scores, label=0)
    is_ranked = np.isfinite(best_positive) & np.isfinite(best_negative)

    rows = []
    for name, turn_from_end in ECHOES.items():
        echoes = echo_split(split, turn_from_end)
        is_kept = is_ranked[echoes.context_of_line]
        if not is_kept.any():
            continue
        contexts = echoes.context_of_line[is_kept]
        echo = score_lines(echoes)[is_kept]
        positive = best_positive[contexts]
        negative = best_negative[contexts]
        metrics = {
            "R10@1": float(np.mean(positive > negative)),
            "R11@1": float(np.mean(positive > np.maximum(negative, echo))),
            "echo above": float(np.mean(echo >= positive)),
        }
        rows.append(Group(name, len(echo), metrics))
    return rows
