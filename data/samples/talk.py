"""Simulated conversations on finding and booking a table, with small talk.

Each step of a plan (`data.samples.plan`) is one turn of the user and one of the bot, which ends
with the question that the next step answers, if there is one.
"""

import random

from data.samples.plan import BOOKING, MAX_STEPS, draw_plan
from data.samples.speaking import Reply, Speaker, scene_claims
from data.samples.turns import Conversation, Turn
from data.samples.wording import (
    BOT,
    CRAVINGS,
    ORDINAL_PICKS,
    PERSONA,
    RESTAURANTS,
    SLOTS,
    TOPICS,
    USER,
    VALUES,
    WANT,
    fill,
    sentences,
    slots_of,
)
from data.samples.world import SEARCH, restaurants


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
    rng, other = random.Random(f"conversations {seed}"), random.Random(f"misreadings {seed}")
    found = {}
    while len(found) < count:
        conversation = _Talk(rng, other, world).conversation()
        found.setdefault(tuple(turn.text for turn in conversation.turns), conversation)
    return tuple(found.values())


class _Talk(Speaker):
    """A conversation on a plan. A method with the name of a step says the user's turn and returns the bot's `Reply`.

    Beside what is said stands what a misreading would say: a wish as it was before it was corrected, a wish that was
    taken up before, another fact about the restaurant or that fact about another one, another scene of the topic.
    """

    def __init__(self, rng, other, world):
        super().__init__(rng, other)
        self.world = world
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
        self.settled = False  # on one restaurant
        self.scenes = set()  # (topic, scene) talked about

    def conversation(self):
        if len(self.steps) < MAX_STEPS and self.rng.random() < 0.25:
            self.turns.append(Turn("bot", "greet", self.pick(BOT["openings"])))
        for step, following in zip(self.steps, [*self.steps[1:], ("end",)], strict=True):
            reply = getattr(self, step[0])(*step[1:])
            self.bot(reply, *self.question(*following))
        return Conversation(tuple(self.turns), tuple(self.slots.items()), tuple(self.named))

    # === Steps ===

    def open(self, kind):
        given = {slot: self.first_wishes[slot] for slot in self.told}

        def told(*slots):
            return "".join(fill(WANT[s], given[s]) for s in slots if s in given)

        what = told("price", "cuisine") or " nice"
        when = told("people", "day", "time")
        nods = BOT["greetings"]
        if kind == "chat":
            request, nods = self.pick(USER["chat openings"]), BOT["chat greetings"]
        elif kind == "visit":
            self.named, self.settled = self.offered, True
            name = self.named[0].name
            request = fill(self.pick(USER["named openings"]), name=name, when=when)
        else:
            request = fill(self.pick(USER["search openings"]), wanted=f"a{what} place{told('town')}{when}")
        introduction = fill(self.pick(USER["introductions"]), **given) if "guest" in given else ""
        text = sentences(self.pick(USER["greetings"]), introduction, request)
        self.user("open", text, slots=given)
        return self.respond(given | ({"name": name} if kind == "visit" else {}), nods)

    def give(self, slot):
        value, answers, further = self.first_wishes[slot], SLOTS["gives"], SLOTS["gives value"]
        others = self.some((self.first_wishes | self.slots).items(), 4)
        misread = [self.instead(("give", s), answers[s], further.get(v), value=v) for s, v in others]
        text = fill(self.pick(answers[slot], further.get(value)), value)
        self.user("give", text, ("give", slot), frozenset({("give", slot)}), {slot: value}, misread)
        return self.respond({slot: value}, SLOTS["nods"]["any"])

    def correct(self, slot):
        self.former[slot], value = self.slots[slot], self.wishes[slot]
        old = CRAVINGS.get(self.former[slot], self.former[slot])
        text = fill(self.pick(SLOTS["corrections"][slot]), value, old=old)
        self.user("correct", text, slots={slot: value})
        return self.respond({slot: value}, lead=fill(self.pick(SLOTS["nods"]["correction"]), old=old))

    def choose(self, _):
        if len(self.named) > 1:
            place = self.rng.randrange(2)
            name = self.named[place].name
            by_name = self.rng.random() < 0.6
            options = USER["picks"] if by_name else ORDINAL_PICKS[place]
            claim = ("point", name if by_name else "ordinal")
            self.user("point", fill(self.pick(options), name=name), claim, self.pointers())
            self.named = [self.named[place]]
        else:
            self.user("accept", self.pick(USER["accepts"]))
        self.settled = True
        return self.respond({"name": self.named[0].name}, SLOTS["nods"]["any"])

    def detail(self, relation):
        place = self.rng.choice(self.named)
        template = self.pick(RESTAURANTS["detail questions"][relation])
        if len(self.named) > 1 or self.rng.random() < 0.3:
            text = fill(template, place=f"the {place.name}")
            self.user("point", text, ("point", place.name), self.pointers())
        else:
            self.user("detail", fill(template, place="the place"))
        answers, key = RESTAURANTS["detail answers"], {"dish": "cuisine", "price": "price"}.get(relation)
        plain = key in self.slots and self.rng.random() < 0.6
        basis = ("state", key, self.slots[key]) if plain else ("state", "name", place.name)
        template = self.pick((RESTAURANTS["plain detail answers"] if plain else answers)[relation])
        about = frozenset({("tell", relation, place.name), basis})
        elsewhere = [other for other in self.named if other != place]
        misread = [(fill(template, **vars(p)), frozenset({("tell", relation, p.name)})) for p in elsewhere]
        others = self.some(answers.keys() - {relation}, 3)
        misread += [self.instead(("tell", r, place.name), answers[r], **vars(place)) for r in others]
        return Reply("tell", fill(template, **vars(place)), about, facts=(place.fact(relation),), misread=misread)

    def recall(self, slot):
        value, answers = self.slots[slot], SLOTS["recall answers"]
        self.user("recall", self.pick(SLOTS["recall questions"][slot]))
        template = self.pick(answers[slot])
        others = self.some(((s, v) for s, v in self.slots.items() if s in answers and s != slot), 3)
        misread = [self.instead(("say", s, v), answers[s], value=v) for s, v in others]
        misread += self.as_before(template, slot)
        return Reply("recall", fill(template, value), frozenset({("say", slot, value)}), misread=misread)

    def chat(self, topic):
        _, scenes, kin = TOPICS[topic]
        key = self.rng.choice(sorted(scenes))
        fits = scene_claims(topic, *kin) if self.prompted else frozenset()
        away = [scene for t in TOPICS if t not in (topic, *kin) for scene in TOPICS[t].scenes.items()]
        misread = [self.instead(("scene", name), scene.says) for name, scene in self.some(away, 3)]
        self.user("chat", self.pick(scenes[key].says), ("scene", key), fits, misread=misread)
        others = self.scenes | {(topic, other) for other in self.some(scenes.keys() - {key}, 2)}
        misread = [self.instead(("scene", s), TOPICS[t].scenes[s].replies) for t, s in self.some(others, 3)]
        self.scenes.add((topic, key))
        return Reply("react", self.pick(scenes[key].replies), frozenset({("scene", key)}), misread=misread)

    def persona(self, key):
        self.user("persona", self.pick(PERSONA[key]["questions"]))
        others = self.some(PERSONA.keys() - {key}, 3)
        misread = [self.instead(("self", other), PERSONA[other]["answers"]) for other in others]
        return Reply("persona", self.pick(PERSONA[key]["answers"]), frozenset({("self", key)}), misread=misread)

    def part(self):
        self.user("part", self.pick(USER["thanks"]))
        also = frozenset(("scene", scene) for _, scene in self.scenes)
        if self.scenes and self.rng.random() < 0.5:
            topic, key = self.rng.choice(sorted(self.scenes))
            scenes = TOPICS[topic].scenes
            misread = [self.instead(("scene", other), scenes[other].partings) for other in self.some(scenes, 4)]
            return Reply("part", self.pick(scenes[key].partings), frozenset({("scene", key)}), also, misread=misread)
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
            return Reply("ask", sentences(lead, self.pick(nods)), also=also)
        slot, value = self.rng.choice(sorted(given.items()))
        notes, further = SLOTS["notes"], SLOTS["notes value"]
        template = self.pick(notes[slot], further.get(value))
        others = self.some(((s, v) for s, v in self.slots.items() if s not in given), 3)
        misread = [self.instead(("say", s, v), notes[s], further.get(v), value=v) for s, v in others]
        misread = [(sentences(lead, text), claims) for text, claims in misread + self.as_before(template, slot)]
        note = sentences(lead, fill(template, value))
        return Reply("note", note, frozenset({("say", slot, value)}), also, misread=misread)

    def inform(self, act, options, fields, lead="", also=frozenset()):
        """Says one of some options, each of which states the slots that it builds on; an offer those searched by."""
        template = self.pick(options)
        slots = slots_of(template) & ({*SEARCH} if act == "offer" else {"name", *VALUES})
        about = frozenset(("state", slot, fields[slot]) for slot in slots)
        relations = [key for key in (*SEARCH, "dish") if key in slots or f"{{{key}}}" in template]
        known = self.named if act == "offer" else ()
        facts = tuple(place.fact(relation) for place in known for relation in relations)
        misread = []
        for changed in (fields | change for change in self.changes(act, slots)):
            claims = frozenset(("state", slot, changed[slot]) for slot in slots)
            misread.append((sentences(lead, fill(template, **changed)), claims))
        return Reply(act, sentences(lead, fill(template, **fields)), about, also, facts, misread)

    # === Misreadings ===

    def as_before(self, template, slot):
        """What takes a slot to be as it was before its correction, if there was one."""
        if slot not in self.former or "{" not in template:
            return []
        value = self.former[slot]
        return [(fill(template, value), frozenset({("say", slot, value)}))]

    def changes(self, act, slots):
        """What an offer, a booking or a farewell may have wrong: a former wish, the other restaurant, a wish missed."""
        yield from ({slot: value} for slot, value in self.former.items() if slot in slots)
        yield from ({"name": place.name} for place in self.offered if "name" in slots)
        if act == "offer":
            missed = [sum(getattr(place, slot) != self.slots[slot] for slot in SEARCH) for place in self.world]
            near = [place for place, count in zip(self.world, missed, strict=True) if count in (1, 2)]
            yield from map(vars, self.other.sample(near, min(3, len(near))))
        if act == "book":
            yield from ({slot: self.other.choice(VALUES[slot])} for slot in self.some(slots - {"name"}, 3))

    def pointers(self):
        """Claims of the ways to single out a restaurant."""
        return frozenset(("point", name) for name in ("ordinal", *(p.name for p in self.named)))
