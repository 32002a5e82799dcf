"""Simulated conversations about booking a table, with small talk: who says what, and what the context decides.

A plan of two to seven steps is drawn (open, give a slot, correct it, choose, ask a detail, chat, part ...). Each step is
one user turn and the bot's reply; a reply ends with the prompt of the step that follows, if that step has one.

A turn keeps what later tasks need: the slots it gave, the knowledge it used, and two sets of *claims* that tell whether
it answers a context. `about` holds what the turn claims; `fits` holds every claim that would have been right in its
place. A turn from elsewhere is wrong there unless all that it claims fits. The claims:

    ("say", slot, value)     takes note of, or repeats, what the user has just spoken of
    ("state", slot, value)   builds on something said at any time before
    ("ask", slot or topic)   asks for it          ("give", slot)    answers that question
    ("tell", relation)       states a fact        ("point", name)   singles out a restaurant
    ("scene", scene)         small talk           ("self", key)     the bot on itself
"""

import dataclasses
import random
from typing import NamedTuple

from data import simulator_wording as wording
from data.simulator_world import SEARCH, Fact, Restaurant, restaurants

BOOKING = ("people", "day", "time", "guest")
DETAILS = tuple(wording.DETAIL_QUESTIONS)
MAX_STEPS = 7


@dataclasses.dataclass(frozen=True)
class Turn:
    """What one speaker says: `slots` are the (slot, value) pairs given in it, `facts` the knowledge it used.

    `about` and `fits` are sets of claims, see the head of the module; `fits` is empty where the context leaves open
    what to say.
    """

    speaker: str
    act: str
    text: str
    about: frozenset = frozenset()
    fits: frozenset = frozenset()
    slots: tuple[tuple[str, str], ...] = ()
    facts: tuple[Fact, ...] = ()


@dataclasses.dataclass(frozen=True)
class Conversation:
    """Alternating turns, the slots as they ended (corrections made), and the restaurants spoken of, settled one last."""

    turns: tuple[Turn, ...]
    slots: tuple[tuple[str, str], ...]
    restaurants: tuple[Restaurant, ...]


def simulate(count, seed=1, world=None):
    """Simulates conversations, no two with the same words. The first ones of a longer run are those of a shorter one.

    Args:
        count: How many, at least 1.
        seed: Integer; the same seed gives the same conversations.
        world: The restaurants to speak of, some of a kind; by default `restaurants(seed)`.

    Returns:
        Tuple of `Conversation`, each of 4 to 14 turns.

    Raises:
        ValueError: If `count` is less than 1.

    >>> [conversation] = simulate(1, seed=3)
    >>> for turn in conversation.turns[:2]:
    ...     print(f"{turn.speaker}: {turn.text}")
    """
    if count < 1:
        raise ValueError(f"At least one conversation must be simulated. Received: count={count}")
    world = restaurants(seed) if world is None else world
    rng = random.Random(f"conversations {seed}")
    conversations = {}
    while len(conversations) < count:
        conversation = _Talk(rng, world).conversation()
        conversations.setdefault(tuple(turn.text for turn in conversation.turns), conversation)
    return tuple(conversations.values())


def _spine(rng):
    """Draws the slots told in the opening, and the steps that lead to an offer or a booking."""
    kind = rng.choices(("find", "book", "visit", "chat"), (4, 4, 3, 3))[0]
    search = SEARCH if kind in ("find", "book") else ()
    booking = BOOKING if kind in ("book", "visit") else ()
    told = [slot for slot in (*search, *booking) if rng.random() < 0.55]
    if kind == "chat" and rng.random() < 0.6:
        told = ["guest"]
    gives = [
        [("give", slot) for slot in rng.sample(slots, len(slots)) if slot not in told]
        for slots in (search, booking)
    ]
    offered = "pair" if search and rng.random() < 0.5 else "single"
    choose = [("choose", offered)] if kind == "book" or offered == "pair" else []
    return told, [("open", kind), *gives[0], *choose, *gives[1]]


