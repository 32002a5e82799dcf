"""The embedded sample of response selection: simulated conversations, written as raw files.

    python -m data.samples --task=selection --out=build/sample/raw --seed=1

writes `train.txt`, `dev.txt` and `test.txt` in the format of `data.corpora.smn`: lower-case tokens separated by single
spaces, the positive response to a context before the negative ones, three in `train`, nine in `dev` and `test`.

Responses are turns of users and bots that the context determines (`Turn.fits`). Reading is needed because two of the
three negatives and four of the nine are *misreadings* (`Turn.misreadings`): what someone would say here who has heard
every word and not followed the conversation. Shared words favour them as much as the positive response:

    the user               and a misreading
    corrects a wish        takes the former one, `not monday , i meant tuesday`
    gives a wish           takes note of one given before
    asks for a fact        tells another one about that restaurant, or that one about another restaurant
    asks which it was      tells another wish
    is asked for a wish    gives another one
    has chosen             books the other restaurant, or gets one wish wrong; an offer may miss one, too
    chats                  is answered on something else that was talked of, or another thing of the kind

Small talk is answered with related words, seldom with the same: `my socks are soaked`, `rubber boots would help`. The
other negatives are responses of other conversations that do not fit. Shared words still find many responses, most of
them offers and bookings.

The 2,500 conversations have 1,000 different words and give 11,800 training contexts, from which a small DAM learns in
minutes (recipe `dam-sample`).
"""

import random
from typing import NamedTuple

from data.samples.talk import Turn, simulate
from data.samples.world import tokenize, write_entries

NEGATIVES = {"train": 3, "dev": 9, "test": 9}
"""Negative responses to each context of a split."""
MISREADINGS = {"train": 2, "dev": 4, "test": 4}
"""Most misreadings among them."""
HELD_OUT = 0.15
"""Fraction of the conversations in `dev`, and in `test`."""
TRIES = 400
"""Most turns that are considered as negative responses to a context."""


class Example(NamedTuple):
    """A context and the response that it determines, from conversation number `conversation`."""

    conversation: int
    context: tuple[Turn, ...]
    response: Turn


def split(conversations):
    """Divides conversations into `train`, `dev` and `test`, in this order.

    >>> {name: len(part) for name, part in split(simulate(20)).items()}
    {'train': 14, 'dev': 3, 'test': 3}
    """
    held_out = int(HELD_OUT * len(conversations))
    dev, test = len(conversations) - 2 * held_out, len(conversations) - held_out
    return {"train": conversations[:dev], "dev": conversations[dev:test], "test": conversations[test:]}


def examples(conversations):
    """All turns but the first that the context determines, each with its context.

    >>> example = examples(simulate(1, seed=3))[0]
    >>> print(example.context[-1].text, example.response.text, sep="\\n")
    Hello. I want a table at the Salted Spoon for two on Thursday.
    Let us see. What name shall I put down?
    """
    return [
        Example(number, turns[:place], turn)
        for number, turns in enumerate(conversations)
        for place, turn in enumerate(turns)
        if turn.fits and place > 0
    ]


def draw_negatives(rng, example, pool, name):
    """Draws negative responses: misreadings of the context, then responses of other conversations that do not fit.

    Args:
        rng: A `random.Random`.
        example: The `Example` that they are for.
        pool: Examples whose responses may be drawn.
        name: The split, which says how many to draw.

    Returns:
        List of `Turn` with different texts; fewer if the pool has no more.
    """
    unfit = (
        other.response
        for other in rng.sample(pool, min(len(pool), TRIES))
        if other.conversation != example.conversation and not other.response.about <= example.response.fits
    )
    misreadings = example.response.misreadings
    texts = {tokenize(example.response.text)}
    chosen = _new(rng.sample(misreadings, len(misreadings)), MISREADINGS[name], texts)
    return chosen + _new(unfit, NEGATIVES[name] - len(chosen), texts)


def _new(turns, count, texts):
    """The first `count` of the turns whose texts are not among `texts`, to which they are added."""
    found = []
    for turn in turns:
        if len(found) == count:
            break
        if tokenize(turn.text) not in texts:
            texts.add(tokenize(turn.text))
            found.append(turn)
    return found


def smn_lines(name, conversations, seed=1, contexts=None):
    """The lines of a split, without their ends, of at most `contexts` contexts drawn at random; `None`: of all.

    Raises:
        ValueError: if the conversations are too few to draw negative responses from.

    >>> len(smn_lines("dev", simulate(60), contexts=7))
    70
    """
    rng = random.Random(f"smn {name} {seed}")
    pool = examples(conversations)
    chosen = pool if contexts is None else rng.sample(pool, min(contexts, len(pool)))
    lines = []
    for example in chosen:
        context = "\t".join(tokenize(turn.text) for turn in example.context)
        lines.append(f"1\t{context}\t{tokenize(example.response.text)}")
        lines += [f"0\t{context}\t{tokenize(turn.text)}" for turn in draw_negatives(rng, example, pool, name)]
    if not chosen or len(lines) < len(chosen) * (1 + NEGATIVES[name]):
        raise ValueError(
            f"More conversations are needed to find {NEGATIVES[name]} negative responses for each context "
            f"of {name}. Received: conversations={len(conversations)} in {name}"
        )
    return lines


def write_smn(directory, count=2500, seed=1, held_out=200):
    """Writes `train.txt`, `dev.txt` and `test.txt`; `held_out` is the number of contexts in dev, and in test."""
    if held_out < 1:
        raise ValueError(f"held_out must be at least 1. Received: held_out={held_out}")
    files = {}
    for name, part in split(simulate(count, seed)).items():
        lines = smn_lines(name, part, seed, None if name == "train" else held_out)
        files[f"{name}.txt"] = [line + "\n" for line in lines]
    return write_entries(directory, files)
