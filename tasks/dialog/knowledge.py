"""The knowledge base: which facts a search finds, and which restaurants there are."""

import collections
from typing import NamedTuple

NO_RESULT = "api_call no result"


class Restaurant(NamedTuple):
    """A subject of facts."""

    name: str
    values: set[str]
    """The values of its facts."""
    entity: int
    """Its number among the entities, from 1; 0: it is no entity."""


def find_facts(knowledge, call):
    """Finds all facts about the subjects that have every value of an `api_call`.

    A word `R_price` of the call means any price.

    Returns:
        The facts as texts; `[NO_RESULT]` if there are none.
    """
    wanted = {word for word in call.split()[1:] if not word.startswith("R_")}
    values_by_subject = _group_values(knowledge)
    facts = [" ".join(fact) for fact in knowledge if wanted <= values_by_subject[fact.subject]]
    return facts or [NO_RESULT]


def find_restaurants(knowledge, entities):
    """The `Restaurant`s of a list of facts, in its order.

    Args:
        knowledge: A list of `data.corpora.babi_dialog.Fact`.
        entities: The `Entity`s of the domain.
    """
    number_of_restaurant = {}
    for number, entity in enumerate(entities, 1):
        if entity.source == "subjects":
            number_of_restaurant[entity.name] = number

    restaurants = []
    for name, values in _group_values(knowledge).items():
        number = number_of_restaurant.get(name, 0)
        restaurants.append(Restaurant(name, values, entity=number))
    return restaurants


def _group_values(knowledge):
    """Returns `{subject: values of its facts}`, in the order of the knowledge base."""
    values_by_subject = collections.defaultdict(set)
    for fact in knowledge:
        values_by_subject[fact.subject].add(fact.value)
    return values_by_subject
