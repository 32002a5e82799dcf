"""`tasks.dialog.prepare`, `augment` and prepare.py: from the files of dialog bAbI to the files of a
dataset.
"""

import functools
import itertools
import json
import random
import re

import pytest
from helpers import contents_of, ran, refusal, run_process, run_script, turns

from colloquy.data import pickles
from colloquy.data.corpora.babi_dialog import Fact
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.dialog.augment import (
    ACCEPTED,
    GREETED,
    LOOKING,
    QUESTIONS,
    SLOTS,
    UPDATE,
    augment,
)
from colloquy.tasks.dialog.data import load_dataset
from colloquy.tasks.dialog.managers import split_by_manager
from colloquy.tasks.dialog.prepare import Settings, find_entities, prepare

# Known in training: thai and rome; greek, basque and oslo are not, so that dev can move to basque
# and oslo. Only the candidates have `bye`, only the knowledge base `greek`, only dev `please`.
FILES = {
    "dialog-babi-task1-x-trn.txt": """\
1 resto_rome_thai R_location rome
2 hi\thello
3 thai\tapi_call thai rome

1 \thello
2 rome\tapi_call thai rome
3 resto_rome_thai R_cuisine thai
4 <SILENCE>\tresto_rome_thai
""",
    "dialog-babi-task1-x-dev.txt": "1 thai please\tresto_rome_thai\n",
    "dialog-babi-task1-x-tst-OOV.txt": "1 hi\thello\n2 basque\tapi_call basque oslo\n\n1 hi\thello\n",
    "dialog-babi-candidates.txt": """\
1 hello
1 bye
1 api_call thai rome
1 api_call basque oslo
1 resto_rome_thai
1 resto_oslo_basque
""",
    "dialog-babi-kb-all.txt": """\
1 resto_rome_thai R_cuisine\tthai
1 resto_rome_thai R_location\trome
1 resto_oslo_greek R_cuisine\tgreek
1 resto_oslo_basque R_cuisine\tbasque
1 resto_oslo_basque R_location\toslo
""",
}
WRITTEN = {
    "candidates.txt",
    "dataset.json",
    "dialogs.pkl",
    "entities.txt",
    "knowledge.txt",
    "vocabulary.txt",
}


@pytest.fixture
def source(tmp_path):
    """A corpus of one task."""
    directory = tmp_path / "source"
    directory.mkdir()
    for name, content in FILES.items():
        (directory / name).write_text(content)
    return directory


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def run(source, out, **settings):
    """Prepares it, and gives the data with sentences as texts, the vocabulary and the facts of task
    1.
    """
    prepare("babi-dialog", source, out, Settings(**settings))
    directory = out / "task1"
    assert {file.name for file in directory.iterdir()} == WRITTEN
    data, vocabulary = (
        pickles.load(directory / "dialogs.pkl"),
        Vocabulary.load(directory / "vocabulary.txt"),
    )
    words = (None, *vocabulary.words)
    texts = [" ".join(words[id] for id in ids) for ids in data["sentences"]]
    return texts, data["splits"], vocabulary, json.loads((directory / "dataset.json").read_text())


# === Files ===


def test_prepare_writes_dialogs_as_numbers(source, tmp_path):
    texts, splits, _, _ = run(source, tmp_path / "new" / "out")
    assert [path.name for path in (tmp_path / "new" / "out").iterdir()] == ["task1"]
    numbers = {text: number for number, text in enumerate(texts)}
    assert len(numbers) == len(texts)  # each once, though train and test say `hi` both

    def dialog(sentences, speakers, times, turns, answers):
        """Speakers are 1 user, 2 bot, 3 knowledge."""
        sentences = [numbers[text] for text in sentences]
        return {
            "sentences": sentences,
            "speakers": speakers,
            "times": times,
            "turns": turns,
            "answers": answers,
        }

    shop, call = "resto_rome_thai", "api_call thai rome"
    fact, found = "resto_rome_thai R_location rome", "resto_rome_thai R_cuisine thai"
    assert splits["train"] == [
        dialog(
            [fact, "hi", "hello", "thai", call], [3, 1, 2, 1, 2], [0, 0, 0, 1, 1], [1, 3], [0, 2]
        ),
        dialog(
            ["<SILENCE>", "hello", "rome", call, found, "<SILENCE>", shop],
            [1, 2, 1, 2, 3, 1, 2],
            [0, 0, 1, 1, 1, 2, 2],  # what a call returns belongs to its turn
            [0, 2, 5],
            [0, 2, 4],
        ),
    ]
    assert splits["dev"] == [dialog(["thai _UNK_", shop], [1, 2], [0, 0], [0], [4])]
    assert splits["dev-oov"] == [
        dialog(["basque _UNK_", "resto_oslo_basque"], [1, 2], [0, 0], [0], [5])
    ]
    assert splits["test"] == []
    assert splits["test-oov"] == [
        dialog(
            ["hi", "hello", "basque", "api_call basque oslo"],
            [1, 2, 1, 2],
            [0, 0, 1, 1],
            [0, 2],
            [0, 3],
        ),
        dialog(["hi", "hello"], [1, 2], [0, 0], [0], [0]),
    ]


