"""tasks/dialog/wishes.py: what the user wishes, and restaurants as fields."""

import pytest

from colloquy.data.vocabulary import SPECIALS, Vocabulary
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.wishes import Restaurants, find_wishes

KNOWLEDGE = [
    ("casa", "R_cuisine", "asian_oriental"),
    ("casa", "R_location", "west"),
    ("casa", "R_rating", "6"),
    ("casa", "R_phone", "casa_phone"),
    ("prezzo", "R_cuisine", "thai"),
    ("prezzo", "R_location", "west"),
]
CANDIDATES = ["api_call asian_oriental west", "api_call thai east", "hello"]


@pytest.fixture
def domain():
    entities = [
        ("asian_oriental", "cuisine", "knowledge"),
        ("thai", "cuisine", "knowledge"),
        ("west", "location", "knowledge"),
        ("east", "location", "calls"),
        ("casa_phone", "phone", "knowledge"),
        ("casa", "restaurant", "subjects"),
    ]
    return Domain(Vocabulary(list(SPECIALS)), CANDIDATES, KNOWLEDGE, entities)


def wishes(domain, *sentences):
    """`{slot: (value, [(place, rest of the sentence)])}` of what a user said."""
    read = [(2 * place, text.split()) for place, text in enumerate(sentences)]
    found = {}
    for wish in find_wishes(domain, read):
        mentions = [(mention.sentence, mention.without) for mention in wish.mentions]
        found[wish.slot] = (wish.value, mentions)
    return found


def test_the_last_value_of_each_slot_is_wished_and_the_rest_of_its_sentence_known(domain):
    assert wishes(domain, "hello") == {}
    assert wishes(domain, "thai in the west", "the west") == {
        "cuisine": ("thai", [(0, "in the west")]),
        "location": ("west", [(0, "thai in the"), (2, "the")]),
    }
    assert wishes(domain, "thai in the west", "no , in the east", "so asian oriental food") == {
        "cuisine": ("asian_oriental", [(4, "so food")]),
        "location": ("east", [(2, "no , in the")]),
    }


def test_a_restaurant_has_the_fields_that_its_facts_have(domain):
    restaurants = Restaurants(domain)
    [casa] = restaurants.named_in(["how about casa ?"])
    assert casa.model_dump(exclude_unset=True) == {
        "name": "casa",
        "cuisine": "asian_oriental",
        "location": "west",
        "rating": 6,
        "phone": "casa_phone",
    }
    assert restaurants.named_in(["here it is casa_phone"]) == [casa]
    # A cuisine and a place are not a restaurant's own.
    assert restaurants.named_in(["api_call thai west"]) == []
    assert [restaurant.name for restaurant in restaurants.all] == ["casa", "prezzo"]
