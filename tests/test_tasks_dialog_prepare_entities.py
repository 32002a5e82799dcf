"""`tasks.dialog.prepare.find_entities`."""

from data.corpora.babi_dialog import Fact
from tasks.dialog.prepare import find_entities

# === Entities ===


def test_find_entities_by_source():
    facts = [
        Fact("prezzo", "R_post_code", "cb1"),
        Fact("prezzo", "R_cuisine", "thai"),
        Fact("ask", "R_cuisine", "greek"),
        Fact("ask", "R_cuisine", "thai"),
        Fact("ask", "R_location", "west"),
        Fact("ask", "R_location", "thai"),  # a name of two types
    ]
    calls = [
        "api_call thai west cheap",
        "api_call greek west cheap",
        "api_call greek R_location cheap",
        "api_call tuscan west R_price",
        "api_call tuscan east R_price",
        "api_call R_cuisine east cheap",
        "call thai moon",
        "you said api_call moon west ?",
    ]
    assert find_entities(facts, calls) == [
        ("greek", "cuisine", "knowledge"),
        ("thai", "cuisine", "knowledge"),
        ("thai", "location", "knowledge"),
        ("west", "location", "knowledge"),
        ("cb1", "post_code", "knowledge"),
        ("ask", "restaurant", "subjects"),
        ("prezzo", "restaurant", "subjects"),
        ("east", "location", "calls"),
        ("tuscan", "cuisine", "calls"),  # nothing known stands where cheap does
    ]


def test_a_place_of_calls_has_the_type_that_most_have():
    facts = [Fact("ask", "R_cuisine", "thai"), Fact("ask", "R_location", "west")]
    calls = ["api_call west", "api_call thai", "api_call thai R_x", "api_call moon"]
    assert find_entities(facts, calls)[-1] == ("moon", "cuisine", "calls")


def test_find_entities_without_calls():
    facts = [Fact("prezzo", "R_cuisine", "thai")]
    expected = [("thai", "cuisine", "knowledge"), ("prezzo", "restaurant", "subjects")]
    assert find_entities(facts, ["hello", "api_call"]) == find_entities(facts, []) == expected
