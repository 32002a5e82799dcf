"""Simulated conversations on finding and booking a table, with small talk.

A plan of two to seven steps is drawn at random. Each step is a turn of the user and one of the bot, which ends with the
question that the next step answers, if there is one.

    open kind          the user wants to `find` a restaurant, find one and `book` it, book a `visit` to one by name,
                       or to `chat`
    give slot          answers the bot's question for a slot that the opening left out
    correct slot       gives it another value     recall slot    asks which value was given
    choose offered     settles on a restaurant, a `single` one or one of a `pair`
    detail relation    asks a fact about one      part           says goodbye
    chat topic         small talk                 persona key    asks the bot about itself

A turn makes *claims*: it is wrong in the place of another if one of them does not fit there.

    ("say", slot, value)     takes up what the user has just said or asked for
    ("state", slot, value)   builds on anything said before
    ("ask", slot or topic)   asks for it          ("give", slot)    answers that question
    ("tell", relation, name) states a fact        ("point", name)   singles out a restaurant
    ("scene", scene)         is small talk of it  ("self", key)     is the bot's on itself
"""

import random
from typing import NamedTuple

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
from data.samples.world import BOOKING, SEARCH, draw_wishes, other_value, restaurants

MAX_STEPS = 7
ASKS = {("ask", slot) for slot in SLOTS["asks"]}
TASTES = {("scene", scene) for scene in TOPICS["treat"].scenes} | {("give", "cuisine")}
"""Answers to both a question for a treat and one for a cuisine."""


class Turn(NamedTuple):
    """A turn of the user or the bot."""

    text: str
    about: frozenset
    """The claims it makes."""
    fits: frozenset = frozenset()
    """The claims that are right in its place; empty if the context does not determine the turn."""
    misreadings: tuple = ()
    """Turns that contain words of the conversation and contradict it: some claim of each does not fit."""


def simulate(count, seed=1):
    """Simulates conversations of 4 to 14 turns about the world `restaurants(seed)`; no two have the same words.

    A larger `count` gives the same conversations first.

    Returns:
        Tuple of conversations, each a tuple of `Turn` of user and bot alternately; the last is the bot's.

    >>> [conversation] = simulate(1, seed=3)
    >>> print(conversation[0].text, conversation[1].text, sep="\\n")
    Hello. I want a table at the Salted Spoon for two on Thursday.
    Let us see. What name shall I put down?
    """
    if count < 1:
        raise ValueError(f"At least one conversation is needed. Received: conversations={count}")
    world = restaurants(seed)
    rng, other = random.Random(f"conversations {seed}"), random.Random(f"misreadings {seed}")
    found = {}
    while len(found) < count:
        conversation = _Talk(rng, other, world).conversation()
        found.setdefault(tuple(turn.text for turn in conversation), conversation)
    return tuple(found.values())


# === Plans ===


def draw_plan(rng):
    """Draws the slots that the opening tells and the steps, as `[("open", "find"), ("give", "town"), ...]`."""
    while True:
        told, steps = _spine(rng)
        extras = list(_extras(rng, told, steps))
        rng.shuffle(extras)
        for place, step in sorted(extras, key=lambda extra: -extra[0]):  # the last place first
            steps.insert(place, step)
        if rng.random() < 0.7:
            steps.append(("part",))
        if 2 <= len(steps) <= MAX_STEPS:
            return told, steps


def _spine(rng):
    """The slots told in the opening, and the steps that lead to an offer or a booking."""
    kind = rng.choices(("find", "book", "visit", "chat"), (4, 4, 3, 3))[0]
    search = SEARCH if kind in ("find", "book") else ()
    booking = BOOKING if kind in ("book", "visit") else ()
    told = [slot for slot in (*search, *booking) if rng.random() < 0.55]
    if kind == "chat" and rng.random() < 0.6:
        told = ["guest"]
    searches, bookings = (
        [("give", slot) for slot in rng.sample(slots, len(slots)) if slot not in told] for slots in (search, booking)
    )
    offered = "pair" if search and rng.random() < 0.5 else "single"
    choose = [("choose", offered)] if kind == "book" or offered == "pair" else []
    return told, [("open", kind), *searches, *choose, *bookings]


