"""An invented world of restaurants, and the writing of text files."""

import dataclasses
import functools
import random
import re

from colloquy.base.files import atomic_directory
from colloquy.data.samples.phrases import VALUES, WORLD

SEARCH = ("cuisine", "town", "price")  # slots that a search needs
BOOKING = ("people", "day", "time", "guest")  # slots that a booking needs


@dataclasses.dataclass(frozen=True)
class Restaurant:
    """A restaurant; its fields are the relations of the knowledge base."""

    name: str
    cuisine: str
    town: str
    price: str
    dish: str
    chef: str
    rating: int
    since: int
    phone: str
    address: str

    def misses(self, slots):
        """Number of the slots searched by that it differs from."""
        return sum(getattr(self, slot) != slots[slot] for slot in SEARCH)


def restaurants(seed=1, count=32):
    """Invents restaurants, in pairs of the same cuisine, town and price.

    >>> first, second = restaurants(seed=1, count=2)
    >>> first.name, first.town, second.town
    ('Hungry Thistle', 'Pellwick', 'Pellwick')
    """
    rng = random.Random(f"restaurants {seed}")
    words = WORLD["names"]
    names = [f"{a} {b}".title() for a in words["adjective"] for b in words["noun"]]
    phones = [f"555-01{number:02}" for number in range(100)]
    kinds = []
    for _ in range(count // 2):
        search = tuple(rng.choice(VALUES[slot]) for slot in SEARCH)
        kinds += [(*search, dish) for dish in rng.sample(WORLD["dishes"][search[0]], 2)]
    found = []
    for name, kind, phone in zip(
        rng.sample(names, count), kinds, rng.sample(phones, count), strict=True
    ):
        chef = f"{rng.choice(words['chef'])} {rng.choice(words['surname'])}"
        rating, since = rng.randint(5, 10), rng.randint(1960, 2019)
        address = f"{rng.randint(1, 40)} {rng.choice(words['street'])}"
        found.append(Restaurant(name, *kind, chef, rating, since, phone, address))
    return tuple(found)


def draw_wishes(rng, goal):
    """A value for each slot; a search by them finds the restaurant `goal`."""
    wishes = {slot: rng.choice(values) for slot, values in VALUES.items()}
    return wishes | {slot: getattr(goal, slot) for slot in SEARCH}


def other_value(rng, slot, value):
    return rng.choice([other for other in VALUES[slot] if other != value])


@functools.lru_cache(maxsize=2**16)
def tokenize(text):
    """Splits off punctuation and lower-cases.

    >>> tokenize("The Shy Fox, 7 o'clock? Call 555-0107.")
    "the shy fox , 7 o'clock ? call 555-0107 ."
    """
    return " ".join(re.findall(r"\w+(?:['-]\w+)*|[^\w\s]", text.lower()))


def write_entries(directory, files):
    """Writes text files from `{name: entries with their line ends}` into a new directory; returns
    their sizes.
    """
    with atomic_directory(directory) as staging:
        for name, entries in files.items():
            (staging / name).write_text("".join(entries), "utf-8", newline="\n")
    return {name: len(entries) for name, entries in files.items()}
