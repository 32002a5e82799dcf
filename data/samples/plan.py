"""What happens in a simulated conversation: a plan of two to seven steps, drawn at random.

open kind          what the user wants: `find` a restaurant, find one and `book` it, book a `visit`
                   to one by name, or `chat`
give slot          answers the bot's question for a slot that the opening left out
correct slot       gives it another value     recall slot    asks which value was given
choose offered     settles on a restaurant, a `single` one or one of a `pair`
detail relation    asks a fact about one      part           says goodbye
chat topic         small talk                 persona key    asks the bot about itself
"""

from data.samples.wording import PERSONA, RESTAURANTS, SLOTS, TOPICS
from data.samples.world import SEARCH

BOOKING = ("people", "day", "time", "guest")
"""What a booking needs."""
MAX_STEPS = 7


def draw_plan(rng):
    """Draws plans until one is neither too short nor too long.

    Args:
        rng: A `random.Random`.

    Returns:
        The slots that the opening tells, and the steps: tuples of a name and its details.

    >>> import random
    >>> told, steps = draw_plan(random.Random(1))
    >>> told
    ['price']
    >>> steps[:4]
    [('open', 'find'), ('give', 'town'), ('correct', 'town'), ('give', 'cuisine')]
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
        [("give", slot) for slot in rng.sample(slots, len(slots)) if slot not in told] for slots in (search, booking)
    )
    offered = "pair" if search and rng.random() < 0.5 else "single"
    choose = [("choose", offered)] if kind == "book" or offered == "pair" else []
    return told, [("open", kind), *searches, *choose, *bookings]


def _extras(rng, told, steps):
    """Further steps, each with the place where it is put into the steps."""
    end = len(steps)
    given = dict.fromkeys(told, 0)  # slot -> the place of the step that gives it
    given |= {step[1]: place for place, step in enumerate(steps) if step[0] == "give"}
    offer = max((given[slot] for slot in SEARCH if slot in given), default=0)
    chatty = steps[0] == ("open", "chat")

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