def _extras(rng, told, steps):
    """Yields small talk, questions and corrections, each with the place where it is inserted."""
    end, chatty = len(steps), steps[0] == ("open", "chat")
    given = dict.fromkeys(told, 0)  # slot -> the place of the step that gives it
    given |= {step[1]: place for place, step in enumerate(steps) if step[0] == "give"}
    offer = max((given[slot] for slot in SEARCH if slot in given), default=0)

    def some(options, *counts):
        return rng.sample(sorted(options), min(rng.choice(counts), len(options)))

    for topic in some(TOPICS, *((1, 2, 3, 4) if chatty else (0, 1, 1))):
        yield rng.randint(1, end), ("chat", topic)
    for key in some(PERSONA, 0, 0, 0, 1):
        yield rng.randint(1, end), ("persona", key)
    if chatty:
        return
    for relation in some(RESTAURANTS["detail questions"], 0, 1, 2):
        yield rng.randint(offer + 1, end), ("detail", relation)
    for slot in some(given, 0, 1):
        last = offer if slot in SEARCH else end  # a search is corrected before the offer
        if slot in SLOTS["corrections"] and given[slot] < last:
            yield rng.randint(given[slot] + 1, last), ("correct", slot)
    for slot in some(given, 0, 0, 1):
        if slot in SLOTS["recall questions"] and given[slot] + 2 <= end:
            yield rng.randint(given[slot] + 2, end), ("recall", slot)


# === Conversations ===


