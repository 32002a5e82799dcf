"""tasks/dialog/response_filter.py: what a bot may say in view of a conversation."""

import numpy as np
import pytest

from data.vocabulary import Vocabulary
from tasks.dialog.dataset import World, load_dataset
from tasks.dialog.prepare import BOT, FACT, USER
from tasks.dialog.response_filter import Claims

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
def claims():
    return Claims(World(Vocabulary(("_EOS_", "_UNK_", "thai")), CANDIDATES, [], ENTITIES))


def allowed(claims, *texts, understood=True):
    """What may follow user, bot, user, ..."""
    sentences = [(("user", "bot")[place % 2], text) for place, text in enumerate(texts)]
    return {text for text, ok in zip(CANDIDATES, claims.allowed(sentences, understood), strict=True) if ok}


NOTHING_CLAIMED = {"cheap , moderate or dear ?", "goodbye"}
ONE_VALUE = {"thai , good choice .", *(f"{day} , noted" for day in DAYS)}


def test_a_response_may_name_one_value_that_was_understood(claims):
    assert allowed(claims, "hello") == NOTHING_CLAIMED | ONE_VALUE
    assert allowed(claims, "hello you", understood=False) == NOTHING_CLAIMED
    assert allowed(claims, "hello", "goodbye", "<SILENCE>") == NOTHING_CLAIMED
    assert allowed(claims, "<SILENCE>") == NOTHING_CLAIMED | ONE_VALUE  # a greeting of the bot


def test_a_call_names_only_what_was_named(claims):
    assert {text for text in allowed(claims, "thai please") if text.startswith("api")} == {"api_call thai R_location"}
    found = allowed(claims, "Thai please", "where ?", "in the West", understood=False)
    assert {"api_call thai west", "api_call thai R_location"} <= found and "api_call dim_sum west" not in found
    assert "api_call dim_sum west" in allowed(claims, "dim sum in the western part", understood=False)


def test_a_call_is_made_once_until_the_user_says_something(claims):
    said = ["thai in the west", "api_call thai west", "<SILENCE>"]
    assert "api_call thai west" not in allowed(claims, *said)
    assert "api_call thai west" in allowed(claims, *said, "goodbye", "thai in the west")


def test_a_booking_is_confirmed_where_its_values_were_named(claims):
    assert not any(text.startswith("all done") for text in allowed(claims, "hello"))
    found = {text for text in allowed(claims, "friday", "how many ?", "a pair of us") if text.startswith("all")}
    assert found == {f"all done : friday , {people} of you" for people in PEOPLE}


def test_two_values_of_one_type_are_a_claim():
    pair = ["prezzo and zizzi are there", "goodbye"]
    entities = [(name, "restaurant", "subjects") for name in ("prezzo", "zizzi")]
    claims = Claims(World(Vocabulary(("_EOS_", "_UNK_", "goodbye")), pair, [], entities))
    assert claims.allowed([("user", "hello")], True).tolist() == [False, True]


def test_the_values_of_searches_are_listed(claims):
    assert claims.searched == {"cuisine": ["dim_sum", "thai"], "location": ["west"]}


def test_no_correct_response_of_the_sample_is_left_out(prepared_dialog):
    dataset = load_dataset(prepared_dialog)
    world, checked = dataset.world, 0
    claims, names = Claims(world), {USER: "user", BOT: "bot", FACT: "fact"}
    for split in dataset.splits.values():
        for dialog in split.dialogs:
            sentences = [
                (names[speaker], " ".join(world.vocabulary.words[id - 1] for id in split.sentences.words[number] if id))
                for number, speaker in zip(dialog["sentences"], dialog["speakers"], strict=True)
            ]
            for turn, answer in zip(dialog["turns"], dialog["answers"], strict=True):
                checked += 1
                assert claims.allowed(sentences[: turn + 1], True)[answer]
    assert checked == 294
    assert np.mean(claims.allowed([("user", "hello")], True)) < 0.5
