"""Training dialogs in other words, for bots that people talk to: dialog bAbI has only a few hundred
sentences.

A copy of a full dialog (task 5) has the same wishes, calls, restaurants and responses, but the user
names slots in any order, several at once, changes some of them before or after restaurants were
offered, and says all in other words. Copies depend on the seed alone.
"""

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.vocabulary import SPECIALS

SLOTS = ("cuisine", "location", "number", "price")
ASKS = (
    "any preference on a type of cuisine",
    "where should it be",
    "how many people would be in your party",
    "which price range are looking for",
)
GREETED, ACCEPTED = "hello what can i help you with today", "i'm on it"
LOOKING, UPDATE = (
    "ok let me look into some options for you",
    "sure is there anything else to update",
)
CALL, OFFER, UNK = "api_call ", "what do you think of this option: ", SPECIALS[1]
# fractions of dialogs that search before a change, and of words that are unknown
CALL_FIRST, UNKNOWN = 0.3, 0.05

YES = "yes|ok|okay|great|perfect|good|very good|fine|wonderful|all right|sure|excellent|nice|cool|yeah|well|lovely"
NO = "no|nope|no thanks|no thank you|hmm|hmm no|sorry|not really|well"
TAKEN = (
    "book it|reserve it|take it|i take it|i will take it|i like it|i like that one|i love it|that is the one|"
    "that one|this one|let's do it|do it|let's book it|let's take this one|book this one|reserve that one|"
    "that works|that works for me|sounds good|that sounds good|that looks good|looks good|that is fine|"
    "this one is fine|it is perfect|that will do|go for it|i want this one|make the reservation|please book it|"
    "that's nice|that's good|we take it|it is good"
)
REFUSED = (
    "not that one|not this one|i don't like it|i don't like this one|i don't like that one|another one|"
    "another one please|something else|something else please|do you have another one|do you have anything else|"
    "do you have something else|is there another one|is there anything else|what else is there|"
    "what else do you have|find me another|show me another|find me another one|that is not for me|"
    "this is not for me|this one does not work|that does not work for me|i have been there before|"
    "we have been there|we were there already|anything else|next one please|i want a different one"
)
DONE = (
    "that's all|that is all|that's it|that is it|that is everything|nothing else|nothing more|nothing|"
    "that would be all|i am done|it is fine like that|go ahead|please go ahead|let's do it|go on|we are good|"
    "all good"
)
ASKED = "what is|can i have|may i have|give me|tell me|i need|do you have|could you tell me|and"
THANKED = "thanks|thank you|thank you very much|thanks a lot|many thanks|you rock|that is great thanks|cheers"
PARTED = "thanks|thank you|goodbye|bye|that's all|nothing else|have a nice day|see you|that is all"
HELLO = "hello|hi|hey|good morning|good afternoon|good evening|hi there|hello there|hey there"
HELP = (
    "can you help me|i need help|i want to book a table|i need a restaurant|i'd like to eat out|"
    "can you find me a restaurant|do you make reservations|we are looking for a place to eat|i am hungry"
)
BEFORE = {
    "great let me do the reservation": (f"|{YES}", f"|{TAKEN}", "|||please|thanks|thank you"),
    "sure let me find an other option for you": (f"|{NO}", f"|{REFUSED}"),
    LOOKING: (f"|{NO}|ok", f"|{DONE}"),
    "phone": (
        f"|{YES}|and",
        ASKED,
        "its|the|their",
        "phone number|phone|telephone number|number",
        "||please",
    ),
    "address": (f"|{YES}|and", ASKED, "its|the|their", "address", "||please"),
    "is there anything i can help you with": (f"|{YES}", THANKED),
    "you're welcome": ("|no|nope|no thanks|ok", f"|{PARTED}"),
    GREETED: (f"|{HELLO}", f"|||{HELP}"),
}
"""Response, or type of the entity in it -> parts of the user's sentence before it, each with its
choices.
"""
NAMES = {
    "cuisine": "{} food|{} cuisine|with {} food|i love {} food|i feel like {} food|something {}|a {} restaurant|{}",
    "location": "in {}|{}|somewhere in {}|it should be in {}|a restaurant in {}|a place in {}",
    "number": "for {}|for {} people|{} people|{}|we are {}|there are {} of us|a table for {}|a party of {}|it's for {}",
    "price": "{}|in a {} price range|something {}|it has to be {}|{} prices|{} is fine|{} would be best",
}
"""Ways to name a value of a slot."""
OPENINGS = (
    "|can you book a table|i'd like to book a table|may i have a table|i want|i need|please find me|"
    "i am looking for|find me|we want to eat|we are looking for|can you make a restaurant reservation|i'd like|"
    "hello i want|hi i need"
)
CHANGES = (
    "actually|no|sorry|oh wait|instead|hmm no|wait|change it to|make it|make that|i meant|i would prefer|"
    "actually make it|can we do it|could it be|instead could it be|actually i would prefer"
)
ENDINGS = "|||instead|please|instead of {}|rather than {}|not {}"