class _Talk:
    """A conversation on a plan. A method with the name of a step says the user's turn and the bot's.

    Misreadings are pairs of a text and its claims. `other` is a second `random.Random`, which draws them.
    """

    def __init__(self, rng, other, world):
        self.rng, self.other, self.world = rng, other, world
        self.told, self.steps = draw_plan(rng)
        self.following = None  # the next step
        goal = rng.choice(world)
        self.wishes = draw_wishes(rng, goal)
        corrections = [step[1] for step in self.steps if step[0] == "correct"]
        self.first_wishes = self.wishes | {slot: other_value(rng, slot, self.wishes[slot]) for slot in corrections}
        alike = [place for place in world if place != goal and not place.misses(self.wishes)]
        self.offered = [goal, *alike[:1]] if ("choose", "pair") in self.steps else [goal]
        self.named = []  # the restaurants offered; once one is settled on, that one
        self.settled = False
        self.turns, self.slots = [], {}  # so far
        self.former = {}  # slot -> its value before it was corrected
        self.scenes = set()  # (topic, scene) talked about
        self.prompted = False  # whether the bot asked for what comes now
        self.used = set()  # wordings

    def conversation(self):
        if len(self.steps) < MAX_STEPS and self.rng.random() < 0.25:
            self.say(self.pick(BOT["openings"]))
        for (step, *details), following in zip(self.steps, [*self.steps[1:], ("end",)], strict=True):
            self.following = following
            getattr(self, step)(*details)
        return tuple(self.turns)

    # === Speaking ===

    def pick(self, options, more=()):
        """Draws a wording, if possible a new one; half the time from `more`, if there is any."""
        option = self._draw(self.rng, options, more)
        self.used.add(option)
        return option

    def _draw(self, rng, options, more):
        options = more if more and rng.random() < 0.5 else options
        return rng.choice([option for option in options if option not in self.used] or options)

    def instead(self, claim, options, more=(), value=None, **fields):
        """A misreading: a wording as by `pick`, filled, with its claim."""
        return fill(self._draw(self.other, options, more), value, **fields), [claim]

    def some(self, options, count):
        """At most `count` of the options, drawn for misreadings."""
        options = sorted(options)
        return self.other.sample(options, min(count, len(options)))

    def say(self, text, about=(), fits=frozenset(), misread=()):
        wrong = {other: Turn(other, frozenset(claims)) for other, claims in misread if fits and set(claims) - fits}
        wrong.pop(text, None)
        self.turns.append(Turn(text, frozenset(about), frozenset(fits), tuple(wrong.values())))

    def ask(self, text, about=(), fits=frozenset(), slots=None, misread=()):
        """Says the user's turn, which may give slots."""
        self.slots |= slots or {}
        fits = fits | TASTES if fits & TASTES else fits
        self.say(sentences(text), about, fits, [(sentences(other), claims) for other, claims in misread])

    def reply(self, text, about=(), also=(), misread=()):
        """Says the bot's turn, with the question that the next step answers; `also`: further claims that fit."""
        question, asked = self.question(*self.following)
        fits = set()
        if about or (ASKS.intersection(asked) and self.slots):
            fits = {*about, *asked, *also, *(("ask", topic) for topic in TOPICS)}
            fits |= {claim for claim in ASKS if claim[1] not in self.slots}
            fits |= {("state", s, v) for s in SEARCH if s not in self.slots for v in VALUES[s]}
            fits |= {("state", *item) for item in self.slots.items()}
            fits |= {("state", "name", place.name) for place in self.named}
        misread = [(sentences(other, question), [*claims, *asked]) for other, claims in misread]
        self.say(sentences(text, question), [*about, *asked], fits, misread)

    def question(self, step, key=None):
        """The bot's question if this step comes next, and its claims."""
        self.prompted = step == "give" or (step == "chat" and self.rng.random() < 0.5)
        if step == "choose":
            return self.pick(BOT["pair prompts"] if len(self.named) > 1 else BOT["accept prompts"]), []
        if not self.prompted:
            return "", []
        return self.pick(SLOTS["asks"][key] if step == "give" else TOPICS[key].questions), [("ask", key)]

    # === Steps ===

    def open(self, kind):
        given = {slot: self.first_wishes[slot] for slot in self.told}

        def told(*slots):
            return "".join(fill(WANT[s], given[s]) for s in slots if s in given)

        when, names, nods = told("people", "day", "time"), {}, BOT["greetings"]
        if kind == "chat":
            request, nods = self.pick(USER["chat openings"]), BOT["chat greetings"]
        elif kind == "visit":
            self.named, self.settled = self.offered, True
            names = {"name": self.named[0].name}
            request = fill(self.pick(USER["named openings"]), when=when, **names)
        else:
            what = told("price", "cuisine") or " nice"
            request = fill(self.pick(USER["search openings"]), wanted=f"a{what} place{told('town')}{when}")
        introduction = fill(self.pick(USER["introductions"]), **given) if "guest" in given else ""
        self.ask(sentences(self.pick(USER["greetings"]), introduction, request), slots=given)
        self.respond(given | names, nods)

    def give(self, slot):
        value, answers, further = self.first_wishes[slot], SLOTS["gives"], SLOTS["gives value"]
        others = self.some((self.first_wishes | self.slots).items(), 4)
        misread = [self.instead(("give", s), answers[s], further.get(v), value=v) for s, v in others]
        text = fill(self.pick(answers[slot], further.get(value)), value)
        self.ask(text, [("give", slot)], {("give", slot)}, {slot: value}, misread)
        self.respond({slot: value}, SLOTS["nods"]["any"])

    def correct(self, slot):
        self.former[slot], value = self.slots[slot], self.wishes[slot]
        old = CRAVINGS.get(self.former[slot], self.former[slot])
        self.ask(fill(self.pick(SLOTS["corrections"][slot]), value, old=old), slots={slot: value})
        self.respond({slot: value}, lead=fill(self.pick(SLOTS["nods"]["correction"]), old=old))

    def choose(self, _):
        if len(self.named) > 1:
            place = self.rng.randrange(2)
            name = self.named[place].name
            by_name = self.rng.random() < 0.6
            options = USER["picks"] if by_name else ORDINAL_PICKS[place]
            self.point(fill(self.pick(options), name=name), name if by_name else "ordinal")
            self.named = [self.named[place]]
        else:
            self.ask(self.pick(USER["accepts"]))
        self.settled = True
        self.respond({"name": self.named[0].name}, SLOTS["nods"]["any"])

    def point(self, text, by):
        """Says a user's turn that singles out a restaurant, by its name or ordinal."""
        self.ask(text, [("point", by)], {("point", "ordinal"), *(("point", place.name) for place in self.named)})

    def detail(self, relation):
        place = self.rng.choice(self.named)
        template = self.pick(RESTAURANTS["detail questions"][relation])
        if len(self.named) > 1 or self.rng.random() < 0.3:
            self.point(fill(template, place=f"the {place.name}"), place.name)
        else:
            self.ask(fill(template, place="the place"))
        answers, key = RESTAURANTS["detail answers"], {"dish": "cuisine", "price": "price"}.get(relation)
        plain = key in self.slots and self.rng.random() < 0.6
        basis = ("state", key, self.slots[key]) if plain else ("state", "name", place.name)
        template = self.pick((RESTAURANTS["plain detail answers"] if plain else answers)[relation])
        elsewhere = [other for other in self.named if other != place]
        misread = [(fill(template, **vars(other)), [("tell", relation, other.name)]) for other in elsewhere]
        others = self.some(answers.keys() - {relation}, 3)
        misread += [self.instead(("tell", r, place.name), answers[r], **vars(place)) for r in others]
        self.reply(fill(template, **vars(place)), [("tell", relation, place.name), basis], misread=misread)

    def recall(self, slot):
        self.ask(self.pick(SLOTS["recall questions"][slot]))
        value, answers = self.slots[slot], SLOTS["recall answers"]
        template = self.pick(answers[slot])
        others = self.some(((s, v) for s, v in self.slots.items() if s in answers and s != slot), 3)
        misread = [self.instead(("say", s, v), answers[s], value=v) for s, v in others]
        self.reply(fill(template, value), [("say", slot, value)], misread=misread + self.as_before(template, slot))

    def chat(self, topic):
        _, scenes, kin = TOPICS[topic]
        key = self.rng.choice(sorted(scenes))
        fits = {("scene", scene) for t in (topic, *kin) for scene in TOPICS[t].scenes} if self.prompted else set()
        away = [scene for t in TOPICS if t not in (topic, *kin) for scene in TOPICS[t].scenes.items()]
        misread = [self.instead(("scene", name), scene.says) for name, scene in self.some(away, 3)]
        self.ask(self.pick(scenes[key].says), [("scene", key)], fits, misread=misread)
        others = self.scenes | {(topic, other) for other in self.some(scenes.keys() - {key}, 2)}
        misread = [self.instead(("scene", s), TOPICS[t].scenes[s].replies) for t, s in self.some(others, 3)]
        self.scenes.add((topic, key))
        self.reply(self.pick(scenes[key].replies), [("scene", key)], misread=misread)

    def persona(self, key):
        self.ask(self.pick(PERSONA[key]["questions"]))
        others = self.some(PERSONA.keys() - {key}, 3)
        misread = [self.instead(("self", other), PERSONA[other]["answers"]) for other in others]
        self.reply(self.pick(PERSONA[key]["answers"]), [("self", key)], misread=misread)

    def part(self):
        self.ask(self.pick(USER["thanks"]))
        also = [("scene", scene) for _, scene in self.scenes]
        if self.scenes and self.rng.random() < 0.5:
            topic, key = self.rng.choice(sorted(self.scenes))
            scenes = TOPICS[topic].scenes
            misread = [self.instead(("scene", other), scenes[other].partings) for other in self.some(scenes, 4)]
            return self.reply(self.pick(scenes[key].partings), [("scene", key)], also, misread)
        known = self.slots | ({"name": self.named[0].name} if len(self.named) == 1 else {})
        options = [option for option in BOT["partings"] if known.keys() >= slots_of(option)]
        self.inform("part", options, known, also=also)

    # === Replies to slots ===

    def respond(self, given, nods=("",), lead=""):
        """Offers or books once all that this needs is known, else takes note or just nods."""
        if not self.named and self.slots.keys() >= set(SEARCH):
            self.named = self.rng.sample(self.offered, len(self.offered))
            first, last = self.named[0], self.named[-1]
            fields = vars(first) | {"other": last.name, "other_dish": last.dish}
            return self.inform("offer", BOT["offers"] if first == last else BOT["pair offers"], fields, lead)
        if self.settled and self.slots.keys() >= set(BOOKING):
            return self.inform("book", BOT["bookings"], self.slots | {"name": self.named[0].name}, lead)
        also = [("say", *item) for item in given.items()]
        if not given or self.rng.random() < 0.3:
            return self.reply(sentences(lead, self.pick(nods)), also=also)
        slot, value = self.rng.choice(sorted(given.items()))
        notes, further = SLOTS["notes"], SLOTS["notes value"]
        template = self.pick(notes[slot], further.get(value))
        others = self.some(((s, v) for s, v in self.slots.items() if s not in given), 3)
        misread = [self.instead(("say", s, v), notes[s], further.get(v), value=v) for s, v in others]
        misread = [(sentences(lead, text), claims) for text, claims in misread + self.as_before(template, slot)]
        self.reply(sentences(lead, fill(template, value)), [("say", slot, value)], also, misread)

    def as_before(self, template, slot):
        """The misreading that a slot is as it was before its correction, if there was one."""
        if slot not in self.former or "{" not in template:
            return []
        value = self.former[slot]
        return [(fill(template, value), [("say", slot, value)])]

    def inform(self, act, options, fields, lead="", also=()):
        """Says one of the options, which states the slots that it builds on; an offer states those searched by."""
        template = self.pick(options)
        slots = slots_of(template) & ({*SEARCH} if act == "offer" else {"name", *VALUES})

        def said(fields):
            return sentences(lead, fill(template, **fields)), [("state", slot, fields[slot]) for slot in slots]

        misread = [said(fields | change) for change in self.changes(act, slots)]
        self.reply(*said(fields), also, misread)

    def changes(self, act, slots):
        """Wrong fields of an offer, a booking or a farewell: a former wish, the other restaurant, a wish missed."""
        yield from ({slot: value} for slot, value in self.former.items() if slot in slots)
        yield from ({"name": place.name} for place in self.offered if "name" in slots)
        if act == "offer":
            near = [place for place in self.world if place.misses(self.slots) in (1, 2)]
            yield from map(vars, self.other.sample(near, min(3, len(near))))
        if act == "book":
            yield from ({slot: self.other.choice(VALUES[slot])} for slot in self.some(slots - {"name"}, 3))
