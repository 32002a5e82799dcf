"""How the speakers of a simulated conversation speak: they choose words, take turns and know what they claim."""

from typing import NamedTuple

from data.samples.turns import Turn
from data.samples.wording import BOT, SLOTS, TOPICS, VALUES, fill, sentences
from data.samples.world import SEARCH, Fact

ASKS = frozenset(("ask", slot) for slot in SLOTS["asks"])


def scene_claims(*topics):
    """The claims of all scenes of some topics."""
    return frozenset(("scene", scene) for topic in topics for scene in TOPICS[topic].scenes)


TASTES = scene_claims("treat") | {("give", "cuisine")}
"""What answers both a question for a treat and one for a cuisine."""


class Reply(NamedTuple):
    """The bot's turn before its question is added."""

    act: str
    text: str
    about: frozenset = frozenset()
    also: frozenset = frozenset()
    """Further claims that fit."""
    facts: tuple[Fact, ...] = ()
    misread: tuple[tuple[str, frozenset], ...] = ()
    """Replies that misread the context, with their claims."""


class Speaker:
    """A conversation being made: what was said, and what is known so far.

    Args:
        rng: A `random.Random` that draws what is said.
        other: One that draws what is not said: misreadings.
    """

    def __init__(self, rng, other):
        self.rng, self.other = rng, other
        self.turns = []
        self.slots = {}  # as given so far
        self.former = {}  # slot -> its value before it was corrected
        self.named = []  # the restaurants offered; once one is settled on, that one
        self.prompted = False  # did the bot ask for what comes now?
        self.used = set()  # wordings

    # === Wording ===

    def pick(self, options, more=()):
        """Draws a wording: half the time from `more` if there is any, if possible a new one."""
        option = self._draw(self.rng, options, more)
        self.used.add(option)
        return option

    def instead(self, claim, options, more=(), value=None, **fields):
        """A misreading: a wording drawn as in `pick` and filled, with its claim."""
        return fill(self._draw(self.other, options, more), value, **fields), frozenset({claim})

    def _draw(self, rng, options, more):
        options = more if more and rng.random() < 0.5 else options
        return rng.choice([option for option in options if option not in self.used] or options)

    def some(self, options, count):
        """At most so many of the options, drawn for misreadings."""
        options = sorted(options)
        return self.other.sample(options, min(count, len(options)))

    # === Taking turns ===

    def user(self, act, text, about=None, fits=frozenset(), slots=None, misread=()):
        """Says the user's turn, with at most one claim and the claims that fit."""
        slots = slots or {}
        self.slots |= slots
        about = frozenset([about] if about else [])
        fits |= TASTES if fits & TASTES else frozenset()
        turn = Turn("user", act, sentences(text), about, fits, tuple(slots.items()))
        self.turns.append(turn.with_misreadings((sentences(text), claims) for text, claims in misread))

    def bot(self, reply, question, asked):
        """Says the bot's reply and the question that it adds."""
        topics = {("ask", topic) for topic in TOPICS}
        unknown = {claim for claim in ASKS if claim[1] not in self.slots}
        unknown |= {("state", s, v) for s in SEARCH if s not in self.slots for v in VALUES[s]}
        known = {("state", *item) for item in self.slots.items()}
        known |= {("state", "name", place.name) for place in self.named}
        about = reply.about | asked
        decided = reply.about or (asked & ASKS and self.slots)
        fits = about | reply.also | topics | unknown | known if decided else frozenset()
        turn = Turn("bot", reply.act, sentences(reply.text, question), about, fits, facts=reply.facts)
        misread = ((sentences(text, question), claims | asked) for text, claims in reply.misread)
        self.turns.append(turn.with_misreadings(misread))

    def question(self, step, key=None):
        """What the bot asks when this step comes next, and the claim that it makes."""
        self.prompted = step == "give" or (step == "chat" and self.rng.random() < 0.5)
        if step == "choose":
            pair = len(self.named) > 1
            return self.pick(BOT["pair prompts"] if pair else BOT["accept prompts"]), frozenset()
        if not self.prompted:
            return "", frozenset()
        options = SLOTS["asks"][key] if step == "give" else TOPICS[key].questions
        return self.pick(options), frozenset({("ask", key)})
