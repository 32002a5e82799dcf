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
CANDIDATES, KNOWLEDGE = "dialog-babi-candidates.txt", "dialog-babi-kb-all.txt"
TURNS = range(4, 10)  # turns of a dialog
GLADLY, LOOKING = BOT["greetings"][1], BOT["greetings"][3]
# with more slots, hardly any booking would occur twice
BOOKED = "All done: {day}, {people} of you."


def _word(value):
    return "_".join(str(value).lower().split())


def _text(*templates, value=None, **fields):
    craving = fields.get("cuisine", value)
    words = {key: _word(field) for key, field in fields.items()} | {"value": _word(value)}
    words["craving"] = CRAVINGS.get(craving, _word(craving))
    return tokenize(" ".join(templates).format(**words, hint=PRICE_HINTS.get(fields.get("price"))))


def _call(slots):
    return " ".join(["api_call", *(_word(slots[slot]) for slot in SEARCH)])


def _found(world, slots):
    """The first two restaurants that match."""
    return [place for place in world if not place.misses(slots)][:2]


def _offer(first, last):
    return _text(BOT["pair offers"][0], BOT["pair prompts"][0], other=last.name, **vars(first))


def _answer(place, relation):
    return _text(RESTAURANTS["detail answers"][relation][0], **vars(place))


def _parting(place):
    return _text(BOT["partings"][0], name=place.name) if place else _text(BOT["partings"][-1])


def _facts(place):
    """A restaurant's facts, as `("salted_spoon", "R_price", "cheap")`."""
    name, *facts = vars(place).items()
    renamed = {"town": "location"}
    return [
        (_word(name[1]), f"R_{renamed.get(relation, relation)}", _word(value))
        for relation, value in facts
    ]


class _Dialog:
    def __init__(self, rng, world):
        self.rng = rng
        self.wishes = draw_wishes(rng, rng.choice(world))
        self.first_wishes = dict(self.wishes)  # another value where a correction follows
        if rng.random() < 0.5:
            slot = rng.choice(list(SLOTS["corrections"]))
            self.first_wishes[slot] = other_value(rng, slot, self.wishes[slot])
        self.slots, self.chosen, self.lines = {}, None, []
        books = rng.random() < 0.6
        if rng.random() < 0.25:
            self.turn(_text(rng.choice(USER["greetings"][:-1])), _text(BOT["openings"][0]))
        self.open((*SEARCH, *BOOKING) if books else SEARCH)
        self.answer(SEARCH)
        self.turn(SILENCE, _call(self.slots))
        if self.correct(SEARCH):
            self.turn(SILENCE, _call(self.slots))
        self.found = _found(world, self.slots)
        self.lines += [" ".join(fact) for place in self.found for fact in _facts(place)]
        self.turn(SILENCE, _offer(*self.found))
        self.ask(0 if books else 1)
        if books:
            self.pick()
            self.ask(0)
            self.answer(BOOKING)
            self.correct(BOOKING)
        if rng.random() < 0.7:
            self.turn(_text(rng.choice(USER["thanks"])), _parting(self.chosen))

    def turn(self, user, bot):
        self.lines.append(f"{user}\t{bot}")

    def reply(self, *templates, value=None):
        """The bot's words and its next question or, if nothing is missing, its search or
        booking.
        """
        wanted = (*SEARCH, *BOOKING) if self.chosen else SEARCH
        missing = [slot for slot in wanted if slot not in self.slots]
        if self.chosen and not missing:
            return _text(BOOKED, **self.slots)
        return _text(*templates, SLOTS["asks"][missing[0]][0] if missing else LOOKING, value=value)

    def open(self, slots):
        self.slots = given = {
            slot: self.first_wishes[slot] for slot in slots if self.rng.random() < 0.55
        }
        words = {slot: _word(value) for slot, value in given.items()}
        request = self.rng.choice(USER["search openings"]).format(wanted=describe_search(words))
        greeting = "" if self.lines else self.rng.choice(USER["greetings"])
        introduction = self.rng.choice(USER["introductions"]) if "guest" in given else ""
        self.turn(_text(greeting, introduction, request, **given), self.reply(GLADLY))

    def answer(self, slots):
        """The user answers the bot's questions, or first corrects a slot or asks for one."""
        for slot in [slot for slot in slots if slot not in self.slots]:
            if self.rng.random() < 0.4:
                self.correct(slots)
            known = [slot for slot in self.slots if slot in SLOTS["recall questions"]]
            if known and self.rng.random() < 0.12:
                asked = self.rng.choice(known)
                answer = _text(SLOTS["recall answers"][asked][0], value=self.slots[asked])
                self.turn(_text(self.rng.choice(SLOTS["recall questions"][asked])), answer)
            value = self.slots[slot] = self.first_wishes[slot]
            options = self.rng.choice(
                (SLOTS["gives"][slot], SLOTS["gives value"].get(value, SLOTS["gives"][slot]))
            )
            reply = self.reply(SLOTS["notes"][slot][0], value=value)
            self.turn(_text(self.rng.choice(options), value=value), reply)

    def correct(self, slots):
        """The user corrects the wrong slot, if there is one; returns whether there was."""
        wrong = [
            slot for slot in slots if self.slots.get(slot, self.wishes[slot]) != self.wishes[slot]
        ]
        for slot in wrong:
            old, value = self.slots[slot], self.wishes[slot]
            self.slots[slot] = value
            template = self.rng.choice(SLOTS["corrections"][slot])
            reply = self.reply(SLOTS["nods"]["correction"][0], SLOTS["notes"][slot][0], value=value)
            self.turn(_text(template, value=value, old=CRAVINGS.get(old, old)), reply)
        return bool(wrong)

    def ask(self, least):
        for relation in self.rng.sample(
            sorted(RESTAURANTS["detail questions"]), least + self.rng.randrange(2)
        ):
            place = self.chosen or self.rng.choice(self.found)
            called = (
                "the place"
                if self.chosen and self.rng.random() < 0.7
                else f"the {_word(place.name)}"
            )
            question = self.rng.choice(RESTAURANTS["detail questions"][relation]).format(
                place=called
            )
            self.turn(_text(question), _answer(place, relation))

    def pick(self):
        number = self.rng.randrange(2)
        self.chosen = self.found[number]
        options = USER["picks"] if self.rng.random() < 0.6 else ORDINAL_PICKS[number]
        reply = self.reply(SLOTS["notes"]["name"][0], value=self.chosen.name)
        self.turn(_text(self.rng.choice(options), name=self.chosen.name), reply)