def test_prepare_writes_the_world(source, tmp_path):
    value = "thai\x85\u2028\x0b\x1cfood"  # odd characters are read again
    edit(source / "dialog-babi-kb-all.txt", "R_cuisine\tgreek", f"R_cuisine\t{value}")
    run(source, tmp_path / "out")
    domain = load_dataset(tmp_path / "out" / "task1").domain
    assert domain.candidates == FILES["dialog-babi-candidates.txt"].replace("1 ", "").splitlines()
    facts = (source / "dialog-babi-kb-all.txt").read_text().replace("\t", " ")[:-1].split("\n")
    assert [" ".join(fact) for fact in domain.knowledge] == [
        fact.removeprefix("1 ") for fact in facts
    ]
    assert domain.entities == [
        *((name, "cuisine", "knowledge") for name in ("basque", "thai", value)),
        *((name, "location", "knowledge") for name in ("oslo", "rome")),
        *(
            (f"resto_{name}", "restaurant", "subjects")
            for name in ("oslo_basque", "oslo_greek", "rome_thai")
        ),
    ]


def test_prepare_knows_the_words_of_all_or_of_train(source, tmp_path):
    of_all = run(source, tmp_path / "all")[2]
    of_train = run(source, tmp_path / "train", words_of="train")[2]
    trained = FILES["dialog-babi-task1-x-trn.txt"].replace("\t", " ").split()
    # An empty user part is a word too.
    expected = {word for word in trained if not word.isdigit()} | {"<SILENCE>"}
    assert set(of_train.words) == {"_EOS_", "_UNK_"} | expected
    more = {"bye", "oslo", "greek", "basque", "resto_oslo_greek", "resto_oslo_basque"}
    assert set(of_all.words) - set(of_train.words) == more
    assert "please" not in of_all.words
    assert of_train.words[2] == "rome"  # most frequent first: five times


def test_prepare_reports_facts(source, tmp_path, capsys):
    facts = run(source, tmp_path / "out", name="mine", words_of="train")[3]
    assert facts == {
        "name": "mine-task1",
        "corpus": "babi-dialog",
        "task": "dialog",
        "settings": {
            "name": "mine",
            "words_of": "train",
            "vocabulary_of": None,
            "augment": 0,
            "managers": "all",
        },
        "statistics": {
            "vocabulary": 11,
            "candidates": 6,
            "train": {"dialogs": 2, "responses": 5, "sentences_mean": 6.0, "sentences_most": 7},
            "dev": {"dialogs": 1, "responses": 1, "sentences_mean": 2.0, "sentences_most": 2},
            "dev-oov": {"dialogs": 1, "responses": 1, "sentences_mean": 2.0, "sentences_most": 2},
            "test-oov": {"dialogs": 2, "responses": 3, "sentences_mean": 3.0, "sentences_most": 4},
        },
    }
    printed = capsys.readouterr().out
    assert printed.startswith("task1: 6 candidates, 11 words\n") and printed.endswith(
        "out: prepared\n"
    )
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in printed.splitlines()
        if "│" in line
    ]
    assert rows[:2] == [["dialogs", "2", "1", "1", "2"], ["responses", "5", "1", "1", "3"]]
    assert rows[2:] == [
        ["sentences, mean", "6.0", "2.0", "2.0", "3.0"],
        ["sentences, maximum", "7", "2", "2", "4"],
    ]


