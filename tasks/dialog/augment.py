"""Training dialogs in other words, for bots that people talk to.

Dialog bAbI has only a few hundred sentences. A copy of a full dialog (task 5) has the same wishes,
calls, restaurants and responses, but the user names slots in any order, several at once, changes
some of them before or after restaurants were offered, and says all in other words. Copies depend on
the seed alone.
"""

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.vocabulary import SPECIALS

UNK = SPECIALS[1]

# === Responses of the bot ===

QUESTIONS = {
    "cuisine": "any preference on a type of cuisine",
    "location": "where should it be",
    "number": "how many people would be in your party",
    "price": "which price range are looking for",
}
SLOTS = tuple(QUESTIONS)  # in the order in which the bot asks, and of a call's words
GREETED = "hello what can i help you with today"
ACCEPTED = "i'm on it"
LOOKING = "ok let me look into some options for you"
UPDATE = "sure is there anything else to update"
CALL = "api_call "
OFFER = "what do you think of this option: "
ANOTHER = "sure let me find an other option for you"
RESERVED = "great let me do the reservation"
ANYTHING = "is there anything i can help you with"
WELCOME = "you're welcome"

# === Probabilities ===

GREETING = 0.5  # of dialogs that begin with a greeting
CALL_FIRST = 0.3  # of dialogs that search before a change
ONE_SLOT = 0.8  # of turns that answer a question or change a wish by one slot
UNKNOWN = 0.05  # of words that are unknown

# === Words of the user, choices separated by | ===

YES = (
    "yes|ok|okay|great|perfect|good|very good|fine|wonderful|all right|sure|excellent|nice|"
    "cool|yeah|lovely"
)
NO = "no|nope|no thanks|no thank you|hmm|hmm no|sorry|not really|well"
TAKEN = (
    "book it|reserve it|take it|i take it|i will take it|i like it|i like that one|i love it|"
    "that is the one|that one|this one|let's do it|do it|let's book it|let's take this one|"
    "book this one|reserve that one|that works|that works for me|sounds good|"
    "that sounds good|that looks good|looks good|that is fine|this one is fine|it is perfect|"
    "that will do|go for it|i want this one|make the reservation|please book it|that's nice|"
    "that's good|we take it|it is good"
)
REFUSED = (
    "not that one|not this one|i don't like it|i don't like this one|i don't like that one|"
    "another one|another one please|something else|something else please|"
    "do you have another one|do you have anything else|do you have something else|"
    "is there another one|is there anything else|what else is there|what else do you have|"
    "find me another|show me another|find me another one|that is not for me|"
    "this is not for me|this one does not work|that does not work for me|"
    "i have been there before|we have been there|we were there already|anything else|"
    "next one please|i want a different one"
)
DONE = (
    "that's all|that is all|that's it|that is it|that is everything|nothing else|"
    "nothing more|nothing|that would be all|i am done|it is fine like that|go ahead|"
    "please go ahead|let's do it|go on|we are good|all good"
)
ASKED = "what is|can i have|may i have|give me|tell me|i need|do you have|could you tell me|and"
THANKED = (
    "thanks|thank you|thank you very much|thanks a lot|many thanks|you rock|"
    "that is great thanks|cheers"
)
PARTED = "thanks|thank you|goodbye|bye|that's all|nothing else|have a nice day|see you|that is all"
HELLO = "hello|hi|hey|good morning|good afternoon|good evening|hi there|hello there|hey there"
HELP = (
    "can you help me|i need help|i want to book a table|i need a restaurant|"
    "i'd like to eat out|can you find me a restaurant|do you make reservations|"
    "we are looking for a place to eat|i am hungry"
)

PARTS_BEFORE = {
    # "well" and thanks alone are no yes.
    RESERVED: (f"|well|{YES}", f"{YES}|{TAKEN}", "|||please|thanks|thank you"),
    ANOTHER: (f"|{NO}", f"|{REFUSED}"),
    LOOKING: (f"|{NO}|ok", f"|{DONE}"),
    "phone": (
        f"|well|{YES}|and",
        ASKED,
        "its|the|their",
        "phone number|phone|telephone number|number",
        "||please",
    ),
    "address": (f"|well|{YES}|and", ASKED, "its|the|their", "address", "||please"),
    ANYTHING: (f"|well|{YES}", THANKED),
    WELCOME: ("|no|nope|no thanks|ok", f"|{PARTED}"),
    GREETED: (f"|{HELLO}", f"|||{HELP}"),
}
"""Response, or type of the entity in it -> the parts of the user's sentence before it."""
VALUE_PHRASES = {
    "cuisine": (
        "{} food|{} cuisine|with {} food|i love {} food|i feel like {} food|something {}|"
        "a {} restaurant|{}"
    ),
    "location": "in {}|{}|somewhere in {}|it should be in {}|a restaurant in {}|a place in {}",
    "number": (
        "for {}|for {} people|{} people|{}|we are {}|there are {} of us|a table for {}|"
        "a party of {}|it's for {}"
    ),
    "price": (
        "{}|in a {} price range|something {}|it has to be {}|{} prices|{} is fine|{} would be best"
    ),
}
"""Ways to name a value of a slot."""
OPENINGS = (
    "|can you book a table|i'd like to book a table|may i have a table|i want|i need|"
    "please find me|i am looking for|find me|we want to eat|we are looking for|"
    "can you make a restaurant reservation|i'd like|hello i want|hi i need"
)
CHANGES = (
    "actually|no|sorry|oh wait|instead|hmm no|wait|change it to|make it|make that|i meant|"
    "i would prefer|actually make it|can we do it|could it be|instead could it be|"
    "actually i would prefer"
)
ENDINGS = "|||instead|please|instead of {}|rather than {}|not {}"


