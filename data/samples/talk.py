"""Simulated conversations on finding and booking a table, with small talk.

Each step of a plan (`data.samples.plan`) is one turn of the user and one of the bot, which ends
with the question that the next step answers, if there is one.
"""

import random
from typing import NamedTuple

from data.samples.plan import BOOKING, MAX_STEPS, draw_plan
from data.samples.turns import Conversation, Turn
from data.samples.wording import (
    BOT,
    CRAVINGS,
    ORDINAL_PICKS,
    PERSONA,
    PRICE_HINTS,
    RESTAURANTS,
    SLOTS,
    TOPICS,
    USER,
    VALUES,
    WANT,
    slots_of,
)
from data.samples.world import SEARCH, Fact, restaurants


def simulate(count, seed=1, world=None):
    """Simulates conversations of 4 to 14 turns, no two with the same words.

    Args:
        count: How many, at least 1. The first of many are the same as few.
        seed: Integer; the same seed gives the same conversations.
        world: The restaurants to talk about; by default `restaurants(seed)`.

    Returns:
        Tuple of `Conversation`.

    Raises:
        ValueError: If `count` is less than 1.

    >>> [conversation] = simulate(1, seed=3)
    >>> for turn in conversation.turns[:4]:
    ...     print(f"{turn.speaker}: {turn.text}")
    user: Hello. I want a table at the Salted Spoon for two on Thursday.
    bot: Let us see. What name shall I put down?
    user: My name is Hugo.
    bot: A warm welcome, Hugo.
    """
    if count < 1:
        raise ValueError(f"At least one conversation is needed. Received: conversations={count}")
    world = restaurants(seed) if world is None else world
    rng = random.Random(f"conversations {seed}")
    found = {}
    while len(found) < count:
        conversation = _Talk(rng, world).conversation()
        found.setdefault(tuple(turn.text for turn in conversation.turns), conversation)
    return tuple(found.values())


def _scene_claims(*topics):
    return frozenset(("scene", scene) for topic in topics for scene in TOPICS[topic].scenes)


TASTES = _scene_claims("treat") | {("give", "cuisine")}
"""What answers both a question for a treat and one for a cuisine."""
ASKS = frozenset(("ask", slot) for slot in SLOTS["asks"])


def _craving(cuisine):
    """The cuisine as something to eat; other values stay as they are."""
    return CRAVINGS.get(cuisine, cuisine)


def _fill(template, value=None, **fields):
    """Fills a template with the value of a slot, or with slots and a restaurant's fields."""
    craving = _craving(fields.get("cuisine", value))
    hint = PRICE_HINTS.get(fields.get("price"))
    return template.format(value=value, craving=craving, hint=hint, **fields)


def _sentences(*parts):
    """Joins the sentences that are not empty, each with a capital letter."""
    return " ".join(part[0].upper() + part[1:] for part in parts if part)


class _Reply(NamedTuple):
    """The bot's turn before its question is added."""

    act: str
    text: str
    about: frozenset = frozenset()
    also: frozenset = frozenset()
    """Further claims that fit."""
    facts: tuple[Fact, ...] = ()


