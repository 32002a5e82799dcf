"""Simulated conversations on finding and booking a table, with small talk.

A plan of two to seven steps is drawn at random. Each step is a turn of the user and one of the bot,
which ends with the question that the next step answers.

    open kind          the user wants to `find` a restaurant, find one and `book` it, book a `visit`
                       to one by name, or to `chat`
    give slot          answers the bot's question for a slot that the opening left out
    correct slot       gives it another value     recall slot    asks which value was given
    choose offered     settles on a restaurant, a `single` one or one of a `pair`
    detail relation    asks a fact about one      part           says goodbye
    chat topic         small talk                 persona key    asks the bot about itself

A turn that the context determines has an *act*, which fits there; a turn of another act does not.

    ("say", slot, value)     takes up a wish          ("give", slot)    answers a question for one
    ("tell", relation, name) states a fact            ("point", name)   singles out a restaurant
    ("chat", topic)          answers a question       ("scene", scene)  replies to small talk
    ("self", key)            is the bot's on itself   ("offer", (slot, value), ...), "book", "part"
"""

import random
from typing import NamedTuple

from colloquy.data.samples.wording import (
    BOT,
    CRAVINGS,
    ORDINAL_PICKS,
    PERSONA,
    RESTAURANTS,
    SCENES,
    SLOTS,
    TOPICS,
    USER,
    VALUES,
    WANT,
    fill,
    sentences,
    slots_of,
    wanted,
)
from colloquy.data.samples.world import BOOKING, SEARCH, draw_wishes, other_value, restaurants

MAX_STEPS = 7


class Turn(NamedTuple):
    """A turn of the user or the bot."""

    text: str
    act: tuple | None = None
    """`None` if the context does not determine the turn."""
    fits: frozenset = frozenset()
    """Acts that would also fit at this turn."""
    misreadings: tuple[str, ...] = ()
    """Wrong texts for this turn that contain words of the conversation and contradict it."""


def simulate(count, seed=1):
    """Simulates conversations about the world `restaurants(seed)`; no two have the same words.

    Each is a tuple of 4 to 14 `Turn`s of user and bot alternately; the last is the bot's. A larger
    `count` gives the same conversations first.

    >>> [conversation] = simulate(1, seed=3)
    >>> print(conversation[0].text, conversation[1].text, sep="\\n")
    Hello. I want a table at the Salted Spoon for two on Thursday.
    Let us see. What name shall I put down?
    """
    world = restaurants(seed)
    rng, other = random.Random(f"conversations {seed}"), random.Random(f"misreadings {seed}")
    found = {}
    while len(found) < count:
        conversation = _Talk(rng, other, world).conversation()
        found.setdefault(tuple(turn.text for turn in conversation), conversation)
    return tuple(found.values())


# === Plans ===


