"""tasks/dialog/response_filter.py: what a bot may say in view of a conversation."""

import numpy as np
import pytest

from data.vocabulary import Vocabulary
from tasks.dialog.data import World, load_dataset
from tasks.dialog.response_filter import ResponseFilter

DAYS, PEOPLE = ("monday", "friday", "sunday"), ("two", "three", "six")
CANDIDATES = [
    "api_call thai west",
    "api_call thai R_location",
    "api_call dim_sum west",
    "thai , good choice .",
    "prezzo is a thai place in the west",
    "cheap , moderate or dear ?",
    "goodbye",
    *(f"{day} , noted" for day in DAYS),
    *(f"all done : {day} , {people} of you" for day in DAYS for people in PEOPLE),
]
ENTITIES = [
    *(("thai", "cuisine", "knowledge"), ("dim_sum", "cuisine", "knowledge"), ("west", "location", "knowledge")),
    *((word, "price", "knowledge") for word in ("cheap", "moderate", "dear")),
    ("prezzo", "restaurant", "subjects"),
]


@pytest.fixture(scope="module")
def response_filter():
    return ResponseFilter(World(Vocabulary(("_EOS_", "_UNK_", "thai")), CANDIDATES, [], ENTITIES))


def allowed(response_filter, *texts, understood=True):
    """What may follow user, bot, user, ..."""
    sentences = [(("user", "bot")[place % 2], text) for place, text in enumerate(texts)]
    return {text for text, ok in zip(CANDIDATES, response_filter.allowed(sentences, understood), strict=True) if ok}


NOTHING_CLAIMED = {"cheap , moderate or dear ?", "goodbye"}
ONE_VALUE = {"thai , good choice .", *(f"{day} , noted" for day in DAYS)}


def test_a_response_may_name_one_value_that_was_understood(response_filter):
    assert allowed(response_filter, "hello") == NOTHING_CLAIMED | ONE_VALUE
    assert allowed(response_filter, "hello you", understood=False) == NOTHING_CLAIMED
    assert allowed(response_filter, "hello", "goodbye", "<SILENCE>") == NOTHING_CLAIMED
    assert allowed(response_filter, "<SILENCE>") == NOTHING_CLAIMED | ONE_VALUE  # a greeting of the bot


def test_a_call_names_only_what_was_named(response_filter):
    assert {text for text in allowed(response_filter, "thai please") if text.startswith("api")} == {
        "api_call thai R_location"
    }
    found = allowed(response_filter, "Thai please", "where ?", "in the West", understood=False)
    assert {"api_call thai west", "api_call thai R_location"} <= found and "api_call dim_sum west" not in found
    assert "api_call dim_sum west" in allowed(response_filter, "dim sum in the western part", understood=False)


def test_a_call_is_made_once_until_the_user_says_something(response_filter):
    said = ["thai in the west", "api_call thai west", "<SILENCE>"]
    assert "api_call thai west" not in allowed(response_filter, *said)
    assert "api_call thai west" in allowed(response_filter, *said, "goodbye", "thai in the west")


def test_a_booking_is_confirmed_where_its_values_were_named(response_filter):
    assert not any(text.startswith("all done") for text in allowed(response_filter, "hello"))
    found = {
        text for text in allowed(response_filter, "friday", "how many ?", "a pair of us") if text.startswith("all")
    }
    assert found == {f"all done : friday , {people} of you" for people in PEOPLE}


def test_two_values_of_one_type_are_a_claim():
    pair = ["prezzo and zizzi are there", "goodbye"]
    entities = [(name, "restaurant", "subjects") for name in ("prezzo", "zizzi")]
    response_filter = ResponseFilter(World(Vocabulary(("_EOS_", "_UNK_", "goodbye")), pair, [], entities))
    assert response_filter.allowed([("user", "hello")], True).tolist() == [False, True]


def test_the_values_of_searches_are_listed(response_filter):
    assert response_filter.searched == {"cuisine": ["dim_sum", "thai"], "location": ["west"]}


def test_no_correct_response_of_the_sample_is_left_out(prepared_dialog):
    dataset, checked = load_dataset(prepared_dialog), 0
    response_filter = ResponseFilter(dataset.world)
    for split in dataset.splits.values():
        for dialog in split.dialogs:
            sentences = [(each["speaker"], each["text"]) for each in dataset.conversation(split, dialog)]
            for turn, answer in zip(dialog["turns"], dialog["answers"], strict=True):
                checked += 1
                assert response_filter.allowed(sentences[: turn + 1], True)[answer]
    assert checked == 294
    assert np.mean(response_filter.allowed([("user", "hello")], True)) < 0.5
