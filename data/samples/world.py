"""The restaurants of the simulated conversations: an invented knowledge base."""

import dataclasses
import random
from typing import NamedTuple

from data.samples.wording import VALUES, WORLD

SEARCH = ("cuisine", "town", "price")
"""What a user searches by."""


class Fact(NamedTuple):
    """One line of the knowledge base, as `("Copper Heron", "phone", "555-0107")`."""

    restaurant: str
    relation: str
    value: str


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

    def fact(self, relation):
        """The line of the knowledge base for a relation, which is the name of a field."""
        return Fact(self.name, relation, str(getattr(self, relation)))

    def facts(self):
        """All its lines of the knowledge base."""
        relations = [field.name for field in dataclasses.fields(self) if field.name != "name"]
        return tuple(self.fact(relation) for relation in relations)


def restaurants(seed=1, count=32):
    """Invents restaurants. They come in pairs of the same cuisine, town and price.

    Args:
        seed: Integer; the same seed gives the same restaurants.
        count: How many, an even number from 2 to 100 (so many numbers 555-01xx there are).

    Returns:
        Tuple of `Restaurant`.

    Raises:
        ValueError: If `count` is odd or out of range.

    >>> first, second = restaurants(seed=1, count=2)
    >>> first.fact("town")
    Fact(restaurant='Hungry Thistle', relation='town', value='Pellwick')
    >>> second.town
    'Pellwick'
    """
    if count not in range(2, 101, 2):
        raise ValueError(f"count must be an even number from 2 to 100. Received: count={count}")
    rng = random.Random(f"restaurants {seed}")
    words = WORLD["names"]
    names = [f"{a} {b}".title() for a in words["adjective"] for b in words["noun"]]
    phones = [f"555-01{number:02}" for number in range(100)]
    kinds = []
    for _ in range(count // 2):
        search = tuple(rng.choice(VALUES[slot]) for slot in SEARCH)
        kinds += [(*search, dish) for dish in rng.sample(WORLD["dishes"][search[0]], 2)]
    return tuple(
        Restaurant(
            name,
            *kind,
            chef=f"{rng.choice(words['chef'])} {rng.choice(words['surname'])}",
            rating=rng.randint(5, 10),
            since=rng.randint(1960, 2019),
            phone=phone,
            address=f"{rng.randint(1, 40)} {rng.choice(words['street'])}",
        )
        for name, kind, phone in zip(rng.sample(names, count), kinds, rng.sample(phones, count), strict=True)
    )
