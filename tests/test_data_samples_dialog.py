"""`data.samples.dialog`: an oracle reads every response off the dialog before it."""

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
    counts = {split: len(split_dialogs) for split, split_dialogs in dialogs.items()}
    assert counts == {"train": 96, "dev": 17, "test": 17}
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


def test_files_are_tokens_separated_by_single_spaces(directory):
    for name in (*NAMES, CANDIDATES, KNOWLEDGE):
        text = (directory / name).read_bytes().decode()
        assert text.endswith("\n\n" if name in NAMES else "\n")
        for line in text.splitlines():
            is_blank = not line and name in NAMES
            assert is_blank or LINE.fullmatch(line)


def test_the_reader_finds_what_was_simulated(dialogs):
    read = []
    for dialog in dialogs:
        lines = []
        for speaker, text in dialog:
            if speaker == "bot":
                lines[-1] += f"\t{text}"
            else:
                lines.append(text)
        read.append(tuple(lines))
    assert read == simulate_dialogs(CONVERSATIONS, SEED)
    assert len(set(read)) == CONVERSATIONS
    assert simulate_dialogs(7, SEED) == read[:7]


def test_dialogs_have_four_to_nine_turns():
    dialogs = simulate_dialogs(500, SEED)
    counts = {sum("\t" in line for line in dialog) for dialog in dialogs}
    assert counts == {4, 5, 6, 7, 8, 9}


def test_facts_follow_a_call_and_answer_it(dialogs):
    world = {joined(place.name): place for place in restaurants(SEED)}
    for dialog in dialogs:
        rows = [row for row, (speaker, _) in enumerate(dialog) if speaker == "fact"]
        first, last = rows[0], rows[-1]
        assert rows == list(range(first, last + 1))
        assert len(rows) == 2 * 9
        assert dialog[first - 2] == dialog[last + 1] == ("user", SILENCE)
        call = dialog[first - 1][1].split()
        assert call[0] == "api_call"
        assert not dialog[last + 2][1].startswith("api_call")
        facts = [text.split() for text in said_by("fact", dialog)]
        assert facts[0][0] != facts[9][0]
        for subject, relation, value in facts:
            place = world[subject]
            field = "town" if relation == "R_location" else relation.removeprefix("R_")
            assert value == joined(getattr(place, field))
            assert [joined(getattr(place, slot)) for slot in SEARCH] == call[1:]


def test_knowledge_base_is_the_world(corpus):
    expected = set()
    for place in restaurants(SEED):
        for field, value in vars(place).items():
            if field != "name":
                expected.add((joined(place.name), joined(value)))
    _, _, knowledge = corpus
    assert {(fact.subject, fact.value) for fact in knowledge} == expected
    relations = "cuisine location price dish chef rating since phone address".split()
    counts = collections.Counter(fact.relation for fact in knowledge)
    assert counts == {f"R_{relation}": 32 for relation in relations}


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


def find_meanings():
    """Words, or a whole text, to the slot and value that they mean."""
    meanings = {}
    for slot, values in VALUES.items():
        for value in values:
            meanings[joined(value)] = slot, joined(value)
    for cuisine, craving in CRAVINGS.items():
        meanings[craving] = "cuisine", cuisine
    for value, options in SLOTS["gives value"].items():
        for option in options:
            meanings[tokenize(option)] = meanings[joined(value)]
    return meanings


MEANINGS = find_meanings()
RECALLS = {}
for recalled, recall_options in SLOTS["recall questions"].items():
    RECALLS.update(dict.fromkeys(map(tokenize, recall_options), recalled))
THANKS = {tokenize(option) for option in USER["thanks"]}


def slots_in(*texts):
    """The slots that texts give, each with its last value: not 'two' in 'six of us, not two'."""
    slots = {}
    for text in texts:
        if text in MEANINGS:
            slot, value = MEANINGS[text]
            slots[slot] = value
        before = ""
        for word in text.split():
            if word in MEANINGS and before != "not":
                slot, value = MEANINGS[word]
                slots[slot] = value
            before = word
    return slots


