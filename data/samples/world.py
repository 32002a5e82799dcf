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
    names = []
    for adjective in words["adjective"]:
        for noun in words["noun"]:
            names.append(f"{adjective} {noun}".title())
    phones = [f"555-01{number:02}" for number in range(100)]

    searches_and_dishes = []
    for _ in range(count // 2):
        search = tuple(rng.choice(VALUES[slot]) for slot in SEARCH)
        cuisine = search[0]
        for dish in rng.sample(WORLD["dishes"][cuisine], 2):
            searches_and_dishes.append((*search, dish))
    names = rng.sample(names, count)
    phones = rng.sample(phones, count)

    world = []
    for name, search_and_dish, phone in zip(names, searches_and_dishes, phones, strict=True):
        cuisine, town, price, dish = search_and_dish
        # Arguments are drawn in this order.
        restaurant = Restaurant(
            name=name,
            cuisine=cuisine,
            town=town,
            price=price,
            dish=dish,
            chef=f"{rng.choice(words['chef'])} {rng.choice(words['surname'])}",
            rating=rng.randint(5, 10),
            since=rng.randint(1960, 2019),
            phone=phone,
            address=f"{rng.randint(1, 40)} {rng.choice(words['street'])}",
        )
        world.append(restaurant)
    return tuple(world)


def draw_wishes(rng, goal):
    """Draws a value for each slot; a search by them finds the restaurant `goal`."""
    wishes = {slot: rng.choice(values) for slot, values in VALUES.items()}
    for slot in SEARCH:
        wishes[slot] = getattr(goal, slot)
    return wishes


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
    """Writes text files into a new directory.

    Args:
        files: `{name: entries}`; entries are texts with their line ends.

    Returns:
        The number of entries in each file.
    """
    with atomic_directory(directory) as staging:
        for name, entries in files.items():
            (staging / name).write_text("".join(entries), "utf-8", newline="\n")
    return {name: len(entries) for name, entries in files.items()}
