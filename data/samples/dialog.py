"""The embedded sample of dialog bAbI: simulated searches for a restaurant, written as raw files.

Task 1 of a corpus in the format of `data.corpora.babi_dialog`; a value of several words is one
token, `salted_spoon`.

The user tells wishes, the bot asks for the missing ones, calls the search in silence, sees the
facts of two restaurants and offers them; the user asks about them, and may choose one, which the
bot books. Users speak with all the words of `data.samples.phrases`. The bot has one wording for
each act, so that the earlier dialog determines every response.
"""

import itertools
import random

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.samples.phrases import (
    BOT,
    CRAVINGS,
    ORDINAL_PICKS,
    PRICE_HINTS,
    RESTAURANTS,
    SLOTS,
    USER,
    VALUES,
    describe_search,
)
from colloquy.data.samples.world import (
    BOOKING,
    SEARCH,
    draw_wishes,
    other_value,
    restaurants,
    tokenize,
    write_entries,
)

NAMES = (
    "dialog-babi-task1-sample-trn.txt",
    "dialog-babi-task1-sample-dev.txt",
    "dialog-babi-task1-sample-tst.txt",
)
"""Files of train, dev and test."""
CANDIDATES = "dialog-babi-candidates.txt"
KNOWLEDGE = "dialog-babi-kb-all.txt"
NUM_TURNS = range(4, 10)
"""Turns of a dialog."""

GLADLY = BOT["greetings"][1]
LOOKING = BOT["greetings"][3]
# With more slots, hardly any booking would occur twice.
BOOKED = "All done: {day}, {people} of you."


# === What is said ===


def _token(value):
    """The value of a slot as one token."""
    return "_".join(str(value).lower().split())


def _text(*templates, value=None, **fields):
    """Joins templates and fills them with tokens: of a slot's value, and of fields by name."""
    cuisine = fields.get("cuisine", value)
    tokens = {name: _token(field) for name, field in fields.items()}
    tokens["value"] = _token(value)
    tokens["craving"] = CRAVINGS.get(cuisine, _token(cuisine))
    tokens["hint"] = PRICE_HINTS.get(fields.get("price"))
    return tokenize(" ".join(templates).format(**tokens))


def _call(slots):
    values = [_token(slots[slot]) for slot in SEARCH]
    return " ".join(["api_call", *values])


def _search(world, slots):
    """The first two restaurants that match."""
    matches = [place for place in world if not place.misses(slots)]
    return matches[:2]


def _offer(first, last):
    return _text(BOT["pair offers"][0], BOT["pair prompts"][0], other=last.name, **vars(first))


def _answer(place, relation):
    return _text(RESTAURANTS["detail answers"][relation][0], **vars(place))


def _parting(place):
    if place is None:
        return _text(BOT["partings"][-1])
    return _text(BOT["partings"][0], name=place.name)


def _facts(place):
    """A restaurant's facts, as `("salted_spoon", "R_price", "cheap")`."""
    facts = []
    for relation, value in vars(place).items():
        if relation == "name":
            continue
        if relation == "town":
            relation = "location"
        facts.append((_token(place.name), f"R_{relation}", _token(value)))
    return facts


# === A dialog ===