def _extras(rng, told, steps):
    """Draws further steps, each with the place in `steps` where it may be put."""
    end = len(steps)
    given = {slot: 0 for slot in told}
    given |= {step[1]: place for place, step in enumerate(steps) if step[0] == "give"}
    offer = max((given[slot] for slot in SEARCH if slot in given), default=0)
    chat = steps[0] == ("open", "chat")
    for topic in rng.sample(
        sorted(wording.TOPICS), rng.randint(1, 4) if chat else rng.choice((0, 1, 1))
    ):
        yield rng.randint(1, end), ("chat", topic)
    for key in rng.sample(sorted(wording.PERSONA), rng.choice((0, 0, 0, 1))):
        yield rng.randint(1, end), ("persona", key)
    if chat:
        return
    for relation in rng.sample(DETAILS, rng.choice((0, 1, 2))):
        yield rng.randint(offer + 1, end), ("detail", relation)
    for slot in rng.sample(sorted(given), min(len(given), rng.choice((0, 1)))):
        last = offer if slot in SEARCH else end  # a search is corrected before the offer
        if slot in wording.CORRECTIONS and given[slot] < last:
            yield rng.randint(given[slot] + 1, last), ("correct", slot)
    for slot in rng.sample(sorted(given), min(len(given), rng.choice((0, 0, 1)))):
        if slot in wording.RECALL_QUESTIONS and given[slot] + 2 <= end:
            yield rng.randint(given[slot] + 2, end), ("recall", slot)


def _draw_plan(rng):
    """Draws plans until one is neither too short nor too long: the slots told in the opening, and the steps."""
    while True:
        told, steps = _spine(rng)
        extras = list(_extras(rng, told, steps))
        rng.shuffle(extras)
        for place, step in sorted(
            extras, key=lambda extra: -extra[0]
        ):  # from the back: places stay true
            steps.insert(place, step)
        if rng.random() < 0.7:
            steps.append(("part",))
        if 2 <= len(steps) <= MAX_STEPS:
            return told, steps


def _fill(template, value=None, **fields):
    """Fills a template; `{craving}` is how the value reads as something to eat."""
    return template.format(value=value, **{"craving": wording.CRAVINGS.get(value, value)} | fields)


def _fields(restaurant):
    """A restaurant's fields for a template."""
    cuisine, price = restaurant.cuisine, restaurant.price
    return vars(restaurant) | {
        "craving": wording.CRAVINGS.get(cuisine, cuisine),
        "hint": wording.PRICE_HINTS[price],
    }


def _sentences(*parts):
    """Joins the sentences that are not empty, each with a capital letter."""
    return " ".join(part[0].upper() + part[1:] for part in parts if part)


class _Reply(NamedTuple):
    """The bot's turn before its prompt. `about` are its claims, `also` others that would be as right."""

    act: str
    text: str
    about: frozenset = frozenset()
    also: frozenset = frozenset()
    facts: tuple[Fact, ...] = ()


