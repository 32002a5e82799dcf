"""`data.samples.talk`: conversations keep to their plan and world; turns and misreadings say what they should."""

import collections
import random
from itertools import pairwise

import pytest

from data.samples.talk import simulate
from data.samples.wording import SLOTS, TOPICS

CONVERSATIONS, SEED = 130, 3
USER, BOT = {"give", "point", "chat"}, {"say", "tell", "scene", "self", "offer", "book", "part"}
"""Kinds of acts."""


@pytest.fixture(scope="module")
def conversations():
    return simulate(CONVERSATIONS, SEED)


@pytest.fixture(scope="module")
def determined(conversations):
    """The turns that the context determines, by the kind of their act."""
    found = collections.defaultdict(list)
    for turns in conversations:
        for turn in turns:
            if turn.act:
                found[turn.act[0]].append(turn)
    return found


def test_simulate_repeats_with_the_seed(conversations):
    state = random.getstate()
    assert simulate(CONVERSATIONS, SEED) == conversations
    assert simulate(7, SEED) == conversations[:7]
    assert not set(simulate(CONVERSATIONS, SEED + 1)) & set(conversations)
    assert random.getstate() == state


def test_conversations_alternate_between_user_and_bot(conversations, determined):
    for turns in conversations:
        assert 4 <= len(turns) <= 14
        assert {turn.act[0] for turn in turns[::-2] if turn.act} <= BOT
        assert {turn.act[0] for turn in turns[-2::-2] if turn.act} <= USER
    assert {len(turns) for turns in conversations} >= {4, 7, 10, 13, 14}
    assert set(determined) == USER | BOT and min(map(len, determined.values())) >= 5


def test_answers_follow_the_question(conversations):
    asked = {text: ("give", slot) for slot, texts in SLOTS["asks"].items() for text in texts}
    asked |= {text: ("chat", topic) for topic, found in TOPICS.items() for text in found["questions"]}
    answers = collections.Counter()
    for turns in conversations:
        for question, answer in pairwise(turns):
            for text in (text for text in asked if question.text.endswith(text)):
                assert answer.act == asked[text]
                answers[answer.act[0]] += 1
    assert min(answers["give"], answers["chat"]) > 50


def test_a_misreading_is_other_words_for_a_determined_turn(conversations, determined):
    for turn in (turn for turns in conversations for turn in turns):
        assert turn.act in turn.fits and turn.text not in turn.misreadings
        assert turn.act or not turn.misreadings
    found = [turn for turns in determined.values() for turn in turns]
    assert sum(len(turn.misreadings) >= 2 for turn in found) > 0.7 * len(found)
    assert {kind for kind, turns in determined.items() if not any(turn.misreadings for turn in turns)} == {"point"}
