"""`tasks.dialog.knowledge`: what a call finds."""

import pytest

from data.vocabulary import Vocabulary
from tasks.dialog.dataset import World
from tasks.dialog.knowledge import search

FACTS = [
    ("prezzo", "R_cuisine", "thai"),
    ("prezzo", "R_location", "west"),
    ("zizzi", "R_cuisine", "thai"),
    ("zizzi", "R_location", "east"),
]


# === Search ===


@pytest.fixture
def world():
    words = ("_EOS_", "_UNK_", "api_call")
    return World(Vocabulary(words), ["api_call"], FACTS, [])


def test_search_gives_all_facts_of_what_has_every_value(world):
    assert search(world, "api_call thai west") == ["prezzo R_cuisine thai", "prezzo R_location west"]
    assert len(search(world, "api_call thai R_location R_price")) == 4


def test_search_without_a_match_says_so(world):
    assert search(world, "api_call thai north") == ["api_call no result"]
    assert search(world, "api_call tuscan R_location") == ["api_call no result"]
