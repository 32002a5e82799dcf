"""`data.samples.dialog`: facts and candidates of the world; an oracle reads every response off the
dialog before it.
"""

import collections
import re

import pytest

from colloquy.data.corpora.babi_dialog import (
    SILENCE,
    find_tasks,
    read_candidates,
    read_dialogs,
    read_knowledge,
)
from colloquy.data.samples.dialog import CANDIDATES, KNOWLEDGE, NAMES, simulate_dialogs, write_babi
from colloquy.data.samples.phrases import (
    BOT,
    CRAVINGS,
    ORDINAL_PICKS,
    PRICE_HINTS,
    RESTAURANTS,
    SLOTS,
    USER,
    VALUES,
)
from colloquy.data.samples.world import BOOKING, SEARCH, restaurants, tokenize

CONVERSATIONS, SEED, HELD_OUT = 130, 3, 17
TOKEN = r"[^\sA-Z]+"
TEXT = rf"{TOKEN}( {TOKEN})*"
"""Lower-case tokens separated by single spaces."""
LINE = re.compile(rf"\d+ (({TEXT}|<SILENCE>)\t{TEXT}|{TOKEN} R_[a-z]+[ \t]{TOKEN}|{TEXT})")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("babi") / "raw"
    write_babi(directory, CONVERSATIONS, SEED, HELD_OUT)
    return directory


@pytest.fixture(scope="module")
def corpus(directory):
    """The files as the corpus's reader sees them: dialogs by split, candidates and facts."""
    [task] = find_tasks(directory)
    dialogs = {split: read_dialogs(path, task.candidates) for split, path in task.splits.items()}
    assert {split: len(found) for split, found in dialogs.items()} == {
        "train": 96,
        "dev": 17,
        "test": 17,
    }
    return dialogs, read_candidates(task.candidates), read_knowledge(task.knowledge)


@pytest.fixture(scope="module")
def dialogs(corpus):
    return [dialog for split in corpus[0].values() for dialog in split]


def said_by(speaker, dialog):
    return [text for by, text in dialog if by == speaker]


def joined(value):
    return "_".join(str(value).lower().split())


def fill(*templates, **fields):
    return tokenize(" ".join(templates).format(**fields))


# === Format ===


def test_the_reader_finds_what_was_simulated_in_tokens_separated_by_single_spaces(
    directory, dialogs
):
    for name in (*NAMES, CANDIDATES, KNOWLEDGE):
        text = (directory / name).read_bytes().decode()
        assert text.endswith("\n\n" if name in NAMES else "\n")
        assert all(LINE.fullmatch(line) for line in text.splitlines() if line or name not in NAMES)
    parts = [
        "".join(("\t" if by == "bot" else "\n") + text for by, text in dialog) for dialog in dialogs
    ]
    read = [tuple(text[1:].split("\n")) for text in parts]
    assert read == simulate_dialogs(CONVERSATIONS, SEED) and len(set(read)) == CONVERSATIONS
    assert simulate_dialogs(7, SEED) == read[:7]
    assert {sum("\t" in line for line in dialog) for dialog in simulate_dialogs(500, SEED)} == {
        4,
        5,
        6,
        7,
        8,
        9,
    }


def test_facts_follow_a_call_and_answer_it(dialogs):
    world = {joined(place.name): place for place in restaurants(SEED)}
    for dialog in dialogs:
        places = [place for place, (speaker, _) in enumerate(dialog) if speaker == "fact"]
        first, last = places[0], places[-1]
        assert places == list(range(first, last + 1)) and len(places) == 2 * 9
        assert dialog[first - 2] == dialog[last + 1] == ("user", SILENCE)
        call = dialog[first - 1][1].split()
        assert call[0] == "api_call" and not dialog[last + 2][1].startswith("api_call")
        facts = [text.split() for text in said_by("fact", dialog)]
        assert facts[0][0] != facts[9][0]
        for subject, relation, value in facts:
            place = world[subject]
            relation = {"location": "town"}.get(relation[2:], relation[2:])
            assert value == joined(getattr(place, relation))
            assert [joined(getattr(place, slot)) for slot in SEARCH] == call[1:]


def test_knowledge_base_is_the_world(corpus):
    facts = {
        (joined(place.name), joined(v))
        for place in restaurants(SEED)
        for f, v in vars(place).items()
        if f != "name"
    }
    assert {(fact.subject, fact.value) for fact in corpus[2]} == facts
    relations = {
        "cuisine",
        "location",
        "price",
        "dish",
        "chef",
        "rating",
        "since",
        "phone",
        "address",
    }
    assert collections.Counter(fact.relation for fact in corpus[2]) == {
        f"R_{relation}": 32 for relation in relations
    }


# === Candidates ===


def test_candidates_are_sorted(corpus):
    """That all responses are among them is what `read_dialogs` asks for."""
    assert corpus[1] == sorted(corpus[1]) and 400 < len(corpus[1]) < 800


