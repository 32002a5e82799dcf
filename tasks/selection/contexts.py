"""Draws contexts with positive and negative responses from whole conversations."""

import random

from colloquy.data.corpora.smn import Line

MAX_TURNS = 9
"""Most turns of a context: DAM reads the last nine before the response."""
FIRST_RESPONSE = 3
"""Dev and test: the first three turns of a conversation are no responses, so that a context has at
least three turns. In a conversation of two or three turns, the last one is the response."""
TRAINING_NEGATIVES = 3
"""Train: negative responses per context."""
HELD_OUT_NEGATIVES = 9
"""Dev and test: negative responses per context."""
MAX_DRAWS = 100
"""Largest number of draws per negative response, as few other responses may exist."""


def draw_lines(conversations, split, contexts, seed):
    """Draws the lines of a split.

    In train, every turn but the first of a conversation can be a response. Dev and test have one
    context for each conversation of two turns or more.

    Negative responses are turns of other conversations of the split, never first turns. Texts are
    not compared: a frequent answer, such as "yes", is drawn as often as it occurs, and a negative
    response can have the text of the positive one.

    Args:
        conversations: Lists of turns.
        split: `train`, `dev` or `test`.
        contexts: Train: largest number of contexts, drawn at random; 0: one for each response.
        seed: Seed of all random choices.

    Returns:
        A list of `data.corpora.smn.Line`: of each context the positive response, then the negative
        ones.
    """
    rng = random.Random(f"{split} {seed}")
    responses = []
    for number, turns in enumerate(conversations):
        for position in range(1, len(turns)):
            responses.append((number, position))

    num_negatives = TRAINING_NEGATIVES if split == "train" else HELD_OUT_NEGATIVES
    if split != "train":
        chosen = _draw_one_each(rng, conversations)
    elif contexts:
        chosen = rng.sample(responses, min(contexts, len(responses)))
    else:
        chosen = responses

    lines = []
    for number, position in chosen:
        turns = conversations[number]
        context = turns[max(0, position - MAX_TURNS) : position]
        lines.append(Line(1, context, turns[position]))
        for other, other_position in _draw_negatives(rng, responses, number, num_negatives):
            lines.append(Line(0, context, conversations[other][other_position]))
    return lines


def _draw_one_each(rng, conversations):
    """Draws one response of each conversation of two turns or more."""
    chosen = []
    for number, turns in enumerate(conversations):
        if len(turns) > 1:
            first = min(FIRST_RESPONSE, len(turns) - 1)
            chosen.append((number, rng.randrange(first, len(turns))))
    return chosen


def _draw_negatives(rng, responses, own, count):
    """Draws `count` different responses of conversations other than `own`.

    Returns fewer if `MAX_DRAWS` draws per response do not find enough.
    """
    drawn = []
    for _ in range(MAX_DRAWS * count):
        response = rng.choice(responses)
        if response[0] != own and response not in drawn:
            drawn.append(response)
        if len(drawn) == count:
            break
    return drawn