def augment(dialogs, search, rng):
    """Copies the full dialogs among some: with facts, and calls that have all `SLOTS`, which those
    of task 6 lack.

    Dialogs are lists of `(speaker, text)`; `search` finds the facts of an `api_call`, see
    `tasks.dialog.data.Domain.search`; `rng` is a `random.Random`.
    """

    def words_of_calls(said):
        return {len(text.split()) for _, text in said if text.startswith(CALL)}

    full = [
        said
        for said in dialogs
        if "fact" in dict(said) and words_of_calls(said) == {1 + len(SLOTS)}
    ]
    return [_Copy(said, search, rng).said for said in full]


class _Copy:
    def __init__(self, said, search, rng):
        self.rng, self.said, self.wishes = rng, [], {}
        calls = [text for _, text in said if text.startswith(CALL)]
        if rng.random() < 0.5:
            self.turn(self.phrase(BEFORE[GREETED]), GREETED)
        self.ask(dict(zip(SLOTS, calls[0].split()[1:], strict=True)))
        self.turn(SILENCE, calls[0])
        if len(calls) > 1:
            if rng.random() < CALL_FIRST:
                self.offer(search(calls[0]))
            self.change(dict(zip(SLOTS, calls[-1].split()[1:], strict=True)))
            self.turn(SILENCE, calls[-1])
        end = max(place for place, (speaker, _) in enumerate(said) if speaker == "fact") + 1
        self.said += [line for line in said[:end] if line[0] == "fact"]
        for (_, user), (_, bot) in zip(said[end::2], said[end + 1 :: 2], strict=True):
            key = next((type for type in ("phone", "address") if bot.endswith(f"_{type}")), bot)
            self.turn(self.phrase(BEFORE[key]) if key in BEFORE and user != SILENCE else user, bot)

    def turn(self, user, bot):
        kept = {SILENCE, *self.wishes.values()}
        words = [
            word if word in kept or self.rng.random() >= UNKNOWN else UNK for word in user.split()
        ]
        self.said += [("user", " ".join(words)), ("bot", bot)]

    def phrase(self, parts):
        """A sentence of one choice of each part, not empty."""
        while True:
            if text := " ".join(
                " ".join(self.rng.choice(part.split("|")) for part in parts).split()
            ):
                return text

    def name(self, slots):
        return " ".join(self.phrase([NAMES[slot]]).format(self.wishes[slot]) for slot in slots)

    def ask(self, wishes):
        """The search up to the call: slots are named in any order, and the bot asks for the first
        that is missing.
        """
        self.wishes, missing = wishes, list(SLOTS)
        given = self.rng.sample(SLOTS, self.rng.randint(1, len(SLOTS)))
        opening, accepted = self.phrase([OPENINGS, "", "{}"]), False
        while missing:
            missing = [slot for slot in missing if slot not in given]
            response = ASKS[SLOTS.index(missing[0])] if missing else LOOKING
            text = opening.format(self.name(given))
            if missing and not accepted:
                self.turn(text, ACCEPTED)
                text = SILENCE
            self.turn(text, response)
            opening, accepted = "{}", True
            self.rng.shuffle(others := missing[1:])
            given = missing[:1] if self.rng.random() < 0.8 else others[: self.rng.randint(1, 2)]

    def change(self, wishes):
        changed = [slot for slot in SLOTS if wishes[slot] != self.wishes[slot]]
        self.rng.shuffle(changed)
        while changed:
            some, changed = (changed[:1], changed[1:]) if self.rng.random() < 0.8 else (changed, [])
            old = [self.wishes[slot] for slot in some]
            self.wishes |= {slot: wishes[slot] for slot in some}
            ending = self.phrase([ENDINGS, "."])[:-1].strip().format(old[-1])
            self.turn(f"{self.phrase([CHANGES])} {self.name(some)} {ending}", UPDATE)
        self.turn(self.phrase(BEFORE[LOOKING]), LOOKING)

    def offer(self, facts):
        """The result of the first call, and the best restaurant."""
        self.said += [("fact", fact) for fact in facts]
        rated = [fact.split() for fact in facts if " R_rating " in fact]
        ratings = {name: int(value) for name, _, value, *_ in rated if value.isdecimal()}
        if ratings:
            self.turn(SILENCE, OFFER + max(ratings, key=ratings.get))
