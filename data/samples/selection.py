"""The embedded sample of response selection: simulated conversations, written as raw files.

    python -m data.samples --task=selection --out=build/sample/raw --seed=1

writes `train.txt`, `dev.txt` and `test.txt` in the text format of SMN and DAM (Wu et al. 2017, Zhou et al. 2018):
`label TAB utterance TAB ... TAB utterance TAB response`, lower-case tokens separated by single spaces, oldest utterance
first. In `train` the positive response to a context is followed by three negative ones, in `dev` and `test` by nine.

Responses are turns of users and bots that the context decides (`Turn.fits`). What makes the task one of reading: two of
the three negatives and four of the nine are *misreadings* (`Turn.misreadings`), what someone would say here who has
heard every word and not followed the conversation. The same words speak for them as for the positive response:

    the user               and a misreading
    corrects a wish        takes the former one, `not monday , i meant tuesday`
    gives a wish           takes note of one given before
    asks for a fact        tells another one about that restaurant, or that one about another restaurant
    asks which it was      tells another wish
    is asked for a wish    gives another one
    has chosen             books the other restaurant, or gets one wish wrong; an offer may miss one, too
    chats                  is answered on something else that was talked of, or another thing of the kind

Small talk is answered with related words, seldom with the same: `my socks are soaked`, `rubber boots would help`. The
other negatives are responses of other conversations that do not fit. Shared words still find many responses, of offers
and bookings most; nothing is taken away from them.

The 2,500 conversations have 1,000 different words. They make 11,800 contexts of train, of which a small DAM learns in
minutes (recipe `dam-sample`).
"""

import random
from typing import NamedTuple

from data.samples.files import tokenize, write_entries
from data.samples.talk import simulate
from data.samples.turns import Turn

NEGATIVES = {"train": 3, "dev": 9, "test": 9}
"""Negative responses to each context of a split."""
HELD_OUT = 0.15
"""Fraction of the conversations that is `dev`, and that is `test`."""
MISREADINGS = {"train": 2, "dev": 4, "test": 4}
"""How many of them are misreadings, at most."""
TRIES = 400
"""Most turns looked at to find the negative responses to one context."""


class Example(NamedTuple):
    """A context and the response that it decides, from conversation number `conversation`."""

    conversation: int
    context: tuple[Turn, ...]
    response: Turn


def split(conversations):
    """Deals conversations out to `train`, `dev` and `test`, in this order.

    >>> {name: len(part) for name, part in split(simulate(20)).items()}
    {'train': 14, 'dev': 3, 'test': 3}
    """
    held_out = int(HELD_OUT * len(conversations))
    dev, test = len(conversations) - 2 * held_out, len(conversations) - held_out
    return {
        "train": conversations[:dev],
        "dev": conversations[dev:test],
        "test": conversations[test:],
    }


def examples(conversations):
    """All turns but the first that the context decides, each with its context.

    >>> example = examples(simulate(1, seed=3))[0]
    >>> print(example.context[-1].text)
    Hello. I want a table at the Salted Spoon for two on Thursday.
    >>> print(example.response.text)
    Let us see. What name shall I put down?
    """
    return [
        Example(number, conversation.turns[:place], turn)
        for number, conversation in enumerate(conversations)
        for place, turn in enumerate(conversation.turns)
        if turn.fits and place > 0
    ]


def draw_negatives(rng, example, pool, count, misread):
    """Draws negative responses to a context: misreadings of it, then responses of other conversations that do not fit.

    Args:
        rng: A `random.Random`.
        example: The `Example` they are for.
        pool: Examples whose responses may be drawn.
        count: How many to draw.
        misread: How many of them are misreadings; where there are fewer, others stand in.

    Returns:
        List of `Turn` of different texts; fewer than `count` where the pool has no more.
    """
    misreadings = example.response.misreadings
    unfit = (
        other.response
        for other in rng.sample(pool, min(len(pool), TRIES))
        if other.conversation != example.conversation and not other.response.about <= example.response.fits
    )
    texts = {tokenize(example.response.text)}
    chosen = _new(rng.sample(misreadings, len(misreadings)), misread, texts)
    return chosen + _new(unfit, count - len(chosen), texts)


def _new(turns, count, texts):
    """The first `count` of the turns whose texts are not among `texts`, to which they are added."""
    found = []
    for turn in turns:
        if len(found) == count:
            break
        if (text := tokenize(turn.text)) not in texts:
            texts.add(text)
            found.append(turn)
    return found


def smn_lines(name, conversations, seed=1, contexts=None):
    """Writes down the conversations of one split in the text format of SMN and DAM.

    Args:
        name: The split, `"train"`, `"dev"` or `"test"`, which tells the number of negative responses.
        conversations: Those of the split.
        seed: Integer, for drawing.
        contexts: If given, at most so many are drawn at random, else all are used in order.

    Returns:
        List of lines without their ends.

    Raises:
        ValueError: If the conversations are too few to draw negative responses from.

    >>> len(smn_lines("dev", simulate(60), contexts=7))
    70
    """
    rng = random.Random(f"smn {name} {seed}")
    pool = examples(conversations)
    chosen = pool if contexts is None else rng.sample(pool, min(contexts, len(pool)))
    lines = []
    for example in chosen:
        wrong = draw_negatives(rng, example, pool, NEGATIVES[name], MISREADINGS[name])
        context = "\t".join(tokenize(turn.text) for turn in example.context)
        for label, turn in ((1, example.response), *((0, turn) for turn in wrong)):
            lines.append(f"{label}\t{context}\t{tokenize(turn.text)}")
    if not chosen or len(lines) < len(chosen) * (1 + NEGATIVES[name]):
        raise ValueError(
            f"More conversations are needed to find {NEGATIVES[name]} negative responses for each context "
            f"of {name}. Received: conversations={len(conversations)} in {name}"
        )
    return lines


def write_smn(directory, count=2500, seed=1, held_out=200):
    """Simulates conversations and writes `train.txt`, `dev.txt` and `test.txt`, or nothing at all.

    Args:
        directory: Where; made if missing. Files of these names are replaced.
        count: How many conversations to simulate for the three splits together.
        seed: Integer; the same seed writes the same bytes.
        held_out: Most contexts in each of `dev` and `test`, at least 1.

    Returns:
        The number of lines of each file, as `{"train.txt": 47172, ...}`.

    Raises:
        ValueError: If an argument is out of range, or the conversations are too few.
        OSError: If the files cannot be written.
    """
    if held_out < 1:
        raise ValueError(f"held_out must be at least 1. Received: held_out={held_out}")
    files = {}
    for name, part in split(simulate(count, seed)).items():
        contexts = None if name == "train" else held_out
        files[f"{name}.txt"] = smn_lines(name, part, seed, contexts)
    return write_entries(directory, {name: [line + "\n" for line in lines] for name, lines in files.items()})
