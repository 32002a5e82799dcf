"""The embedded sample of response selection, in the format of `data.corpora.smn`: `train.txt`,
`dev.txt`, `test.txt`.

Responses are turns of users and bots that the context determines (`Turn.act`). Reading is needed
because two of three negatives in train, four of nine in dev and test, are *misreadings*: they
contain the words of the context and contradict it. Shared words favour them as much as the positive
response:

    the user               and a misreading
    corrects a wish        takes the former one, `not monday , i meant tuesday`
    gives a wish           takes note of one given before
    asks for a fact        tells another one about that restaurant, or that one about another
    restaurant asks which it was      tells another wish is asked for a wish    gives another one
    has chosen             books the other restaurant, or gets one wish wrong; an offer may miss
    one, too chats                  is answered on something else that was talked of, or another
    thing of the kind

Small talk is answered with related words, seldom with the same: `my socks are soaked`, `rubber
boots would help`. The other negatives are responses of other conversations that do not fit.

2,500 conversations have 1,000 different words and 11,800 training contexts: minutes for the recipe
`dam-sample`.
"""

import random

from colloquy.data.samples.talk import simulate
from colloquy.data.samples.world import tokenize, write_entries

NEGATIVES = {"train": (2, 3), "dev": (4, 9), "test": (4, 9)}
"""Split -> maximum number of misreadings, and number of negative responses, per context."""
HELD_OUT = 0.15  # fraction of the conversations in `dev`, and in `test`
TRIES = 400  # number of turns considered as negative responses to a context


def split(conversations):
    """Divides conversations into `train`, `dev` and `test`, in this order."""
    held_out = int(HELD_OUT * len(conversations))
    dev, test = len(conversations) - 2 * held_out, len(conversations) - held_out
    return {
        "train": conversations[:dev],
        "dev": conversations[dev:test],
        "test": conversations[test:],
    }


def examples(conversations):
    """Each turn but the first that the context determines: its conversation's number, its context,
    the `Turn`.
    """
    return [
        (number, turns[:place], turn)
        for number, turns in enumerate(conversations)
        for place, turn in enumerate(turns)
        if turn.act and place > 0
    ]


def draw_negatives(rng, example, pool, name):
    """Draws negative responses: misreadings of the context, then responses of other conversations
    that do not fit.

    They are different texts in tokens, `NEGATIVES` of split `name` unless the `pool` of examples
    has fewer.
    """
    number, _, response = example
    tried = rng.sample(pool, min(len(pool), TRIES))
    unfit = [
        turn.text for other, _, turn in tried if other != number and turn.act not in response.fits
    ]
    misreadings, chosen = (
        rng.sample(response.misreadings, len(response.misreadings)),
        {tokenize(response.text): None},
    )
    for texts, most in zip((misreadings, unfit), NEGATIVES[name], strict=True):
        for text in texts:
            if len(chosen) > most:
                break
            chosen[tokenize(text)] = None
    return list(chosen)[1:]


def smn_lines(name, conversations, seed=1, contexts=None):
    """The lines of a split, of at most `contexts` contexts drawn at random; `None`: of all."""
    rng = random.Random(f"smn {name} {seed}")
    pool = examples(conversations)
    chosen = pool if contexts is None else rng.sample(pool, min(contexts, len(pool)))
    lines = []
    for example in chosen:
        _, turns, response = example
        context = "\t".join(tokenize(turn.text) for turn in turns)
        lines.append(f"1\t{context}\t{tokenize(response.text)}\n")
        lines += [f"0\t{context}\t{text}\n" for text in draw_negatives(rng, example, pool, name)]
    return lines


def write_smn(directory, count=2500, seed=1, held_out=200):
    """Writes the three files; `held_out` is the number of contexts in dev, and in test."""
    parts = split(simulate(count, seed)).items()
    limits = {"train": None, "dev": held_out, "test": held_out}
    return write_entries(
        directory,
        {f"{name}.txt": smn_lines(name, part, seed, limits[name]) for name, part in parts},
    )