def test_prepare_makes_a_dataset_a_task(source, tmp_path):
    for number in (3, 6):
        (source / f"dialog-babi-task{number}-y-trn.txt").write_text("1 hi\thello\n")
    (source / "dialog-babi-task6-candidates.txt").write_text("1 hello\n")
    (source / "dialog-babi-task6-kb.txt").write_text("1 prezzo R_price cheap\n")
    run(source, tmp_path / "out")
    facts = {
        path.name: json.loads((path / "dataset.json").read_text())
        for path in (tmp_path / "out").iterdir()
    }
    found = {name: (each["name"], each["statistics"]["candidates"]) for name, each in facts.items()}
    assert found == {
        "task1": ("babi-task1", 6),
        "task3": ("babi-task3", 6),
        "task6": ("babi-task6", 1),
    }
    assert facts["task3"]["statistics"]["train"]["dialogs"] == 1


def test_managers_are_told_apart_by_their_templates(monkeypatch):
    monkeypatch.setattr("colloquy.tasks.dialog.managers.COMMON", 5)
    monkeypatch.setattr("colloquy.tasks.dialog.managers.HELD_OUT", 7)
    templates = [
        "hello",
        "there is no {cuisine} place",
        "no place serves {cuisine}",
        "rare",
        "bye",
        "goodbye",
    ]
    of_manager = ([0, 1, 4], [0, 2, 5])  # most dialogs lack one of their manager's templates
    managers = [0] * 11 + [1] * 19
    said = [
        [answer for k, answer in enumerate(of_manager[m]) if (i + k) % 4]
        for i, m in enumerate(managers)
    ]
    said[12].append(3)
    dialogs = [{"answers": answers} for answers in said]
    splits = {
        "train": dialogs[3:-2],
        "dev": [*dialogs[:3], *dialogs[-2:]],
        "test": [{"answers": [5]}],
    }
    found = {
        wanted: split_by_manager(splits, templates, wanted)
        for wanted in ("both", "smaller", "larger")
    }
    train, dev, test = found["both"].values()
    assert test == splits["test"]
    names = [dialog["manager"] for dialog in train], [dialog["manager"] for dialog in dev]
    assert [(each.count("smaller"), each.count("larger")) for each in names] == [(8, 10), (3, 9)]
    plain = [{"answers": dialog["answers"]} for dialog in train + dev]
    assert sorted(map(str, plain)) == sorted(map(str, dialogs))
    assert not any(
        {1, 4} & {*dialog["answers"]} for dialog in train + dev if dialog["manager"] == "larger"
    )
    for name in ("smaller", "larger"):
        expected = [
            [dialog for dialog in part if dialog["manager"] == name] for part in (train, dev)
        ]
        assert [found[name]["train"], found[name]["dev"]] == expected


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        # no town that training lacks
        ("dialog-babi-kb-all.txt", "R_location\toslo", "R_location\trome"),
        ("dialog-babi-task1-x-trn.txt", "rome\tapi", "rome oslo\tapi"),  # two known towns, no other
        # the moved response cannot be given
        ("dialog-babi-candidates.txt", "1 resto_oslo_basque\n", ""),
        ("dialog-babi-task1-x-dev.txt", "", None),  # nothing to move
    ],
)
def test_dev_moves_to_a_whole_unseen_world_only(source, tmp_path, file, old, new):
    if new is None:
        (source / file).unlink()
    else:
        edit(source / file, old, new)
    splits, facts = run(source, tmp_path / "out")[1::2]
    assert splits["dev-oov"] == [] and len(splits["dev"]) == (new is not None)
    assert "dev-oov" not in facts["statistics"]


# === Entities ===


