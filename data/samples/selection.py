"""The embedded sample corpus: simulated conversations, written as raw files for response selection.

    python -m data.samples --task=selection --out=build/sample/raw --seed=1

writes `train.txt`, `dev.txt` and `test.txt` in the text format of SMN and DAM (Wu et al. 2017,
Zhou et al. 2018): `label TAB utterance TAB ... TAB utterance TAB response`, lower-case tokens
parted by single spaces, oldest utterance first. In `train` each right response is followed by one
wrong response to the same context; in `dev` and `test` by nine.

The default 600 conversations give about 5,600 lines of `train` (420 conversations), and 150
contexts in each of `dev` and `test` (90 conversations each); 1,000 different words. A small DAM
(64 dimensions, one level, four epochs) trains on them in a few minutes on two cores.

Only turns that the context decides are responses, right or wrong (`Turn.fits`). About half of the
wrong ones are *hard*: of the same dialog act, and chosen for sharing words with the context. So
overlap alone does not help much (TF-IDF cosine between context and response: R10@1 0.34 in `dev`,
0.36 in `test`), while who reads the context knows the answer.
"""

import random
from typing import NamedTuple

from data.samples.files import tokenize, write_entries
from data.samples.talk import simulate
from data.samples.turns import Turn

WRONG = {"train": 1, "dev": 9, "test": 9}
"""Wrong responses to each context of a split."""
HELD_OUT_SHARE = 0.15
"""Share of the conversations that is `dev`, and that is `test`."""
RIVALS = 2
"""A hard response is the one of this many of the same act that shares most words."""
TRIES = 400
"""Most turns looked at to find the wrong responses to one context."""


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
    held_out = int(HELD_OUT_SHARE * len(conversations))
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


def draw_wrong(rng, example, pool, count, hard_share=0.5):
    """Draws responses of other conversations that claim something unfit in a context.

    Args:
        rng: A `random.Random`.
        example: The `Example` they are wrong for.
        pool: Examples whose responses may be drawn.
        count: How many to draw.
        hard_share: How probable it is for each to be a hard one (see the head of the module). Where
            the pool has too few hard ones, others stand in.

    Returns:
        List of `Turn`, the hard ones first, all of different texts; fewer than `count` where the
        pool has no more.
    """
    hard = sum(rng.random() < hard_share for _ in range(count))
    alike = [other for other in pool if other.response.act == example.response.act]
    rivals = _unfit(rng, example, alike, RIVALS * hard)
    heard = {word for turn in example.context for word in tokenize(turn.text).split()}
    rivals.sort(key=lambda turn: -len(heard & set(tokenize(turn.text).split())))
    chosen = rivals[:hard]
    return chosen + _unfit(rng, example, pool, count - len(chosen), chosen)


def _unfit(rng, example, pool, count, taken=()):
    """At most `count` random turns of the pool that are wrong for the example, no text twice."""
    texts = {tokenize(turn.text) for turn in (example.response, *taken)}
    found = []
    for other in rng.sample(pool, min(len(pool), TRIES)):
        if len(found) == count:
            break
        turn, text = other.response, tokenize(other.response.text)
        elsewhere = other.conversation != example.conversation
        if elsewhere and text not in texts and not turn.about <= example.response.fits:
            texts.add(text)
            found.append(turn)
    return found


def smn_lines(name, conversations, seed=1, contexts=None, hard_share=0.5):
    """Writes down the conversations of one split in the text format of SMN and DAM.

    Args:
        name: The split, `"train"`, `"dev"` or `"test"`, which tells the number of wrong responses.
        conversations: Those of the split.
        seed: Integer, for drawing.
        contexts: If given, at most so many are drawn at random, else all are used in order.
        hard_share: See `draw_wrong`.

    Returns:
        List of lines without their ends.

    Raises:
        ValueError: If the conversations are too few to draw wrong responses from.

    >>> len(smn_lines("dev", simulate(60), contexts=7))
    70
    """
    rng = random.Random(f"smn {name} {seed}")
    pool = examples(conversations)
    chosen = pool if contexts is None else rng.sample(pool, min(contexts, len(pool)))
    lines = []
    for example in chosen:
        wrong = draw_wrong(rng, example, pool, WRONG[name], hard_share)
        context = "\t".join(tokenize(turn.text) for turn in example.context)
        for label, turn in ((1, example.response), *((0, turn) for turn in wrong)):
            lines.append(f"{label}\t{context}\t{tokenize(turn.text)}")
    if not chosen or len(lines) < len(chosen) * (1 + WRONG[name]):
        raise ValueError(
            f"More conversations are needed to find {WRONG[name]} wrong responses for each context "
            f"of {name}. Received: conversations={len(conversations)} in {name}"
        )
    return lines


def write_smn(directory, count=600, seed=1, held_out=150, hard_share=0.5):
    """Simulates conversations and writes `train.txt`, `dev.txt` and `test.txt`, or nothing at all.

    Args:
        directory: Where; made if missing. Files of these names are replaced.
        count: How many conversations to simulate for the three splits together.
        seed: Integer; the same seed writes the same bytes.
        held_out: Most contexts in each of `dev` and `test`, at least 1.
        hard_share: Share of hard wrong responses, 0 to 1.

    Returns:
        The number of lines of each file, as `{"train.txt": 5644, ...}`.

    Raises:
        ValueError: If an argument is out of range, or the conversations are too few.
        OSError: If the files cannot be written.
    """
    if held_out < 1:
        raise ValueError(f"held_out must be at least 1. Received: held_out={held_out}")
    if not 0 <= hard_share <= 1:
        raise ValueError(f"hard_share must be from 0 to 1. Received: hard_share={hard_share}")
    files = {}
    for name, part in split(simulate(count, seed)).items():
        contexts = None if name == "train" else held_out
        files[f"{name}.txt"] = smn_lines(name, part, seed, contexts, hard_share)
    return write_entries(directory, {name: [line + "\n" for line in lines] for name, lines in files.items()})
