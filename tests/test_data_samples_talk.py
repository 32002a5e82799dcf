import collections
import random
from itertools import pairwise

import pytest

from data.samples.plan import BOOKING
from data.samples.talk import simulate
from data.samples.world import SEARCH, restaurants

CONVERSATIONS, SEED = 130, 3


@pytest.fixture(scope="module")
def conversations():
    return simulate(CONVERSATIONS, SEED)


def so_far(conversation):
    """The slots given before the end of each turn."""
    slots = {}
    for turn in conversation.turns:
        slots |= dict(turn.slots)
        yield turn, dict(slots)


def decided(conversations):
    """The turns that the context decides."""
    return [turn for c in conversations for turn in c.turns[1:] if turn.fits]


# === The conversations ===


def test_simulate_repeats_with_the_seed(conversations):
    assert simulate(CONVERSATIONS, SEED) == conversations
    assert simulate(7, SEED) == conversations[:7]
    assert not set(simulate(CONVERSATIONS, SEED + 1)) & set(conversations)


def test_simulate_leaves_the_global_generator_alone():
    random.seed(1)
    expected = random.random()
    random.seed(1)
    simulate(2)
    assert random.random() == expected


def test_conversations_alternate_between_user_and_bot(conversations):
    for conversation in conversations:
        speakers = [turn.speaker for turn in conversation.turns]
        assert 4 <= len(speakers) <= 14
        assert speakers[-1] == "bot"
        assert all(a != b for a, b in pairwise(speakers))
    assert {len(conversation.turns) for conversation in conversations} >= {4, 7, 10, 13, 14}


def test_conversations_differ_in_words(monkeypatch):
    short = [], [("open", "chat"), ("part",)]  # so that the same is soon said again
    monkeypatch.setattr("data.samples.talk.draw_plan", lambda rng: short)
    talks = {tuple(turn.text for turn in c.turns) for c in simulate(300)}
    assert len(talks) == 300


def test_conversations_keep_to_the_given_world():
    world = restaurants(SEED)[:1]
    assert {c.restaurants for c in simulate(50, SEED, world)} == {world, ()}


def test_conversations_have_every_act(conversations):
    acts = collections.Counter(t.act for c in conversations for t in c.turns)
    bot = {"greet", "ask", "note", "offer", "book", "tell", "recall", "react", "persona", "part"}
    user = {"open", "give", "correct", "accept", "point", "detail", "recall", "chat"}
    assert set(acts) == bot | user
    assert min(acts.values()) >= 5


def test_slots_are_those_given_last(conversations):
    corrected = 0
    for conversation in conversations:
        given = [item for turn in conversation.turns for item in turn.slots]
        assert dict(given) == dict(conversation.slots)
        corrected += len(given) > len(conversation.slots)
    assert corrected > 10


def test_offers_and_bookings_keep_to_the_slots(conversations):
    seen = collections.Counter()
    for conversation in conversations:
        for turn, slots in so_far(conversation):
            states = {claim[1]: claim[2] for claim in turn.about if claim[0] == "state"}
            if turn.act == "offer":
                assert states.items() <= {slot: slots[slot] for slot in SEARCH}.items()
                places = {fact.restaurant for fact in turn.facts}
                assert {place.name for place in conversation.restaurants} <= places
                for place in conversation.restaurants:
                    assert {slot: getattr(place, slot) for slot in SEARCH}.items() <= slots.items()
            if turn.act == "book":
                [place] = conversation.restaurants
                assert states.items() <= (slots | {"name": place.name}).items()
                assert all(value in turn.text or value.capitalize() in turn.text for value in states.values())
                assert slots.keys() >= set(BOOKING)
            seen[turn.act] += 1
    assert seen["offer"] > 20 and seen["book"] > 20


def test_turns_tell_facts_of_the_knowledge_base(conversations):
    knowledge = {fact for place in restaurants(SEED) for fact in place.facts()}
    told = collections.Counter()
    for turn in (turn for conversation in conversations for turn in conversation.turns):
        assert set(turn.facts) <= knowledge
        assert bool(turn.facts) == (turn.act in ("tell", "offer"))
        for fact in turn.facts if turn.act == "tell" else ():
            assert ("tell", fact.relation, fact.restaurant) in turn.about
            if fact.relation != "price":  # which is put in other words
                assert fact.value.lower() in turn.text.lower()
            told[fact.relation] += 1
    assert set(told) == {"phone", "address", "chef", "rating", "since", "dish", "price"}