def test_candidates_know_the_whole_world(tmp_path):
    write_babi(tmp_path, 3, SEED, 1)  # so few dialogs speak of little of it
    texts = read_candidates(tmp_path / CANDIDATES)
    calls = {text for text in texts if text.startswith("api_call ")}
    assert len(calls) == 7 * 6 * 3 and "api_call dumpling hollowmere fancy" in calls
    offers = [text for text in texts if text.endswith(" which one sounds better ?")]
    for place in restaurants(SEED):
        name = joined(place.name)
        assert f"you can call the {name} on {place.phone} ." in texts
        assert f"{joined(place.chef)} runs the kitchen of the {name} ." in texts
        assert f"enjoy your meal at the {name} ." in texts
        assert any(f" the {name} " in offer and place.town.lower() in offer for offer in offers)


SAID = {joined(value): (slot, joined(value)) for slot, values in VALUES.items() for value in values}
SAID |= {craving: ("cuisine", cuisine) for cuisine, craving in CRAVINGS.items()}
SAID |= {
    tokenize(t): SAID[joined(value)]
    for value, options in SLOTS["gives value"].items()
    for t in options
}
"""Words, or a whole text, to the slot and value that they mean."""
RECALLS = {
    tokenize(t): slot for slot, options in SLOTS["recall questions"].items() for t in options
}
THANKS = {tokenize(t) for t in USER["thanks"]}


def slots_in(*texts):
    """The slots that texts give, each with its last value: not 'two' in 'six of us, not two'."""
    slots = {}
    for text in texts:
        slots |= dict([SAID[text]] if text in SAID else [])
        words = text.split()
        slots |= dict(
            SAID[w]
            for before, w in zip(["", *words], words, strict=False)
            if w in SAID and before != "not"
        )
    return slots


def decide(before, user):
    """The kind of a turn and the bot's response, both read off the dialog before it."""
    users, bots = said_by("user", before), said_by("bot", before)
    known = slots_in(*(text for speaker, text in before if speaker != "fact"))
    slots = known | slots_in(user)
    shown = collections.defaultdict(dict)
    for text in said_by("fact", before):
        subject, relation, value = text.split()
        shown[subject][relation[2:]] = value
    picks = {fill(t, name=name): name for name in shown for t in USER["picks"]}
    picks |= {
        tokenize(t): name
        for name, options in zip(shown, ORDINAL_PICKS, strict=False)
        for t in options
    }
    chosen = next((picks[text] for text in (*users, user) if text in picks), None)
    details = {
        fill(t, place=called): (relation, name)
        for relation, options in RESTAURANTS["detail questions"].items()
        for name in shown
        for called in (f"the {name}", *["the place"] * (name == chosen))
        for t in options
    }
    cuisine = slots.get("cuisine")
    craving, hint = CRAVINGS.get(cuisine, cuisine), PRICE_HINTS.get(slots.get("price"))
    if user == SILENCE:
        if not shown:
            return "call", fill("api_call {cuisine} {town} {price}", **slots)
        name, other = shown
        offer = BOT["pair offers"][0], BOT["pair prompts"][0]
        return "offer", fill(*offer, **slots, name=name, other=other, craving=craving)
    if user in details:
        relation, name = details[user]
        return "tell", fill(
            RESTAURANTS["detail answers"][relation][0], **shown[name] | {"name": name, "hint": hint}
        )
    if user in RECALLS:
        slot = RECALLS[user]
        return "recall", fill(SLOTS["recall answers"][slot][0], value=slots[slot], craving=craving)
    if user in THANKS:
        return (
            "part",
            f"enjoy your meal at the {chosen} ." if chosen else "you are welcome , goodbye .",
        )
    if not users and " " not in user.removesuffix(" !").removesuffix(" .").removeprefix("good "):
        return "greet", "welcome to colloquy , how can i help ?"
    missing = [slot for slot in (*SEARCH, *(BOOKING if chosen else ())) if slot not in slots]
    if chosen and not missing:
        return "book", fill("all done: {day}, {people} of you.", **slots)
    following = SLOTS["asks"][missing[0]][0] if missing else "Let us see."
    if user in picks:
        return "choose", fill("The {name} it is.", following, name=chosen)
    if not users or bots[-1].startswith("welcome"):
        return "open", fill("Gladly.", following)
    [(slot, value)] = slots_in(user).items()
    nods = ["No trouble."] if slot in known else []
    return "correct" if nods else "note", fill(
        *nods, SLOTS["notes"][slot][0], following, value=value
    )


def test_responses_follow_from_the_dialog_before(dialogs):
    kinds = collections.Counter()
    for dialog in dialogs:
        for place, (speaker, text) in enumerate(dialog):
            if speaker == "bot":
                kind, response = decide(dialog[: place - 1], dialog[place - 1][1])
                assert text == response, dialog[:place]
                kinds[kind] += 1
    assert kinds["offer"] == CONVERSATIONS < kinds["call"]
    assert min(kinds.values()) >= 5
    assert set(kinds) == set(
        "call offer tell recall part greet book choose open correct note".split()
    )
