"""`data.samples.talk`: conversations keep to their plan and world; turns and misreadings claim what they should."""

import collections
import random
from itertools import pairwise

import pytest

from data.samples import talk
from data.samples.talk import simulate
from data.samples.world import BOOKING, SEARCH, restaurants

CONVERSATIONS, SEED = 130, 3
USER, BOT = {"give", "point", "scene"}, {"ask", "say", "state", "tell", "scene", "self"}
"""Kinds of claims."""


@pytest.fixture(scope="module")
def conversations():
    return simulate(CONVERSATIONS, SEED)


@pytest.fixture(scope="module")
def determined(conversations):
    """The turns that the context determines."""
    return [turn for turns in conversations for turn in turns[1:] if turn.fits]


@pytest.fixture(scope="module")
def talks():
    """Conversations with all that their making knows."""
    rng, other, world = random.Random(1), random.Random(2), restaurants(SEED)
    found = [talk._Talk(rng, other, world) for _ in range(CONVERSATIONS)]
    for each in found:
        each.conversation()
    return found


def kinds(claims):
    return {claim[0] for claim in claims}


# === Conversations ===


def test_simulate_repeats_with_the_seed(conversations):
    state = random.getstate()
    assert simulate(CONVERSATIONS, SEED) == conversations
    assert simulate(7, SEED) == conversations[:7]
    assert not set(simulate(CONVERSATIONS, SEED + 1)) & set(conversations)
    assert random.getstate() == state


def test_conversations_alternate_between_user_and_bot(conversations):
    for turns in conversations:
        assert 4 <= len(turns) <= 14
        assert all(kinds(turn.about) <= BOT for turn in turns[::-2])
        assert all(kinds(turn.about) <= USER for turn in turns[-2::-2])
    assert {len(turns) for turns in conversations} >= {4, 7, 10, 13, 14}
    counts = collections.Counter(kind for turns in conversations for turn in turns for kind in kinds(turn.about))
    assert set(counts) == USER | BOT and min(counts.values()) >= 5


def test_conversations_differ_in_words(monkeypatch):
    short = [], [("open", "chat"), ("part",)]  # so that the same is soon said again
    monkeypatch.setattr(talk, "draw_plan", lambda rng: short)
    assert len({tuple(turn.text for turn in turns) for turns in simulate(300)}) == 300


def test_slots_are_those_given_last(talks):
    corrected = 0
    for each in talks:
        corrections = {step[1] for step in each.steps if step[0] == "correct"}
        assert each.former.keys() == corrections
        for slot, value in each.slots.items():
            assert value == each.wishes[slot]
            assert (each.former.get(slot, value) == each.first_wishes[slot] == value) == (slot not in corrections)
        corrected += bool(corrections)
    assert corrected > 10


def test_offers_and_bookings_keep_to_the_slots(talks):
    offers, bookings = 0, 0
    for each in talks:
        searched, booked = (all(slot in each.slots for slot in slots) for slots in (SEARCH, BOOKING))
        assert not searched or all(place.misses(each.slots) == 0 for place in each.named)
        assert not booked or (each.settled and len(each.named) == 1)
        for turn in each.turns[::-2]:
            states = {claim[1]: claim[2] for claim in turn.about if claim[0] == "state"}
            if states.keys() & {*BOOKING}:
                assert all(value in turn.text or value.capitalize() in turn.text for value in states.values())
                bookings += 1
            offers += bool(states.keys() & {*SEARCH})
    assert offers > 20 and bookings > 20


def test_turns_tell_facts_of_the_world(conversations):
    world = {place.name: place for place in restaurants(SEED)}
    told = collections.Counter()
    for turns in conversations:
        for turn in turns:
            for _, relation, name in (claim for claim in turn.about if claim[0] == "tell"):
                if relation != "price":  # which is put in other words
                    assert str(getattr(world[name], relation)).lower() in turn.text.lower()
                told[relation] += 1
            names = {claim[-1] for claim in turn.about if claim[0] == "point" or claim[:2] == ("state", "name")}
            assert names <= world.keys() | {"ordinal"}
    assert set(told) == {"phone", "address", "chef", "rating", "since", "dish", "price"}


# === What fits ===


def test_claims_fit_and_the_bot_asks_only_for_what_it_does_not_know(conversations, determined):
    assert all(turn.about and turn.about <= turn.fits for turn in determined)
    for turns in conversations:
        for turn in (turn for turn in turns[::-2] if turn.fits):
            known = collections.Counter(claim[1] for claim in turn.fits if claim[0] == "state")
            unknown = {s for s in SEARCH if known[s] > 1} | {s for s in BOOKING if not known[s]}
            assert {claim[1] for claim in turn.fits if claim[0] == "ask"} & {*SEARCH, *BOOKING} == unknown


def test_answers_follow_the_question(conversations):
    chats = collections.Counter()
    for turns in conversations:
        for question, answer in pairwise(turns):
            asked = {claim[1] for claim in question.about if claim[0] == "ask"}
            if "give" in kinds(answer.about):
                assert answer.about == {("give", *asked)}
            elif kinds(answer.about) == {"scene"} and answer in turns[-2::-2]:
                chats[bool(asked), bool(answer.fits)] += 1
    assert set(chats) == {(True, True), (False, False)} and min(chats.values()) > 10


def test_a_treat_may_answer_a_question_for_a_cuisine(conversations):
    users = [turn for turns in conversations for turn in turns[-2::-2] if turn.fits]
    cuisine = next(turn for turn in users if ("give", "cuisine") in turn.about)
    treat = next(turn for turn in users if ("scene", "cheese") in turn.about)
    assert treat.about <= cuisine.fits and cuisine.about <= treat.fits


# === Misreadings ===


def test_a_misreading_claims_what_does_not_fit(conversations):
    for turn in (turn for turns in conversations for turn in turns):
        assert turn.fits or not turn.misreadings
        for misreading in turn.misreadings:
            assert misreading.about - turn.fits and misreading.text != turn.text


def misread(determined, kind):
    """Pairs of a turn and a claim of a kind that a misreading of it makes, both of which claim this kind."""
    for turn in determined:
        for misreading in turn.misreadings if kind in kinds(turn.about) else ():
            yield from ((turn, claim) for claim in misreading.about - turn.fits if claim[0] == kind)


def test_most_contexts_can_be_misread(determined):
    assert not any(turn.misreadings for turn in determined if kinds(turn.about) == {"point"})
    for kind in ("give", "scene", "self", "say", "state", "tell"):
        assert len(list(misread(determined, kind))) > 10
    assert sum(len(turn.misreadings) >= 2 for turn in determined) > 0.7 * len(determined)


def test_a_misreading_says_what_was_said_before(talks):
    earlier, former = 0, 0
    for each in talks:
        for _, (_, slot, value) in misread([turn for turn in each.turns[1:] if turn.fits], "say"):
            assert value in (each.slots[slot], each.first_wishes[slot])
            earlier, former = earlier + (value == each.slots[slot]), former + (value != each.slots[slot])
    assert earlier > 50 and former > 5


def test_a_misreading_tells_another_fact_of_the_place_or_that_fact_of_the_other_place(determined):
    facts, places = 0, 0
    for turn, (_, relation, name) in misread(determined, "tell"):
        [(_, told, of)] = [claim for claim in turn.about if claim[0] == "tell"]
        assert (relation == told) != (name == of)
        facts, places = facts + (relation != told), places + (name != of)
    assert facts > 50 and places > 5