def test_restaurants_come_in_pairs():
    world = restaurants(seed=2, count=100)
    assert len({place.name for place in world}) == len({place.phone for place in world}) == 100
    for first, second in zip(world[::2], world[1::2], strict=True):
        assert [getattr(first, s) for s in SEARCH] == [getattr(second, s) for s in SEARCH]
        assert first.dish != second.dish
    assert restaurants(seed=3, count=100) != world


@pytest.mark.parametrize("count", [0, 7, 102])
def test_restaurants_rejects_count(count):
    with pytest.raises(ValueError, match=rf"count must be an even .* Received: count={count}$"):
        restaurants(count=count)


def test_simulate_rejects_count():
    with pytest.raises(ValueError, match=r"At least one .* Received: conversations=0$"):
        simulate(0)


# === What fits ===


def test_what_is_claimed_fits(conversations):
    for turn in decided(conversations):
        assert turn.about and turn.about <= turn.fits


def test_the_bot_asks_only_for_what_it_does_not_know(conversations):
    for conversation in conversations:
        before = {}
        for turn, slots in so_far(conversation):
            asked = {claim[1] for claim in turn.about if claim[0] == "ask"}
            assert not asked & before.keys()
            if turn.speaker == "bot" and turn.fits:
                open_asks = {claim[1] for claim in turn.fits if claim[0] == "ask"}
                assert open_asks & {*SEARCH, *BOOKING} == {*SEARCH, *BOOKING} - slots.keys()
            before = slots


def test_answers_follow_the_question(conversations):
    followed = collections.Counter()
    for conversation in conversations:
        for question, answer in pairwise(conversation.turns):
            asked = {claim[1] for claim in question.about if claim[0] == "ask"}
            if answer.act == "give":
                assert asked == {slot for slot, _ in answer.slots}
                assert answer.about == {("give", *asked)}
            followed[answer.act, bool(asked), bool(answer.fits)] += 1
    assert followed["chat", True, True] > 10 and followed["chat", False, False] > 10
    assert not followed["chat", True, False] and not followed["chat", False, True]


def test_a_treat_may_answer_a_question_for_a_cuisine(conversations):
    turns = decided(conversations)
    cuisine = next(turn for turn in turns if ("give", "cuisine") in turn.about)
    treat = next(turn for turn in turns if ("scene", "cheese") in turn.about and turn.act == "chat")
    assert treat.about <= cuisine.fits
    assert cuisine.about <= treat.fits


# === Misreadings ===


def test_a_misreading_claims_what_does_not_fit(conversations):
    for conversation in conversations:
        for turn in conversation.turns:
            assert turn.fits or not turn.misreadings
            for misreading in turn.misreadings:
                assert misreading.about - turn.fits
                assert (misreading.speaker, misreading.act) == (turn.speaker, turn.act)
                assert misreading.text != turn.text


def test_most_contexts_can_be_misread(conversations):
    counts = collections.defaultdict(list)
    for turn in decided(conversations):
        counts[turn.act].append(len({misreading.text for misreading in turn.misreadings}))
    assert {act for act, found in counts.items() if not any(found)} == {"ask", "point"}
    assert sum(count >= 2 for found in counts.values() for count in found) > 0.7 * len(decided(conversations))


def misread(conversations, act, kind):
    """Pairs of what is claimed and what misreadings claim instead, of one kind, in turns of an act."""
    for turn in decided(conversations):
        for misreading in turn.misreadings if turn.act == act else ():
            yield from ((turn, claim) for claim in misreading.about - turn.fits if claim[0] == kind)


def test_a_misreading_says_what_was_said_before(conversations):
    earlier, former = 0, 0
    for conversation in conversations:
        given = []
        for turn in conversation.turns:
            for misreading in turn.misreadings:
                for _, slot, value in (c for c in misreading.about - turn.fits if c[0] == "say" and turn.act == "note"):
                    assert (slot, value) in given
                    now = dict(given)[slot]
                    earlier, former = earlier + (value == now), former + (value != now)
            given += turn.slots
    assert earlier > 50 and former > 5


def test_a_misreading_tells_another_fact_of_the_place_or_that_fact_of_the_other_place(conversations):
    facts, places = 0, 0
    for turn, (_, relation, name) in misread(conversations, "tell", "tell"):
        [fact] = turn.facts
        assert (relation == fact.relation) != (name == fact.restaurant)
        facts, places = facts + (relation != fact.relation), places + (name != fact.restaurant)
    assert facts > 50 and places > 5


@pytest.mark.parametrize("act, kind", [("give", "give"), ("react", "scene"), ("persona", "self"), ("recall", "say")])
def test_a_misreading_answers_something_else(conversations, act, kind):
    assert sum(1 for _ in misread(conversations, act, kind)) > 10