class _Talk:
    """One conversation being made. A method named like a step says the user's turn and returns the bot's `_Reply`."""

    def __init__(self, rng, world):
        self.rng = rng
        self.told, self.steps = _draw_plan(rng)
        self.goal = rng.choice(world)
        same = [
            r
            for r in world
            if r != self.goal and all(getattr(r, s) == getattr(self.goal, s) for s in SEARCH)
        ]
        self.offered = [self.goal, *same[:1]] if ("choose", "pair") in self.steps else [self.goal]
        self.wishes = {slot: rng.choice(values) for slot, values in wording.VALUES.items()}
        self.wishes |= {slot: getattr(self.goal, slot) for slot in SEARCH}
        self.first_wishes = dict(
            self.wishes
        )  # what is given first: another value where a correction follows
        for slot in (step[1] for step in self.steps if step[0] == "correct"):
            self.first_wishes[slot] = rng.choice(
                [v for v in wording.VALUES[slot] if v != self.wishes[slot]]
            )
        self.slots = {}  # as given so far
        self.named = []  # the restaurants put forward; once the user has settled on one, that one alone
        self.chosen = False
        self.scenes = set()
        self.prompted = False  # did the bot ask for the step that comes now?
        self.turns = []
        self.used = set()

    def conversation(self):
        if len(self.steps) < MAX_STEPS and self.rng.random() < 0.25:
            self.turns.append(Turn("bot", "greet", self.pick(wording.BOT_OPENINGS)))
        for step, following in zip(self.steps, [*self.steps[1:], ("end",)], strict=True):
            reply = getattr(self, step[0])(*step[1:])
            self.bot(reply, *self.prompt(*following))
        return Conversation(tuple(self.turns), tuple(self.slots.items()), tuple(self.named))

    # --- Speaking ---

    def pick(self, options, more=()):
        """Draws a wording, by half from `more` if there is any, and one not used before if there is one."""
        options = more if more and self.rng.random() < 0.5 else options
        option = self.rng.choice([o for o in options if o not in self.used] or options)
        self.used.add(option)
        return option

    def user(self, act, text, about=(), fits=(), slots=None):
        self.slots |= slots or {}
        given = tuple((slots or {}).items())
        self.turns.append(Turn("user", act, text, frozenset(about), frozenset(fits), given))

    def bot(self, reply, prompt, asked):
        """Says the reply and the prompt of the next step; works out which claims fit here."""
        about = reply.about | asked
        free = {("ask", key) for key in (*wording.VALUES, *wording.TOPICS) if key not in self.slots}
        free |= {("state", s, v) for s in SEARCH if s not in self.slots for v in wording.VALUES[s]}
        decided = (
            reply.about
            or asked
            and self.slots
            and asked <= {("ask", slot) for slot in wording.VALUES}
        )
        fits = about | reply.also | self.state() | free if decided else frozenset()
        text = _sentences(reply.text, prompt)
        self.turns.append(Turn("bot", reply.act, text, about, fits, facts=reply.facts))

    def prompt(self, step, key=None):
        """The question that the bot adds when this step comes next, and the claim that it makes."""
        self.prompted = step == "give" or step == "chat" and self.rng.random() < 0.5
        if step == "choose":
            return self.pick(
                wording.PAIR_PROMPTS if len(self.named) > 1 else wording.ACCEPT_PROMPTS
            ), frozenset()
        if not self.prompted:
            return "", frozenset()
        questions = wording.ASKS[key] if step == "give" else wording.TOPICS[key].questions
        return self.pick(questions), frozenset({("ask", key)})

    def state(self):
        """The claims that what was said so far makes right."""
        return {("state", *item) for item in self.slots.items()} | {
            ("state", "name", r.name) for r in self.named
        }

    # --- The steps ---

    def open(self, kind):
        given = {slot: self.first_wishes[slot] for slot in self.told}
        introduction = _fill(self.pick(wording.INTRODUCTIONS), **given) if "guest" in given else ""
        tail = "".join(
            _fill(wording.WANT[slot], given[slot]) for slot in BOOKING[:3] if slot in given
        )
        if kind == "chat":
            request = self.pick(wording.CHAT_OPENINGS)
        elif kind == "visit":
            self.named, self.chosen = [self.goal], True
            request = _fill(self.pick(wording.NAMED_OPENINGS), name=self.goal.name, tail=tail)
        else:
            head = "".join(
                _fill(wording.WANT[slot], given[slot])
                for slot in ("price", "cuisine")
                if slot in given
            )
            place = _fill(wording.WANT["town"], given["town"]) if "town" in given else ""
            request = _fill(self.pick(wording.SEARCH_OPENINGS), want=f"a{head} place{place}{tail}")
        self.user(
            "open", _sentences(self.pick(wording.GREETINGS), introduction, request), slots=given
        )
        if kind == "visit":
            given = {"name": self.goal.name}
        return self.respond(
            given, wording.BOT_CHAT_GREETINGS if kind == "chat" else wording.BOT_GREETINGS
        )

    def give(self, slot):
        value = self.first_wishes[slot]
        text = _fill(self.pick(wording.GIVES[slot], wording.GIVES_VALUE.get(value)), value)
        self.user("give", text, {("give", slot)}, {("give", slot)}, {slot: value})
        return self.respond({slot: value}, wording.NODS)

    def correct(self, slot):
        old, new = self.slots[slot], self.wishes[slot]
        fields = {"old": old, "old_craving": wording.CRAVINGS.get(old, old)}
        self.user(
            "correct", _fill(self.pick(wording.CORRECTIONS[slot]), new, **fields), slots={slot: new}
        )
        lead = _fill(self.pick(wording.CORRECTION_NODS), **fields)
        return self.respond({slot: new}, ("",), lead)

    def choose(self, _):
        names = [r.name for r in self.named]
        if len(names) > 1:
            place = self.rng.randrange(2)
            by_name = self.rng.random() < 0.6
            text = _fill(
                self.pick(wording.PICKS if by_name else wording.ORDINAL_PICKS[place]),
                name=names[place],
            )
            about = {("point", names[place] if by_name else "ordinal")}
            self.user("point", text, about, {("point", name) for name in (*names, "ordinal")})
            self.named = [self.named[place]]
        else:
            self.user("accept", self.pick(wording.ACCEPTS))
        self.chosen = True
        return self.respond({"name": self.named[0].name}, wording.NODS)

    def detail(self, relation):
        place = self.rng.choice(self.named)
        by_name = len(self.named) > 1 or self.rng.random() < 0.3
        about, fits = frozenset(), frozenset()
        if by_name:
            about = frozenset({("point", place.name)})
            fits = frozenset(
                {("point", name) for name in (*(r.name for r in self.named), "ordinal")}
            )
        name = f"the {place.name}" if by_name else "the place"
        question = _fill(self.pick(wording.DETAIL_QUESTIONS[relation]), place=name)
        self.user("point" if by_name else "detail", question, about, fits)
        key = {"dish": "cuisine", "price": "price"}.get(relation)
        plain = key in self.slots and self.rng.random() < 0.6
        answers = (wording.PLAIN_DETAIL_ANSWERS if plain else wording.DETAIL_ANSWERS)[relation]
        claim = ("state", key, self.slots[key]) if plain else ("state", "name", place.name)
        text = _fill(self.pick(answers), **_fields(place))
        return _Reply(
            "tell", text, frozenset({("tell", relation), claim}), facts=(place.fact(relation),)
        )

    def recall(self, slot):
        value = self.slots[slot]
        self.user("recall", self.pick(wording.RECALL_QUESTIONS[slot]))
        text = _fill(self.pick(wording.RECALL_ANSWERS[slot]), value)
        return _Reply("recall", text, frozenset({("say", slot, value)}))

    def chat(self, topic):
        scenes = wording.TOPICS[topic].scenes
        key = self.rng.choice(sorted(scenes))
        answers = {
            ("scene", other)
            for name in (topic, *wording.TOPICS[topic].kin)
            for other in wording.TOPICS[name].scenes
        }
        fits = answers if self.prompted else ()
        self.user("chat", self.pick(scenes[key].says), {("scene", key)}, fits)
        self.scenes.add((topic, key))
        return _Reply("react", self.pick(scenes[key].replies), frozenset({("scene", key)}))

    def persona(self, key):
        questions, answers = wording.PERSONA[key]
        self.user("persona", self.pick(questions))
        return _Reply("persona", self.pick(answers), frozenset({("self", key)}))

    def part(self):
        self.user("part", self.pick(wording.THANKS))
        known = dict(self.slots) | ({"name": self.named[0].name} if len(self.named) == 1 else {})
        recalled = frozenset(("scene", key) for _, key in self.scenes)
        options = [
            (t, {("state", s, known[s]) for s in slots})
            for t, slots in wording.PARTINGS
            if known.keys() >= set(slots)
        ]
        if self.scenes and (not options or self.rng.random() < 0.5):
            topic, key = self.rng.choice(sorted(self.scenes))
            options = [
                (text, {("scene", key)}) for text in wording.TOPICS[topic].scenes[key].partings
            ]
        text, about = self.rng.choice(options or [(text, ()) for text in wording.PLAIN_PARTINGS])
        return _Reply("part", _fill(text, **known), frozenset(about), recalled)

    # --- The bot's replies to slots ---

    def respond(self, given, nods, lead=""):
        """Offers or books once everything for it is known, else takes note of what was given."""
        if all(slot in self.slots for slot in SEARCH) and not self.named:
            self.named = self.rng.sample(self.offered, len(self.offered))
            first, *others = self.named
            offers = wording.PAIR_OFFERS if others else wording.OFFERS
            fields = _fields(first) | (
                {"other": others[0].name, "other_dish": others[0].dish} if others else {}
            )
            return self.inform("offer", offers, fields, lead)
        if self.chosen and all(slot in self.slots for slot in BOOKING):
            return self.inform(
                "book", wording.BOOKINGS, self.slots | {"name": self.named[0].name}, lead
            )
        also = frozenset(("say", *item) for item in given.items())
        if not given or self.rng.random() < 0.3:
            return _Reply("ask", _sentences(lead, self.pick(nods)), also=also)
        slot, value = self.rng.choice(list(given.items()))
        note = _fill(self.pick(wording.NOTES[slot], wording.NOTES_VALUE.get(value)), value)
        return _Reply("note", _sentences(lead, note), frozenset({("say", slot, value)}), also)

    def inform(self, act, options, fields, lead):
        """Says a line that builds on the slots listed with it."""
        template, slots = self.pick(options)
        about = frozenset(("state", slot, fields[slot]) for slot in slots)
        relations = [*slots, "dish"] if "{dish}" in template else slots
        facts = (
            tuple(r.fact(slot) for r in self.named for slot in relations) if act == "offer" else ()
        )
        return _Reply(act, _sentences(lead, _fill(template, **fields)), about, facts=facts)