def draw_plan(rng):
    """Draws the slots that the opening tells and the steps, as `[("open", "find"), ("give",
    "town"), ...]`.
    """
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
        [("give", slot) for slot in rng.sample(slots, len(slots)) if slot not in told]
        for slots in (search, booking)
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
    """A conversation on a plan. A method with the name of a step says the user's turn and the
    bot's.

    `rng` draws the conversation, `other` what is misread in it.
    """

    def __init__(self, rng, other, world):
        self.rng, self.other, self.world = rng, other, world
        self.told, self.steps = draw_plan(rng)
        goal = rng.choice(world)
        self.wishes = draw_wishes(rng, goal)
        corrections = [step[1] for step in self.steps if step[0] == "correct"]
        self.first_wishes = self.wishes | {
            slot: other_value(rng, slot, self.wishes[slot]) for slot in corrections
        }
        alike = [place for place in world if place != goal and not place.misses(self.wishes)]
        self.offered = [goal, *alike[:1]] if ("choose", "pair") in self.steps else [goal]
        self.named = []  # the restaurants offered; once one is settled on, that one
        self.settled = False
        self.turns, self.slots = [], {}  # so far
        self.former = {}  # slot -> its value before it was corrected
        self.scenes = set()  # (topic, scene) talked about
        self.prompted = False  # the bot asked for what comes now
        self.used = set()  # wordings

    def conversation(self):
        if len(self.steps) < MAX_STEPS and self.rng.random() < 0.25:
            self.say(self.pick(BOT["openings"]))
        for (step, *details), following in zip(
            self.steps, [*self.steps[1:], ("end",)], strict=True
        ):
            self.following = following
            getattr(self, step)(*details)
        return tuple(self.turns)

    # === Speaking ===

    def pick(self, options, more=(), misread=False):
        """Draws a wording, if possible a new one; half the time from `more`, if there is any."""
        rng = self.other if misread else self.rng
        options = more if more and rng.random() < 0.5 else options
        option = rng.choice([option for option in options if option not in self.used] or options)
        if not misread:
            self.used.add(option)
        return option

    def misread(self, tables, count=3, **fields):
        """Wordings of at most `count` of some tables of options, drawn and filled."""
        return [
            fill(self.pick(options, misread=True), **fields) for options in self.some(tables, count)
        ]

    def some(self, options, count):
        """At most `count` of the options, drawn for misreadings."""
        options = sorted(options)
        return self.other.sample(options, min(count, len(options)))

    def worded(self, kind, slot, value, misread=False):
        """A sentence on the value of a slot, of `SLOTS[kind]`."""
        return fill(
            self.pick(SLOTS[kind][slot], SLOTS.get(f"{kind} value", {}).get(value), misread), value
        )

    def confused(self, kind, slot, values):
        """Sentences as by `worded` on other slots, and on the value of this one before its
        correction.
        """
        found = self.some(((s, v) for s, v in values.items() if s != slot and s in SLOTS[kind]), 3)
        found += [(s, v) for s, v in self.former.items() if s == slot]
        return [self.worded(kind, s, v, misread=True) for s, v in found]

    def say(self, text, act=None, misread=(), also=(), lead="", question=""):
        """Says a turn; `misread`: other words for `text`; `also`: acts that fit here, too."""
        wrong = dict.fromkeys(sentences(lead, other, question) for other in misread if act)
        text = sentences(lead, text, question)
        wrong.pop(text, None)
        self.turns.append(Turn(text, act, frozenset((act, *also)), tuple(wrong)))

    def reply(self, text, act=None, misread=(), also=(), lead=""):
        """Says the bot's turn, with the question that the next step answers."""
        self.say(text, act, misread, also, lead, self.question(*self.following))

    def question(self, step, key=None):
        self.prompted = step == "give" or (step == "chat" and self.rng.random() < 0.5)
        if step == "choose":
            return self.pick(BOT["pair prompts"] if len(self.named) > 1 else BOT["accept prompts"])
        if not self.prompted:
            return ""
        return self.pick(SLOTS["asks"][key] if step == "give" else TOPICS[key]["questions"])

    # === Steps ===

    def open(self, kind):
        given, names, nods = (
            {slot: self.first_wishes[slot] for slot in self.told},
            {},
            BOT["greetings"],
        )
        if kind == "chat":
            request, nods = self.pick(USER["chat openings"]), BOT["chat greetings"]
        elif kind == "visit":
            self.named, self.settled = self.offered, True
            names = {"name": self.named[0].name}
            when = "".join(fill(WANT[slot], value) for slot, value in given.items() if slot in WANT)
            request = fill(self.pick(USER["named openings"]), when=when, **names)
        else:
            request = fill(self.pick(USER["search openings"]), wanted=wanted(given))
        introduction = fill(self.pick(USER["introductions"]), **given) if "guest" in given else ""
        self.say(sentences(self.pick(USER["greetings"]), introduction, request))
        self.slots |= given
        self.respond(given | names, nods)

    def give(self, slot):
        value = self.first_wishes[slot]
        misread = self.confused("gives", slot, self.first_wishes | self.slots)
        self.say(self.worded("gives", slot, value), ("give", slot), misread)
        self.slots[slot] = value
        self.respond({slot: value}, SLOTS["nods"]["any"])

    def correct(self, slot):
        self.former[slot], value = self.slots[slot], self.wishes[slot]
        old = CRAVINGS.get(self.former[slot], self.former[slot])
        self.say(fill(self.pick(SLOTS["corrections"][slot]), value, old=old))
        self.slots[slot] = value
        self.respond({slot: value}, lead=fill(self.pick(SLOTS["nods"]["correction"]), old=old))

    def choose(self, _):
        if len(self.named) > 1:
            place = self.rng.randrange(2)
            name = self.named[place].name
            by_name = self.rng.random() < 0.6
            options = USER["picks"] if by_name else ORDINAL_PICKS[place]
            self.say(fill(self.pick(options), name=name), ("point", name) if by_name else None)
            self.named = [self.named[place]]
        else:
            self.say(self.pick(USER["accepts"]))
        self.settled = True
        self.respond({"name": self.named[0].name}, SLOTS["nods"]["any"])

    def detail(self, relation):
        place = self.rng.choice(self.named)
        template = self.pick(RESTAURANTS["detail questions"][relation])
        if len(self.named) > 1 or self.rng.random() < 0.3:
            self.say(fill(template, place=f"the {place.name}"), ("point", place.name))
        else:
            self.say(fill(template, place="the place"))
        answers, key = (
            RESTAURANTS["detail answers"],
            {"dish": "cuisine", "price": "price"}.get(relation),
        )
        plain = key in self.slots and self.rng.random() < 0.6
        template = self.pick((RESTAURANTS["plain detail answers"] if plain else answers)[relation])
        misread = [fill(template, **vars(other)) for other in self.named if other != place]
        misread += self.misread(
            (answers[other] for other in answers if other != relation), **vars(place)
        )
        self.reply(fill(template, **vars(place)), ("tell", relation, place.name), misread)

    def recall(self, slot):
        self.say(self.pick(SLOTS["recall questions"][slot]))
        value, misread = self.slots[slot], self.confused("recall answers", slot, self.slots)
        self.reply(self.worded("recall answers", slot, value), ("say", slot, value), misread)

    def chat(self, topic):
        scenes = SCENES[topic]
        key = self.rng.choice(sorted(scenes))
        others = TOPICS.keys() - {topic, *TOPICS[topic].get("kin", ())}
        away = (scene["says"] for other in others for scene in SCENES[other].values())
        self.say(
            self.pick(scenes[key]["says"]),
            ("chat", topic) if self.prompted else None,
            self.misread(away),
        )
        others = self.scenes | {(topic, other) for other in self.some(scenes.keys() - {key}, 2)}
        misread = self.misread(SCENES[t][other]["replies"] for t, other in others)
        self.scenes.add((topic, key))
        self.reply(self.pick(scenes[key]["replies"]), ("scene", key), misread)

    def persona(self, key):
        self.say(self.pick(PERSONA[key]["questions"]))
        misread = self.misread(PERSONA[other]["answers"] for other in PERSONA if other != key)
        self.reply(self.pick(PERSONA[key]["answers"]), ("self", key), misread)

    def part(self):
        self.say(self.pick(USER["thanks"]))
        if self.scenes and self.rng.random() < 0.5:
            topic, key = self.rng.choice(sorted(self.scenes))
            misread = self.misread(
                scene["partings"] for k, scene in SCENES[topic].items() if k != key
            )
            return self.reply(self.pick(SCENES[topic][key]["partings"]), ("scene", key), misread)
        known = self.slots | ({"name": self.named[0].name} if len(self.named) == 1 else {})
        self.inform(
            "part",
            [option for option in BOT["partings"] if known.keys() >= slots_of(option)],
            known,
        )

    # === Replies to slots ===

    def respond(self, given, nods=("",), lead=""):
        """Offers or books if every slot is known, else acknowledges."""
        if not self.named and self.slots.keys() >= set(SEARCH):
            self.named = self.rng.sample(self.offered, len(self.offered))
            first, last = self.named[0], self.named[-1]
            fields = vars(first) | {"other": last.name, "other_dish": last.dish}
            return self.inform(
                "offer", BOT["offers"] if first == last else BOT["pair offers"], fields, lead
            )
        if self.settled and self.slots.keys() >= set(BOOKING):
            return self.inform(
                "book", BOT["bookings"], self.slots | {"name": self.named[0].name}, lead
            )
        if not given or self.rng.random() < 0.3:
            return self.reply(self.pick(nods), lead=lead)
        slot, value = self.rng.choice(sorted(given.items()))
        text = self.worded("notes", slot, value)
        misread = self.confused(
            "notes", slot, {s: v for s, v in self.slots.items() if s not in given}
        )
        self.reply(
            text, ("say", slot, value), misread, [("say", *item) for item in given.items()], lead
        )

    def inform(self, act, options, fields, lead=""):
        """Says one of the options; misreadings are wrong in a slot that it names, of an offer one
        searched by.
        """
        template = self.pick(options)
        slots = slots_of(template) & ({*SEARCH} if act == "offer" else {"name", *VALUES})
        wrong = [
            change
            for change in self.changes(act, slots)
            if any(change.get(s, fields[s]) != fields[s] for s in slots)
        ]
        misread = [fill(template, **fields | change) for change in wrong]
        stated = tuple((slot, fields[slot]) for slot in sorted(slots))
        self.reply(fill(template, **fields), (act, *stated) if stated else None, misread, lead=lead)

    def changes(self, act, slots):
        """Wrong fields of an offer, a booking or a farewell: a former wish, the other restaurant, a
        wish missed.
        """
        yield from ({slot: value} for slot, value in self.former.items() if slot in slots)
        yield from ({"name": place.name} for place in self.offered if "name" in slots)
        if act == "offer":
            near = [place for place in self.world if place.misses(self.slots) in (1, 2)]
            yield from map(vars, self.other.sample(near, min(3, len(near))))
        if act == "book":
            yield from (
                {slot: self.other.choice(VALUES[slot])} for slot in self.some(slots - {"name"}, 3)
            )
