"""The knowledge base of a dialog bot, the calls that search it, and the entities in both."""

import collections
from typing import NamedTuple

CALL = "api_call "
"""The beginning of a response that searches the knowledge base: `api_call thai west R_price`."""
NO_RESULT = "api_call no result"
"""The fact after a call that finds nothing, as the corpus writes it. It is no call itself."""
RESTAURANT = "restaurant"
"""The type of the subjects of facts."""


def is_call(response):
    return response.startswith(CALL)


def find_facts(knowledge, call):
    """Finds all facts about the subjects that have every value of a call.

    A word `R_price` of the call means any price.

    Returns:
        The facts as texts; `[NO_RESULT]` if there are none.
    """
    wanted = {word for word in call.split()[1:] if not word.startswith("R_")}
    values_by_subject = group_values(knowledge)
    facts = [" ".join(fact) for fact in knowledge if wanted <= values_by_subject[fact.subject]]
    return facts or [NO_RESULT]


def group_values(knowledge):
    """Returns `{subject: values of its facts}`, in the order of the knowledge base."""
    values_by_subject = collections.defaultdict(set)
    for fact in knowledge:
        values_by_subject[fact.subject].add(fact.value)
    return values_by_subject


# === Entities ===


class Entity(NamedTuple):
    """A line of `entities.txt`, see `find_entities`."""

    name: str
    """A word, with `_` between its parts: `north_american`."""
    type: str
    """Such as `cuisine`."""
    source: str
    """Where `find_entities` has found it: `knowledge`, `subjects` or `calls`."""


def find_entities(knowledge, candidates):
    """Finds the distinct entities of a domain.

    - `knowledge`: the values of a relation, whose type is the relation (`R_price` gives `price`).
    - `subjects`: the subjects of facts, of type `restaurant`.
    - `calls`: words of an `api_call` that are no value of the knowledge base. Their type is the one
      that most other calls have in the same place.

    Args:
        knowledge: A list of `Fact`.
        candidates: All responses of the bot.

    Returns:
        A list of `Entity`, the sources in the order above, each sorted.

    >>> from colloquy.data.corpora.babi_dialog import Fact
    >>> facts = [Fact("prezzo", "R_cuisine", "thai"), Fact("prezzo", "R_location", "west")]
    >>> calls = ["api_call thai west", "api_call thai R_location", "api_call tuscan west"]
    >>> for entity in find_entities(facts, [*calls, "hello"]):
    ...     print(*entity)
    thai cuisine knowledge
    west location knowledge
    prezzo restaurant subjects
    tuscan cuisine calls
    """
    typed_values = {(fact.relation.removeprefix("R_"), fact.value) for fact in knowledge}
    subjects = {fact.subject for fact in knowledge}
    entities = [Entity(value, type, "knowledge") for type, value in sorted(typed_values)]
    type_of_value = {entity.name: entity.type for entity in entities}
    entities += [Entity(subject, RESTAURANT, "subjects") for subject in sorted(subjects)]
    calls = [text.split()[1:] for text in candidates if is_call(text)]
    return entities + _find_unknown_values(calls, type_of_value)


def _find_unknown_values(calls, type_of_value):
    """Finds the words of calls that are no values of the knowledge base, sorted entities."""
    words_by_place = collections.defaultdict(list)
    for words in calls:
        for place, word in enumerate(words):
            words_by_place[place].append(word)

    unknown = set()
    for words in words_by_place.values():
        known_types = [type_of_value[word] for word in words if word in type_of_value]
        if not known_types:
            continue
        [(common_type, _)] = collections.Counter(known_types).most_common(1)
        for word in words:
            # `R_price` stands for any price.
            if word not in type_of_value and not word.startswith("R_"):
                unknown.add(Entity(word, common_type, "calls"))
    return sorted(unknown)