def test_find_entities_by_source():
    of_ask = (("cuisine", "greek"), ("cuisine", "thai"), ("location", "west"), ("location", "thai"))
    facts = [Fact("prezzo", "R_post_code", "cb1"), Fact("prezzo", "R_cuisine", "thai")]
    # thai: a name of two types
    facts += [Fact("ask", f"R_{relation}", value) for relation, value in of_ask]
    calls = [
        *(
            "api_call thai west cheap",
            "api_call greek west cheap",
            "api_call greek R_location cheap",
        ),
        *(
            "api_call tuscan west R_price",
            "api_call tuscan east R_price",
            "api_call R_cuisine east cheap",
        ),
        *("call thai moon", "you said api_call moon west ?"),
    ]
    known = (
        ("greek", "cuisine"),
        ("thai", "cuisine"),
        ("thai", "location"),
        ("west", "location"),
        ("cb1", "post_code"),
    )
    assert find_entities(facts, calls) == [
        *((*entity, "knowledge") for entity in known),
        *((name, "restaurant", "subjects") for name in ("ask", "prezzo")),
        ("east", "location", "calls"),
        ("tuscan", "cuisine", "calls"),  # nothing known stands where cheap does
    ]


@pytest.mark.parametrize(
    ("candidates", "found"),
    [
        (
            ["api_call west", "api_call thai", "api_call thai R_x", "api_call moon"],
            [("moon", "cuisine", "calls")],
        ),
        (["hello", "api_call"], []),
        ([], []),
    ],
)
def test_a_place_of_calls_has_the_type_that_most_have(candidates, found):
    facts = [Fact("ask", "R_cuisine", "thai"), Fact("ask", "R_location", "west")]
    known = [
        ("thai", "cuisine", "knowledge"),
        ("west", "location", "knowledge"),
        ("ask", "restaurant", "subjects"),
    ]
    assert find_entities(facts, candidates) == known + found


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("task1-x-trn", "1 hi hello\n", "trn.txt, line 1: expected `number user TAB bot`"),
        (
            "kb-all",
            "1 prezzo R_price\n",
            "kb-all.txt, line 1: expected `number subject R_relation value`",
        ),
        # Responses that are no candidates; also in a later task.
        (
            "task1-x-trn",
            "1 hi\thello\n2 hi\tno\n",
            "line 2: .*response of dialog-babi-candidates.txt.*'no'$",
        ),
        ("task1-x-dev", "1 hi\tno\n", "dev.txt, line 1: .*response of .*'no'$"),
        ("task1-x-tst-OOV", "1 hi\tno\n", "OOV.txt, line 1: .*response of .*'no'$"),
        ("task2-y-trn", "1 hi\thi\n", "task2-y-trn.txt, line 1: .*response of .*'hi'$"),
    ],
)
def test_a_bad_line_of_any_file_leaves_nothing(source, tmp_path, file, content, message):
    (source / f"dialog-babi-{file}.txt").write_text(content)
    before = sorted(tmp_path.rglob("*"))
    assert re.search(message, refusal(prepare, "babi-dialog", source, tmp_path / "out", Settings()))
    assert sorted(tmp_path.rglob("*")) == before


# with a name of two types, and an unknown one in its place
def test_script_repeats_byte_for_byte(source, tmp_path):
    with open(source / "dialog-babi-kb-all.txt", "a") as file:
        file.writelines(
            f"1 resto_rome_thai R_{relation}\trome\n" for relation in ("type", "of", "any", "name")
        )
    call, responses = (
        "api_call thai rome two cheap",
        (GREETED, ACCEPTED, *QUESTIONS.values(), LOOKING),
    )
    with open(source / "dialog-babi-candidates.txt", "a") as file:
        file.writelines(f"1 {text}\n" for text in ("api_call thai moon", call, *responses))
    # a full dialog, to be copied in other words
    with open(source / "dialog-babi-task1-x-trn.txt", "a") as file:
        file.write(f"\n1 hi\t{call}\n2 resto_rome_thai R_rating 3\n3 <SILENCE>\tresto_rome_thai\n")
        file.write("4 ok\thello\n")  # no response of dialog bAbI's: the user's words stay
    written = []
    for run in (run_script, functools.partial(run_process, PYTHONHASHSEED="1")):
        out = tmp_path / f"out{len(written)}"
        flags = [
            "--corpus=babi-dialog",
            f"--source={source}",
            f"--out={out}",
            "--words_of=train",
            "--name=x",
        ]
        ran("prepare.py", *flags, "--augment=1", by=run)
        written.append(contents_of(out / "task1"))
    assert written[0] == written[1]
    assert set(written[0]) == WRITTEN
    facts = json.loads(written[0]["dataset.json"])
    settings = {
        "name": "x",
        "words_of": "train",
        "vocabulary_of": None,
        "augment": 1,
        "managers": "all",
    }
    assert facts["settings"] == settings and facts["statistics"]["train"]["dialogs"] == 4
    edit(source / "dialog-babi-candidates.txt", f"1 {LOOKING}\n", "")
    found = refusal(prepare, "babi-dialog", source, tmp_path / "other", Settings(augment=1))
    assert re.search(rf"candidates\.txt: --augment expects .* Missing: '{LOOKING}'", found)