class _Talk:
    """A conversation being made.

    A method with the name of a step says the user's turn, and returns the bot's `_Reply`.
    """

    def __init__(self, rng, world):
        self.rng = rng
        self.told, self.steps = draw_plan(rng)
        goal = rng.choice(world)
        search = {slot: getattr(goal, slot) for slot in SEARCH}
        alike = [place for place in world if place != goal and search.items() <= vars(place).items()]
        self.offered = [goal, *alike[:1]] if ("choose", "pair") in self.steps else [goal]
        self.wishes = {slot: rng.choice(values) for slot, values in VALUES.items()} | search
        self.first_wishes = dict(self.wishes)  # another value where a correction follows
        for slot in (step[1] for step in self.steps if step[0] == "correct"):
            others = [value for value in VALUES[slot] if value != self.wishes[slot]]
            self.first_wishes[slot] = rng.choice(others)
        self.turns = []
        self.slots = {}  # as given so far
        self.named = []  # the restaurants offered; once one is settled on, that one
        self.settled = False
        self.scenes = set()  # (topic, scene) talked about
        self.prompted = False  # did the bot ask for what comes now?
        self.used = set()  # wordings

    def conversation(self):
        if len(self.steps) < MAX_STEPS and self.rng.random() < 0.25:
            self.turns.append(Turn("bot", "greet", self.pick(BOT["openings"])))
        for step, following in zip(self.steps, [*self.steps[1:], ("end",)], strict=True):
            reply = getattr(self, step[0])(*step[1:])
            self.bot(reply, *self.question(*following))
        return Conversation(tuple(self.turns), tuple(self.slots.items()), tuple(self.named))

    # === Speaking ===

    def pick(self, options, more=()):
        """Draws a wording: half the time from `more` if there is any, if possible a new one."""
        options = more if more and self.rng.random() < 0.5 else options
        option = self.rng.choice([o for o in options if o not in self.used] or options)
        self.used.add(option)
        return option

    def user(self, act, text, about=None, fits=frozenset(), slots=None):
        """Says the user's turn, with at most one claim and the claims that fit."""
        slots = slots or {}
        self.slots |= slots
        about = frozenset([about] if about else [])
        fits |= TASTES if fits & TASTES else frozenset()
        self.turns.append(Turn("user", act, _sentences(text), about, fits, tuple(slots.items())))

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
        text = _sentences(reply.text, question)
        self.turns.append(Turn("bot", reply.act, text, about, fits, facts=reply.facts))

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

    # === Steps ===

    def open(self, kind):
        given = {slot: self.first_wishes[slot] for slot in self.told}

        def told(*slots):
            return "".join(_fill(WANT[s], given[s]) for s in slots if s in given)

        what = told("price", "cuisine") or " nice"
        when = told("people", "day", "time")
        nods = BOT["greetings"]
        if kind == "chat":
            request, nods = self.pick(USER["chat openings"]), BOT["chat greetings"]
        elif kind == "visit":
            self.named, self.settled = self.offered, True
            name = self.named[0].name
            request = _fill(self.pick(USER["named openings"]), name=name, when=when)
        else:
            request = _fill(self.pick(USER["search openings"]), wanted=f"a{what} place{told('town')}{when}")
        introduction = _fill(self.pick(USER["introductions"]), **given) if "guest" in given else ""
        text = _sentences(self.pick(USER["greetings"]), introduction, request)
        self.user("open", text, slots=given)
        return self.respond(given | ({"name": name} if kind == "visit" else {}), nods)

    def give(self, slot):
        value = self.first_wishes[slot]
        text = _fill(self.pick(SLOTS["gives"][slot], SLOTS["gives value"].get(value)), value)
        self.user("give", text, ("give", slot), frozenset({("give", slot)}), {slot: value})
        return self.respond({slot: value}, SLOTS["nods"]["any"])

    def correct(self, slot):
        old, value = _craving(self.slots[slot]), self.wishes[slot]
        text = _fill(self.pick(SLOTS["corrections"][slot]), value, old=old)
        self.user("correct", text, slots={slot: value})
        return self.respond({slot: value}, lead=_fill(self.pick(SLOTS["nods"]["correction"]), old=old))

    def choose(self, _):
        if len(self.named) > 1:
            place = self.rng.randrange(2)
            name = self.named[place].name
            by_name = self.rng.random() < 0.6
            options = USER["picks"] if by_name else ORDINAL_PICKS[place]
            claim = ("point", name if by_name else "ordinal")
            self.user("point", _fill(self.pick(options), name=name), claim, self.pointers())
            self.named = [self.named[place]]
        else:
            self.user("accept", self.pick(USER["accepts"]))
        self.settled = True
        return self.respond({"name": self.named[0].name}, SLOTS["nods"]["any"])

    def detail(self, relation):
        place = self.rng.choice(self.named)
        template = self.pick(RESTAURANTS["detail questions"][relation])
        if len(self.named) > 1 or self.rng.random() < 0.3:
            text = _fill(template, place=f"the {place.name}")
            self.user("point", text, ("point", place.name), self.pointers())
        else:
            self.user("detail", _fill(template, place="the place"))
        key = {"dish": "cuisine", "price": "price"}.get(relation)
        plain = key in self.slots and self.rng.random() < 0.6
        answers = (RESTAURANTS["plain detail answers"] if plain else RESTAURANTS["detail answers"])[relation]
        basis = ("state", key, self.slots[key]) if plain else ("state", "name", place.name)
        text = _fill(self.pick(answers), **vars(place))
        claims = frozenset({("tell", relation), basis})
        return _Reply("tell", text, claims, facts=(place.fact(relation),))

    def recall(self, slot):
        value = self.slots[slot]
        self.user("recall", self.pick(SLOTS["recall questions"][slot]))
        text = _fill(self.pick(SLOTS["recall answers"][slot]), value)
        return _Reply("recall", text, frozenset({("say", slot, value)}))

    def chat(self, topic):
        _, scenes, kin = TOPICS[topic]
        key = self.rng.choice(sorted(scenes))
        fits = _scene_claims(topic, *kin) if self.prompted else frozenset()
        self.user("chat", self.pick(scenes[key].says), ("scene", key), fits)
        self.scenes.add((topic, key))
        return _Reply("react", self.pick(scenes[key].replies), frozenset({("scene", key)}))

    def persona(self, key):
        self.user("persona", self.pick(PERSONA[key]["questions"]))
        return _Reply("persona", self.pick(PERSONA[key]["answers"]), frozenset({("self", key)}))

    def part(self):
        self.user("part", self.pick(USER["thanks"]))
        also = frozenset(("scene", scene) for _, scene in self.scenes)
        if self.scenes and self.rng.random() < 0.5:
            topic, scene = self.rng.choice(sorted(self.scenes))
            text = self.pick(TOPICS[topic].scenes[scene].partings)
            return _Reply("part", text, frozenset({("scene", scene)}), also)
        known = self.slots | ({"name": self.named[0].name} if len(self.named) == 1 else {})
        options = [option for option in BOT["partings"] if known.keys() >= slots_of(option)]
        return self.inform("part", options, known, also=also)

    # === Replies to slots ===

    def respond(self, given, nods=("",), lead=""):
        """Offers or books once all that this needs is known, else takes note or just nods."""
        if not self.named and self.slots.keys() >= set(SEARCH):
            self.named = self.rng.sample(self.offered, len(self.offered))
            first, last = self.named[0], self.named[-1]
            fields = vars(first) | {"other": last.name, "other_dish": last.dish}
            offers = BOT["offers"] if first == last else BOT["pair offers"]
            return self.inform("offer", offers, fields, lead)
        if self.settled and self.slots.keys() >= set(BOOKING):
            fields = self.slots | {"name": self.named[0].name}
            return self.inform("book", BOT["bookings"], fields, lead)
        also = frozenset(("say", *item) for item in given.items())
        if not given or self.rng.random() < 0.3:
            return _Reply("ask", _sentences(lead, self.pick(nods)), also=also)
        slot, value = self.rng.choice(sorted(given.items()))
        note = _fill(self.pick(SLOTS["notes"][slot], SLOTS["notes value"].get(value)), value)
        return _Reply("note", _sentences(lead, note), frozenset({("say", slot, value)}), also)

    def inform(self, act, options, fields, lead="", also=frozenset()):
        """Says one of some options, each of which states the slots that it builds on; an offer those searched by."""
        template = self.pick(options)
        slots = [slot for slot in slots_of(template) if act != "offer" or slot in SEARCH]
        about = frozenset(("state", slot, fields[slot]) for slot in slots)
        relations = [key for key in (*SEARCH, "dish") if key in slots or f"{{{key}}}" in template]
        known = self.named if act == "offer" else ()
        facts = tuple(place.fact(relation) for place in known for relation in relations)
        return _Reply(act, _sentences(lead, _fill(template, **fields)), about, also, facts)

    def pointers(self):
        """Claims of the ways to single out a restaurant."""
        return frozenset(("point", name) for name in ("ordinal", *(p.name for p in self.named)))