class _Dialog:
    """One dialog; `simulate` draws it step by step, in the order of its lines."""

    def __init__(self, rng, world):
        self.rng = rng
        self.world = world
        self.lines = []
        self.wishes = draw_wishes(rng, rng.choice(world))
        self.slots = {}  # what the user has told
        self.offered = []
        self.chosen = None

        # What the user tells first: another value where a correction follows.
        self.first_wishes = dict(self.wishes)
        if rng.random() < 0.5:
            slot = rng.choice(list(SLOTS["corrections"]))
            self.first_wishes[slot] = other_value(rng, slot, self.wishes[slot])

    def simulate(self):
        has_booking = self.rng.random() < 0.6
        if self.rng.random() < 0.25:
            greeting = self.rng.choice(USER["greetings"][:-1])
            self.add_turn(_text(greeting), _text(BOT["openings"][0]))
        self.open((*SEARCH, *BOOKING) if has_booking else SEARCH)
        self.give(SEARCH)
        self.add_turn(SILENCE, _call(self.slots))
        if self.correct(SEARCH):
            self.add_turn(SILENCE, _call(self.slots))

        self.offered = _search(self.world, self.slots)
        for place in self.offered:
            for fact in _facts(place):
                self.lines.append(" ".join(fact))
        self.add_turn(SILENCE, _offer(*self.offered))
        self.ask(0 if has_booking else 1)
        if has_booking:
            self.choose()
            self.ask(0)
            self.give(BOOKING)
            self.correct(BOOKING)
        if self.rng.random() < 0.7:
            self.add_turn(_text(self.rng.choice(USER["thanks"])), _parting(self.chosen))

    def add_turn(self, user, bot):
        self.lines.append(f"{user}\t{bot}")

    def reply(self, *templates, value=None):
        """The bot's words, then its next question; its search or booking if nothing is missing."""
        needed = (*SEARCH, *BOOKING) if self.chosen else SEARCH
        missing = [slot for slot in needed if slot not in self.slots]
        if missing:
            question = SLOTS["asks"][missing[0]][0]
            return _text(*templates, question, value=value)
        if self.chosen:
            return _text(BOOKED, **self.slots)
        return _text(*templates, LOOKING, value=value)

    def open(self, slots):
        """The user greets and tells some of the slots."""
        for slot in slots:
            if self.rng.random() < 0.55:
                self.slots[slot] = self.first_wishes[slot]
        tokens = {slot: _token(value) for slot, value in self.slots.items()}
        opening = self.rng.choice(USER["search openings"])
        request = opening.format(wanted=describe_search(tokens))

        greeting = ""
        if not self.lines:
            greeting = self.rng.choice(USER["greetings"])
        introduction = ""
        if "guest" in self.slots:
            introduction = self.rng.choice(USER["introductions"])
        self.add_turn(_text(greeting, introduction, request, **self.slots), self.reply(GLADLY))

    def give(self, slots):
        """The user answers the bot's questions, or first corrects a slot or asks for one."""
        missing = [slot for slot in slots if slot not in self.slots]
        for slot in missing:
            if self.rng.random() < 0.4:
                self.correct(slots)
            self.recall()
            value = self.first_wishes[slot]
            self.slots[slot] = value
            general = SLOTS["gives"][slot]
            specific = SLOTS["gives value"].get(value, general)
            template = self.rng.choice(self.rng.choice((general, specific)))
            reply = self.reply(SLOTS["notes"][slot][0], value=value)
            self.add_turn(_text(template, value=value), reply)

    def recall(self):
        """The user may ask which value was given before."""
        known = [slot for slot in self.slots if slot in SLOTS["recall questions"]]
        if not known or self.rng.random() >= 0.12:
            return
        slot = self.rng.choice(known)
        answer = _text(SLOTS["recall answers"][slot][0], value=self.slots[slot])
        question = self.rng.choice(SLOTS["recall questions"][slot])
        self.add_turn(_text(question), answer)

    def correct(self, slots):
        """The user corrects the wrong slot, if there is one; returns whether there was."""
        wrong = []
        for slot in slots:
            if slot in self.slots and self.slots[slot] != self.wishes[slot]:
                wrong.append(slot)
        for slot in wrong:
            old = self.slots[slot]
            value = self.wishes[slot]
            self.slots[slot] = value
            template = self.rng.choice(SLOTS["corrections"][slot])
            reply = self.reply(SLOTS["nods"]["correction"][0], SLOTS["notes"][slot][0], value=value)
            self.add_turn(_text(template, value=value, old=CRAVINGS.get(old, old)), reply)
        return bool(wrong)

    def ask(self, least):
        """The user asks for `least` facts about the restaurants, or one more."""
        relations = sorted(RESTAURANTS["detail questions"])
        count = least + self.rng.randrange(2)
        for relation in self.rng.sample(relations, count):
            place = self.chosen or self.rng.choice(self.offered)
            if self.chosen and self.rng.random() < 0.7:
                name = "the place"
            else:
                name = f"the {_token(place.name)}"
            template = self.rng.choice(RESTAURANTS["detail questions"][relation])
            self.add_turn(_text(template.format(place=name)), _answer(place, relation))

    def choose(self):
        """The user chooses one of the two restaurants, by name or by order."""
        number = self.rng.randrange(2)
        self.chosen = self.offered[number]
        templates = USER["picks"] if self.rng.random() < 0.6 else ORDINAL_PICKS[number]
        template = self.rng.choice(templates)
        reply = self.reply(SLOTS["notes"]["name"][0], value=self.chosen.name)
        self.add_turn(_text(template, name=self.chosen.name), reply)


# === The corpus ===


def simulate_dialogs(count, seed=1):
    """Simulates distinct dialogs in the world `restaurants(seed)`.

    A larger `count` gives the same dialogs first.

    Returns:
        Dialogs, tuples of lines without their numbers: `user TAB bot`, or a fact.
    """
    rng = random.Random(f"dialogs {seed}")
    world = restaurants(seed)
    dialogs = {}  # as an ordered set
    while len(dialogs) < count:
        dialog = _Dialog(rng, world)
        dialog.simulate()
        num_turns = sum("\t" in line for line in dialog.lines)
        if num_turns in NUM_TURNS:
            dialogs[tuple(dialog.lines)] = None
    return list(dialogs)


def _candidates(dialogs, world):
    """All that the bot says in the dialogs, and all its calls, offers, facts and farewells."""
    candidates = {_parting(None)}
    for dialog in dialogs:
        for line in dialog:
            _, is_turn, response = line.partition("\t")
            if is_turn:
                candidates.add(response)
    for values in itertools.product(*(VALUES[slot] for slot in SEARCH)):
        candidates.add(_call(dict(zip(SEARCH, values, strict=True))))
    for place in world:
        candidates.add(_offer(*_search(world, vars(place))))
        candidates.add(_parting(place))
        for relation in RESTAURANTS["detail answers"]:
            candidates.add(_answer(place, relation))
    return sorted(candidates)


def write_babi(directory, count=600, seed=1, held_out=100):
    """Writes the files `NAMES`, `CANDIDATES` and `KNOWLEDGE`."""
    dialogs = simulate_dialogs(count, seed)
    world = restaurants(seed)
    num_train = count - 2 * held_out
    splits = [dialogs[:num_train], dialogs[num_train:-held_out], dialogs[-held_out:]]

    files = {}
    for name, split in zip(NAMES, splits, strict=True):
        files[name] = [_numbered(dialog) for dialog in split]
    files[CANDIDATES] = [f"1 {text}\n" for text in _candidates(dialogs, world)]
    files[KNOWLEDGE] = []
    for place in world:
        for name, relation, value in _facts(place):
            files[KNOWLEDGE].append(f"1 {name} {relation}\t{value}\n")
    return write_entries(directory, files)


def _numbered(dialog):
    """A dialog as it is written: numbered lines, then a blank one."""
    lines = [f"{number} {line}\n" for number, line in enumerate(dialog, 1)]
    return "".join(lines) + "\n"
