"""The embedded sample corpus: simulated conversations, written as raw files for response selection.

    python -m data.simulator --out=build/sample/raw --conversations=600 --seed=1

writes `train.txt`, `dev.txt` and `test.txt` in the text format of SMN and DAM (Wu et al. 2017, Zhou et al. 2018):
`label TAB utterance TAB ... TAB response`, lower-case tokens parted by single spaces, oldest utterance first. In `train`
every right response is followed by a wrong one to the same context; in `dev` and `test` by nine.

The default 600 conversations give about 6,000 lines of `train` (420 conversations), and 150 contexts in each of `dev`
and `test` (90 conversations each); about 1,100 words. A small DAM learns them in a few minutes on two cores.

Only turns that the context decides are responses, right or wrong (`Turn.fits`). About half of the wrong ones are *hard*:
of the same dialog act, and of a few drawn the ones that share most words with the context. So counting shared words does
not help much (TF-IDF has R10@1 of about 0.37 in `dev`), while a reader of the context knows the answer.
"""

import collections
import os
import random
import re
import sys
import tempfile
from typing import NamedTuple

from absl import app, flags

from data.simulator_talk import Turn, simulate

WRONG = {"train": 1, "dev": 9, "test": 9}
"""Wrong responses to each context of a split."""
HELD_OUT_SHARE = 0.15
"""Share of the conversations that is `dev`, and that is `test`."""
RIVALS = 3
"""A hard wrong response is the best of this many in sharing words with the context."""
TRIES = 400
"""Most turns looked at to find wrong responses to one context."""


class Example(NamedTuple):
    """A context and the response that it decides; `conversation` is the place of theirs in the split."""

    conversation: int
    context: tuple[Turn, ...]
    response: Turn


def tokenize(text):
    """Splits off punctuation and lower-cases.

    >>> tokenize("The Tin Fox, 7 o'clock? Call 555-0107.")
    "the tin fox , 7 o'clock ? call 555-0107 ."
    """
    return " ".join(re.findall(r"\w+(?:['-]\w+)*|[^\w\s]", text.lower()))


def split(conversations):
    """Deals conversations out to `train`, `dev` and `test`, in this order.

    >>> {name: len(part) for name, part in split(simulate(20)).items()}
    {'train': 14, 'dev': 3, 'test': 3}
    """
    held_out = int(HELD_OUT_SHARE * len(conversations))
    dev, test = len(conversations) - 2 * held_out, len(conversations) - held_out
    return {
        "train": conversations[:dev],
        "dev": conversations[dev:test],
        "test": conversations[test:],
    }


def examples(conversations):
    """All turns but the first that the context decides, each with its context.

    >>> [example] = examples(simulate(1, seed=1))[:1]
    """
    return [
        Example(number, conversation.turns[:place], turn)
        for number, conversation in enumerate(conversations)
        for place, turn in enumerate(conversation.turns)
        if turn.fits and place > 0
    ]


def draw_wrong(rng, example, pool, count, hard_share=0.5):
    """Draws responses that are wrong in a context: of other conversations, distinct, all claiming something unfit.

    Args:
        rng: `random.Random`.
        example: The `Example`.
        pool: Examples to take responses from.
        count: How many.
        hard_share: Probability of each to be hard; where the pool has too few hard ones, others stand in.

    Returns:
        List of `Turn`, the hard ones first.

    Raises:
        ValueError: If the pool has too few.
    """
    context = {word for turn in example.context for word in tokenize(turn.text).split()}

    def wrong(candidates, number, taken):
        texts = {tokenize(turn.text) for turn in (example.response, *taken)}
        found = []
        for other in rng.sample(candidates, min(len(candidates), TRIES)):
            turn, text = other.response, tokenize(other.response.text)
            unfit = (
                other.conversation != example.conversation
                and not turn.about <= example.response.fits
            )
            if unfit and text not in texts and len(found) < number:
                texts.add(text)
                found.append(turn)
        return found

    hard = sum(rng.random() < hard_share for _ in range(count))
    alike = [other for other in pool if other.response.act == example.response.act]
    rivals = wrong(alike, RIVALS * hard, [])
    rivals.sort(key=lambda turn: -len(context & set(tokenize(turn.text).split())))
    chosen = rivals[:hard]
    chosen += wrong(pool, count - len(chosen), chosen)
    if len(chosen) < count:
        raise ValueError(f"no")
    return chosen
