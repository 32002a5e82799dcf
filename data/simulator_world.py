"""The restaurants of the simulated conversations: an invented knowledge base."""

import dataclasses
import random
from typing import NamedTuple

from data import simulator_wording as wording

SEARCH = ("cuisine", "town", "price")
"""What a user searches by."""


class Fact(NamedTuple):
    """One line of the knowledge base, as `("Copper Heron", "phone", "555-0107")`."""

    restaurant: str
    relation: str
    value: str


@dataclasses.dataclass(frozen=True)
class Restaurant:
    """A restaurant, its fields being the relations of the knowledge base."""

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
        """The restaurant's line of the knowledge base for a relation, which is the name of a field."""
        return Fact(self.name, relation, str(getattr(self, relation)))


def restaurants(seed=1, count=48):
    """Invents restaurants: the knowledge base. They come in pairs of the same cuisine, town and price.

    Args:
        seed: Integer; the same seed gives the same restaurants.
        count: How many, an even number from 2 to 100, the stock of telephone numbers kept for fiction.

    Returns:
        Tuple of `Restaurant`.

    Raises:
        ValueError: If `count` is odd or out of range.

    >>> len(restaurants(count=4)), restaurants(seed=5) == restaurants(seed=5)
    (4, True)
    """
    if count not in range(2, 101, 2):
        raise ValueError(
            f"The restaurants must be an even number from 2 to 100. Received: count={count}"
        )
    rng = random.Random(f"restaurants {seed}")
    names = rng.sample(
        [f"{a} {b}".title() for a in wording.ADJECTIVES for b in wording.NOUNS], count
    )
    chefs = [f"{a} {b}" for a in wording.CHEF_NAMES for b in wording.CHEF_SURNAMES]
    phones = [f"555-01{number:02}" for number in rng.sample(range(100), count)]
    world = []
    for first in range(0, count, 2):
        kind = {slot: rng.choice(wording.VALUES[slot]) for slot in SEARCH}
        for place, dish in zip(
            (first, first + 1), rng.sample(wording.DISHES[kind["cuisine"]], 2), strict=True
        ):
            world.append(
                Restaurant(
                    name=names[place],
                    **kind,
                    dish=dish,
                    chef=rng.choice(chefs),
                    rating=rng.randint(5, 10),
                    since=rng.randint(1960, 2019),
                    phone=phones[place],
                    address=f"{rng.randint(1, 40)} {rng.choice(wording.STREETS)}",
                )
            )
    return tuple(world)