def augment(dialogs, search, rng):
    """Copies the full dialogs in other words.

    A dialog is full if it has facts and its calls have all `SLOTS`, which those of task 6 lack.

    Args:
        dialogs: Lists of `(speaker, text)`.
        search: Finds the facts of an `api_call`, see `tasks.dialog.prepare.find_facts`.
        rng: A `random.Random`.
    """
    copies = []
    for dialog in dialogs:
        if _is_full(dialog):
            copies.append(_Copy(search, rng).reword(dialog))
    return copies


def _is_full(dialog):
    has_facts = any(speaker == "fact" for speaker, _ in dialog)
    call_lengths = {len(text.split()) for _, text in dialog if text.startswith(CALL)}
    return has_facts and call_lengths == {1 + len(SLOTS)}


class _Copy:
    """The copy of one dialog, sentence by sentence."""

    def __init__(self, search, rng):
        self.search = search
        self.rng = rng
        self.sentences = []
        self.wishes = {}

    def reword(self, dialog):
        calls = [text for _, text in dialog if text.startswith(CALL)]
        first_call = calls[0]
        last_call = calls[-1]
        if self.rng.random() < GREETING:
            self.add_turn(self.phrase(PARTS_BEFORE[GREETED]), GREETED)
        self.ask(_wishes_of(first_call))
        self.add_turn(SILENCE, first_call)
        if len(calls) > 1:
            if self.rng.random() < CALL_FIRST:
                self.offer(self.search(first_call))
            self.change(_wishes_of(last_call))
            self.add_turn(SILENCE, last_call)

        # After the facts, turns have no values: their words change, their order does not.
        facts = [place for place, (speaker, _) in enumerate(dialog) if speaker == "fact"]
        end = facts[-1] + 1
        self.sentences += [dialog[place] for place in facts]
        for (_, user), (_, bot) in zip(dialog[end::2], dialog[end + 1 :: 2], strict=True):
            parts = PARTS_BEFORE.get(_key_of(bot))
            if parts and user != SILENCE:
                user = self.phrase(parts)
            self.add_turn(user, bot)
        return self.sentences

    def add_turn(self, user, bot):
        """Adds a turn; some words of the user become unknown, but no value."""
        kept = {SILENCE, *self.wishes.values()}
        words = []
        for word in user.split():
            is_known = word in kept or self.rng.random() >= UNKNOWN
            words.append(word if is_known else UNK)
        self.sentences += [("user", " ".join(words)), ("bot", bot)]

    def phrase(self, parts):
        """Makes a sentence of one choice of each part, not empty."""
        while True:
            choices = [self.rng.choice(part.split("|")) for part in parts]
            words = " ".join(choices).split()
            if words:
                return " ".join(words)

    def name(self, slots):
        """Names the user's wishes for some slots."""
        phrases = []
        for slot in slots:
            phrase = self.phrase([VALUE_PHRASES[slot]])
            phrases.append(phrase.format(self.wishes[slot]))
        return " ".join(phrases)

    def ask(self, wishes):
        """Adds the turns up to the call.

        The user names slots in any order; the bot asks for the first that is missing.
        """
        self.wishes = wishes
        named = self.rng.sample(SLOTS, self.rng.randint(1, len(SLOTS)))
        sentence = self.phrase([OPENINGS, "", "{}"])
        is_first = True
        missing = list(SLOTS)
        while missing:
            missing = [slot for slot in missing if slot not in named]
            response = QUESTIONS[missing[0]] if missing else LOOKING
            text = sentence.format(self.name(named))
            if missing and is_first:
                self.add_turn(text, ACCEPTED)
                text = SILENCE
            self.add_turn(text, response)
            sentence = "{}"
            is_first = False

            others = missing[1:]
            self.rng.shuffle(others)
            if self.rng.random() < ONE_SLOT:
                named = missing[:1]
            else:
                named = others[: self.rng.randint(1, 2)]

    def change(self, wishes):
        """Adds the turns in which the user changes wishes."""
        remaining = [slot for slot in SLOTS if wishes[slot] != self.wishes[slot]]
        self.rng.shuffle(remaining)
        while remaining:
            count = 1 if self.rng.random() < ONE_SLOT else len(remaining)
            changed = remaining[:count]
            remaining = remaining[count:]
            old_value = self.wishes[changed[-1]]
            for slot in changed:
                self.wishes[slot] = wishes[slot]
            # The full stop is only there because a phrase is not empty, but an ending may be.
            ending = self.phrase([ENDINGS, "."]).removesuffix(".").strip().format(old_value)
            self.add_turn(f"{self.phrase([CHANGES])} {self.name(changed)} {ending}", UPDATE)
        self.add_turn(self.phrase(PARTS_BEFORE[LOOKING]), LOOKING)

    def offer(self, facts):
        """Adds the result of the first call, and the best restaurant."""
        self.sentences += [("fact", fact) for fact in facts]
        ratings = {}
        for fact in facts:
            if " R_rating " in fact:
                restaurant, _, rating, *_ = fact.split()
                if rating.isdecimal():
                    ratings[restaurant] = int(rating)
        if ratings:
            self.add_turn(SILENCE, OFFER + max(ratings, key=ratings.get))


def _wishes_of(call):
    return dict(zip(SLOTS, call.split()[1:], strict=True))


def _key_of(response):
    for entity_type in ("phone", "address"):
        if response.endswith(f"_{entity_type}"):
            return entity_type
    return response
