import collections
import os
import random
import re
from itertools import pairwise

import pytest

from data.samples.files import tokenize
from data.samples.selection import draw_wrong, examples, smn_lines, split, write_smn
from data.samples.talk import BOOKING, SEARCH, simulate
from data.samples.world import restaurants

NAMES = ("train.txt", "dev.txt", "test.txt")
CONVERSATIONS, SEED, HELD_OUT = 130, 3, 17
FORMAT = re.compile(r"[01](\t[^\sA-Z]+( [^\sA-Z]+)*){2,14}\n")
"""A label, one to thirteen turns and a response; tokens parted by single spaces."""


@pytest.fixture(scope="module")
def conversations():
    return simulate(CONVERSATIONS, SEED)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The lines of the three files, with their ends."""
    directory = tmp_path_factory.mktemp("smn") / "raw"
    counts = write_smn(directory, CONVERSATIONS, SEED, HELD_OUT)
    files = {name: (directory / name).read_bytes().decode().splitlines(True) for name in NAMES}
    assert counts == {name: len(lines) for name, lines in files.items()}
    assert sorted(os.listdir(directory)) == sorted(NAMES)
    return files


def groups(lines, size):
    """Candidates by context: (context turns, labels, responses), `size` lines each."""
    rows = [line.rstrip("\n").split("\t") for line in lines]
    assert len(rows) % size == 0
    for start in range(0, len(rows), size):
        labels, contexts, responses = zip(
            *((row[0], tuple(row[1:-1]), row[-1]) for row in rows[start : start + size]),
            strict=True,
        )
        assert len(set(contexts)) == 1
        yield contexts[0], "".join(labels), responses


def so_far(conversation):
    """The slots given before the end of each turn."""
    slots = {}
    for turn in conversation.turns:
        slots |= dict(turn.slots)
        yield turn, dict(slots)


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
            assert ("tell", fact.relation) in turn.about
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


# === Which responses are right ===


def test_what_is_claimed_fits(conversations):
    for example in examples(conversations):
        assert example.response.about and example.response.about <= example.response.fits


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


def test_wrong_responses_do_not_fit(conversations):
    pool = examples(conversations)
    for number, example in enumerate(pool[:150]):
        wrong = draw_wrong(random.Random(number), example, pool, 9)
        assert len(wrong) == 9
        for turn in wrong:
            assert turn.about - example.response.fits
            [source] = [other for other in pool if other.response is turn]
            assert source.conversation != example.conversation


def test_a_treat_may_answer_a_question_for_a_cuisine(conversations):
    pool = examples(conversations)
    cuisine = next(e for e in pool if ("give", "cuisine") in e.response.about)
    treat = next(e for e in pool if ("scene", "cheese") in e.response.about and e.response.act == "chat")
    assert treat.response.about <= cuisine.response.fits
    assert cuisine.response.about <= treat.response.fits


def test_hard_share_counts_responses_of_the_same_act(conversations):
    pool = examples(conversations)

    def same_act(hard_share):
        rng = random.Random(1)
        drawn = [(e, t) for e in pool[:200] for t in draw_wrong(rng, e, pool, 9, hard_share)]
        return sum(turn.act == example.response.act for example, turn in drawn) / len(drawn)

    by_chance = same_act(0.0)
    assert by_chance < 0.15
    assert 0.45 < same_act(0.5) < 0.65
    assert same_act(1.0) > 0.85


def test_hard_responses_share_words_with_the_context(conversations):
    pool = [e for e in examples(conversations) if e.response.act == "note"]

    def shared(example, turn):
        context = {word for t in example.context for word in tokenize(t.text).split()}
        return len(context & set(tokenize(turn.text).split()))

    rng = random.Random(1)
    hard = [shared(e, t) for e in pool for t in draw_wrong(rng, e, pool, 2, 1.0)]
    easy = [shared(e, t) for e in pool for t in draw_wrong(rng, e, pool, 2, 0.0)]
    assert sum(hard) / len(hard) > 1.3 * sum(easy) / len(easy)


# === The files ===


def test_tokenize():
    assert tokenize("Half past six, at 1 O'Neil's?  Ring 555-0107!") == (
        "half past six , at 1 o'neil's ? ring 555-0107 !"
    )


def test_every_line_has_the_format(files):
    for lines in files.values():
        assert lines
        for line in lines:
            assert FORMAT.fullmatch(line), line


@pytest.mark.parametrize("name, size", [("train.txt", 2), ("dev.txt", 10), ("test.txt", 10)])
def test_the_right_response_comes_first_among_distinct_ones(files, name, size):
    found = list(groups(files[name], size))
    for _, labels, responses in found:
        assert labels == "1" + "0" * (size - 1)
        assert len(set(responses)) == size
    if size == 10:
        assert len(found) == HELD_OUT


def test_contexts_are_the_turns_of_the_split(files, conversations):
    parts = split(conversations)
    assert [len(part) for part in parts.values()] == [92, 19, 19]
    assert sum(parts.values(), ()) == conversations
    for name, part in parts.items():
        talks = [tuple(tokenize(turn.text) for turn in c.turns) for c in part]
        said = {text for talk in talks for text in talk}
        expected = {(talk[:n], talk[n]) for talk in talks for n in range(1, len(talk))}
        size = 2 if name == "train" else 10
        for context, _, responses in groups(files[f"{name}.txt"], size):
            assert (context, responses[0]) in expected
            assert set(responses) <= said
    contexts = {name: {c for c, *_ in groups(files[name], 2)} for name in NAMES}
    assert all(len(context) < 3 for context in contexts["train.txt"] & contexts["dev.txt"])


def test_train_uses_every_decided_turn(files, conversations):
    train = split(conversations)["train"]
    decided = sum(bool(turn.fits) for c in train for turn in c.turns[1:])
    assert len(files["train.txt"]) == 2 * decided
    assert {len(context) for context, *_ in groups(files["train.txt"], 2)} == set(range(1, 14))


def test_overlap_of_words_does_not_find_the_response(conversations):
    lines = smn_lines("dev", conversations, SEED)
    hits = []
    for context, _, responses in groups(lines, 10):
        words = set(" ".join(context).split())
        shares = [len(words & set(r.split())) / len(set(r.split())) for r in responses]
        hits.append(shares[0] > max(shares[1:]))
    assert 0.15 < sum(hits) / len(hits) < 0.45


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"count": 0}, r"At least one .* Received: conversations=0$"),
        ({"count": 1}, r"find 1 wrong .* Received: conversations=1 in train$"),
        ({"count": 14}, r"find 9 wrong .* Received: conversations=2 in dev$"),
        ({"held_out": 0}, r"held_out must be at least 1\. Received: held_out=0$"),
        ({"hard_share": 1.5}, r"hard_share must be from 0 to 1\. Received: hard_share=1\.5$"),
    ],
)
def test_write_smn_rejects(arguments, message, tmp_path):
    (tmp_path / "dev.txt").write_text("old")
    with pytest.raises(ValueError, match=message):
        write_smn(tmp_path, **arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["dev.txt"]
    assert (tmp_path / "dev.txt").read_text() == "old"
