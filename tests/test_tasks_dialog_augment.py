"""`tasks.dialog.augment`: training dialogs in other words."""

import itertools
import random

import pytest
from helpers import turns

from tasks.dialog.augment import ASKS, LOOKING, SLOTS, UPDATE, augment

FACTS = [f"resto_{name} R_{relation} {value}" for name, rating in (("a", 3), ("b", 8)) for relation, value in (
    ("cuisine", "thai"), ("location", "rome"), ("number", "two"), ("price", "cheap"), ("rating", rating))]  # fmt: skip
OFFER, SILENCE = "what do you think of this option: ", "<SILENCE>"


FULL = [
    *turns("hello", "hello what can i help you with today", "i'd like thai food in rome", "i'm on it"),
    *turns(SILENCE, ASKS[2], "six", ASKS[3], "cheap", LOOKING, SILENCE, "api_call thai rome six cheap"),
    *turns("for two", UPDATE, "no", LOOKING, SILENCE, "api_call thai rome two cheap"),
    *(("fact", fact) for fact in FACTS),
    *turns(SILENCE, f"{OFFER}resto_b", "no i don't like that", "sure let me find an other option for you"),
    *turns(SILENCE, f"{OFFER}resto_a", "it's perfect", "great let me do the reservation"),
    *turns("its address", "here it is resto_a_address", "thanks", "is there anything i can help you with"),
    *turns("no", "you're welcome"),
]


def said_by(speaker, dialog):
    return [text for by, text in dialog if by == speaker]


def test_copies_have_the_same_wishes_restaurants_and_responses():
    copies = [copy for seed in range(30) for copy in augment([FULL], lambda call: FACTS, random.Random(seed))]
    assert len({str(copy) for copy in copies}) == 30
    assert augment([FULL], lambda call: FACTS, random.Random(7)) == [copies[7]]
    for copy in copies:
        said = said_by("bot", copy)
        first, second = (text for text in said if text.startswith("api_call"))
        assert (first, second) == ("api_call thai rome six cheap", "api_call thai rome two cheap")
        assert said[-8:] == said_by("bot", FULL)[-8:] and said_by("fact", copy)[-len(FACTS) :] == FACTS
        before = " ".join(said_by("user", copy[: copy.index(("bot", first))]))
        assert {"thai", "rome", "six", "cheap"} <= set(before.split())  # all named before the call
        for (speaker, text), (_, response) in itertools.pairwise(copy):
            if speaker == "user" and response.startswith(("api_call", OFFER)):
                assert text == SILENCE
    assert any(OFFER in str(copy[: copy.index(("bot", UPDATE))]) for copy in copies)  # changed after an offer
    assert any("_UNK_" in str(copy) for copy in copies)


def test_the_bot_asks_for_the_first_slot_that_is_missing():
    values = dict(zip(("thai", "rome", "six", "cheap"), SLOTS, strict=True))
    for seed in range(30):
        [copy] = augment([FULL], lambda call: FACTS, random.Random(seed))
        named = set()
        for speaker, text in copy[: copy.index(("bot", LOOKING))]:
            if speaker == "user":
                named |= {values[word] for word in text.split() if word in values}
            elif text in ASKS:
                assert ASKS.index(text) == min(place for place, slot in enumerate(SLOTS) if slot not in named)


THREE_SLOTS = [(speaker, text.replace("rome ", "")) for speaker, text in FULL]  # as calls of task 6 have


@pytest.mark.parametrize("said", [turns("hi", "hello"), FULL[:12], THREE_SLOTS])
def test_other_dialogs_are_left_out(said):
    assert augment([said], None, random.Random(0)) == []
