"""Draws contexts with positive and negative responses from whole conversations."""

import random

from colloquy.data.corpora.smn import Line

MAX_TURNS = 9
"""Turns of a context, the last ones before the response, as DAM reads."""
FIRST_RESPONSE = 3
"""Dev and test: a response is the fourth turn of its conversation or a later one; the last turn of
a shorter conversation."""
TRAINING_NEGATIVES = 3
"""Train: negative responses per context."""
HELD_OUT_NEGATIVES = 9
"""Dev and test: negative responses per context."""


def draw_lines(conversations, split, contexts, seed):
    """Draws the lines of a split, as `data.corpora.smn.read` reads them from files.

    In train, every turn but the first of a conversation can be a response. Dev and test have one
    context per conversation, with `HELD_OUT_NEGATIVES`. Negative responses are turns of other
    conversations of the split; a frequent answer, such as "yes", is as frequent among them.

    Args:
        conversations: Lists of turns.
        split: `train`, `dev` or `test`.
        contexts: Number of contexts of train; 0: all.
        seed: Seed of all random choices.
    """
    rng = random.Random(f"{split} {seed}")
    responses = []
    for number, turns in enumerate(conversations):
        for position in range(1, len(turns)):
            responses.append((number, position))

    num_negatives = HELD_OUT_NEGATIVES
    if split != "train":
        chosen = _draw_one_each(rng, conversations)
    else:
        num_negatives = TRAINING_NEGATIVES
        chosen = rng.sample(responses, min(contexts, len(responses))) if contexts else responses

    lines = []
    for number, position in chosen:
        turns = conversations[number]
        context = turns[max(0, position - MAX_TURNS) : position]
        lines.append(Line(1, context, turns[position]))
        for other, place in _draw_negatives(rng, responses, number, num_negatives):
            lines.append(Line(0, context, conversations[other][place]))
    return lines


def _draw_one_each(rng, conversations):
    """Draws one response from each conversation that has any."""
    chosen = []
    for number, turns in enumerate(conversations):
        if len(turns) > 1:
            first = min(FIRST_RESPONSE, len(turns) - 1)
            chosen.append((number, rng.randrange(first, len(turns))))
    return chosen


def _draw_negatives(rng, responses, own, count):
    """Draws responses of conversations other than `own`; fewer than `count` if there are none."""
    drawn = []
    for _ in range(100 * count):
        response = rng.choice(responses)
        if response[0] != own and response not in drawn:
            drawn.append(response)
        if len(drawn) == count:
            break
    return drawn