def simulate_dialogs(count, seed=1):
    """Simulates distinct dialogs in the world `restaurants(seed)`; a larger `count` gives the same
    dialogs first.

    Each is a tuple of lines without their numbers: `user TAB bot`, or a fact.
    """
    rng, world, found = random.Random(f"dialogs {seed}"), restaurants(seed), {}
    while len(found) < count:
        lines = tuple(_Dialog(rng, world).lines)
        if sum("\t" in line for line in lines) in TURNS:
            found[lines] = None
    return list(found)


def _candidates(dialogs, world):
    """All that the bot says in the dialogs, and all its calls, offers, facts and farewells;
    sorted.
    """
    texts = {line.split("\t")[1] for dialog in dialogs for line in dialog if "\t" in line}
    searches = itertools.product(*(VALUES[slot] for slot in SEARCH))
    texts |= {_call(dict(zip(SEARCH, search, strict=True))) for search in searches}
    texts |= {_offer(*_found(world, vars(place))) for place in world}
    texts |= {
        _answer(place, relation) for place in world for relation in RESTAURANTS["detail answers"]
    }
    return sorted(texts | {_parting(place) for place in (None, *world)})


def write_babi(directory, count=600, seed=1, held_out=100):
    """Writes the files `NAMES`, `CANDIDATES` and `KNOWLEDGE`."""
    dialogs, world, train = simulate_dialogs(count, seed), restaurants(seed), count - 2 * held_out
    parts = dialogs[:train], dialogs[train:-held_out], dialogs[-held_out:]
    files = {
        name: [
            "".join(f"{n} {line}\n" for n, line in enumerate(dialog, 1)) + "\n" for dialog in part
        ]
        for name, part in zip(NAMES, parts, strict=True)
    }
    files[CANDIDATES] = [f"1 {text}\n" for text in _candidates(dialogs, world)]
    files[KNOWLEDGE] = [
        f"1 {name} {relation}\t{v}\n" for place in world for name, relation, v in _facts(place)
    ]
    return write_entries(directory, files)