def picks_of(names):
    """Texts by which a user chooses one of the offered restaurants: `{text: name}`."""
    picks = {}
    for name in names:
        for template in USER["picks"]:
            picks[fill(template, name=name)] = name
    for name, options in zip(names, ORDINAL_PICKS, strict=False):
        for option in options:
            picks[tokenize(option)] = name
    return picks


def details_of(names, chosen):
    """Questions about the offered restaurants: `{text: (relation, name)}`."""
    details = {}
    for relation, templates in RESTAURANTS["detail questions"].items():
        for template in templates:
            for name in names:
                details[fill(template, place=f"the {name}")] = relation, name
            if chosen:
                details[fill(template, place="the place")] = relation, chosen
    return details


def decide(before, user):
    """The kind of a turn and the bot's response, both read off the dialog before it."""
    users = said_by("user", before)
    bots = said_by("bot", before)
    known = slots_in(*(text for speaker, text in before if speaker != "fact"))
    slots = known | slots_in(user)
    shown = collections.defaultdict(dict)
    for text in said_by("fact", before):
        subject, relation, value = text.split()
        shown[subject][relation[2:]] = value
    picks = picks_of(shown)
    chosen = None
    for text in (*users, user):
        if chosen is None:
            chosen = picks.get(text)
    cuisine = slots.get("cuisine")
    craving = CRAVINGS.get(cuisine, cuisine)
    hint = PRICE_HINTS.get(slots.get("price"))

    # The user says nothing, asks or leaves.
    if user == SILENCE:
        if not shown:
            return "call", fill("api_call {cuisine} {town} {price}", **slots)
        name, other = shown
        offer = BOT["pair offers"][0], BOT["pair prompts"][0]
        return "offer", fill(*offer, **slots, name=name, other=other, craving=craving)
    details = details_of(shown, chosen)
    if user in details:
        relation, name = details[user]
        facts = {**shown[name], "name": name, "hint": hint}
        return "tell", fill(RESTAURANTS["detail answers"][relation][0], **facts)
    if user in RECALLS:
        slot = RECALLS[user]
        return "recall", fill(SLOTS["recall answers"][slot][0], value=slots[slot], craving=craving)
    if user in THANKS:
        if chosen:
            return "part", f"enjoy your meal at the {chosen} ."
        return "part", "you are welcome , goodbye ."
    greeting = user.removesuffix(" !").removesuffix(" .").removeprefix("good ")
    if not users and " " not in greeting:
        return "greet", "welcome to colloquy , how can i help ?"

    # The user gives slots.
    needed = (*SEARCH, *BOOKING) if chosen else SEARCH
    missing = [slot for slot in needed if slot not in slots]
    if chosen and not missing:
        return "book", fill("all done: {day}, {people} of you.", **slots)
    following = SLOTS["asks"][missing[0]][0] if missing else "Let us see."
    if user in picks:
        return "choose", fill("The {name} it is.", following, name=chosen)
    if not users or bots[-1].startswith("welcome"):
        return "open", fill("Gladly.", following)
    [(slot, value)] = slots_in(user).items()
    note = SLOTS["notes"][slot][0]
    if slot in known:
        return "correct", fill("No trouble.", note, following, value=value)
    return "note", fill(note, following, value=value)


def test_responses_follow_from_the_dialog_before(dialogs):
    counts = collections.Counter()
    for dialog in dialogs:
        for row, (speaker, text) in enumerate(dialog):
            if speaker == "bot":
                _, user = dialog[row - 1]
                kind, response = decide(dialog[: row - 1], user)
                assert text == response, dialog[:row]
                counts[kind] += 1
    assert counts["offer"] == CONVERSATIONS < counts["call"]
    assert min(counts.values()) >= 5
    kinds = "call offer tell recall part greet book choose open correct note"
    assert set(counts) == set(kinds.split())