# === Training dialogs in other words ===

FACTS = [f"resto_{name} R_{relation} {value}" for name, rating in (("a", 3), ("b", 8)) for relation, value in (
    ("cuisine", "thai"), ("location", "rome"), ("number", "two"), ("price", "cheap"), ("rating", rating))]  # fmt: skip
OFFER, SILENCE = "what do you think of this option: ", "<SILENCE>"


FULL = [
    *turns(
        "hello", "hello what can i help you with today", "i'd like thai food in rome", "i'm on it"
    ),
    *turns(
        SILENCE,
        QUESTIONS["number"],
        "six",
        QUESTIONS["price"],
        "cheap",
        LOOKING,
        SILENCE,
        "api_call thai rome six cheap",
    ),
    *turns("for two", UPDATE, "no", LOOKING, SILENCE, "api_call thai rome two cheap"),
    *(("fact", fact) for fact in FACTS),
    *turns(
        SILENCE,
        f"{OFFER}resto_b",
        "no i don't like that",
        "sure let me find an other option for you",
    ),
    *turns(SILENCE, f"{OFFER}resto_a", "it's perfect", "great let me do the reservation"),
    *turns(
        "its address",
        "here it is resto_a_address",
        "thanks",
        "is there anything i can help you with",
    ),
    *turns("no", "you're welcome"),
]


def said_by(speaker, dialog):
    return [text for by, text in dialog if by == speaker]


def test_copies_have_the_same_wishes_restaurants_and_responses():
    copies = [
        copy
        for seed in range(30)
        for copy in augment([FULL], lambda call: FACTS, random.Random(seed))
    ]
    assert len({str(copy) for copy in copies}) == 30
    assert augment([FULL], lambda call: FACTS, random.Random(7)) == [copies[7]]
    for copy in copies:
        said = said_by("bot", copy)
        first, second = (text for text in said if text.startswith("api_call"))
        assert (first, second) == ("api_call thai rome six cheap", "api_call thai rome two cheap")
        assert (
            said[-8:] == said_by("bot", FULL)[-8:] and said_by("fact", copy)[-len(FACTS) :] == FACTS
        )
        before = " ".join(said_by("user", copy[: copy.index(("bot", first))]))
        assert {"thai", "rome", "six", "cheap"} <= set(before.split())  # all named before the call
        for (speaker, text), (_, response) in itertools.pairwise(copy):
            if speaker == "user" and response.startswith(("api_call", OFFER)):
                assert text == SILENCE
    # changed after an offer
    assert any(OFFER in str(copy[: copy.index(("bot", UPDATE))]) for copy in copies)
    assert any("_UNK_" in str(copy) for copy in copies)


def test_the_bot_asks_for_the_first_slot_that_is_missing():
    values = dict(zip(("thai", "rome", "six", "cheap"), SLOTS, strict=True))
    for seed in range(30):
        [copy] = augment([FULL], lambda call: FACTS, random.Random(seed))
        named = set()
        for speaker, text in copy[: copy.index(("bot", LOOKING))]:
            if speaker == "user":
                named |= {values[word] for word in text.split() if word in values}
            elif text in QUESTIONS.values():
                assert list(QUESTIONS.values()).index(text) == min(
                    place for place, slot in enumerate(SLOTS) if slot not in named
                )


# as calls of task 6 have
THREE_SLOTS = [(speaker, text.replace("rome ", "")) for speaker, text in FULL]


@pytest.mark.parametrize("said", [turns("hi", "hello"), FULL[:12], THREE_SLOTS])
def test_other_dialogs_are_left_out(said):
    assert augment([said], None, random.Random(0)) == []
