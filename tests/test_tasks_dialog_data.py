"""`tasks.dialog.data`: the domain of a bot, and its files.

Batches are asserted by `test_models_contract.test_matches_its_article`: models of dialogs read
them, however padded.
"""

import collections

import numpy as np
import pytest
from helpers import refusal

from colloquy.data.vocabulary import Vocabulary
from colloquy.models import MODELS
from colloquy.tasks.dialog.data import load_dataset
from colloquy.tasks.dialog.domain import Domain

# === The domain ===

CUISINES = (
    "thai",
    "greek",
    "basque",
    "asian",
    "asian_oriental",
    "north_american",
    "tuscan",
    "indian",
    "korean",
)
# eight are still closed
PRICES = ("cheap", "moderate", "dear", "free", "low", "high", "fair", "steep")
ENTITIES = [
    *((name, "cuisine", "knowledge") for name in CUISINES[:-1]),
    *((name, "price", "knowledge") for name in PRICES),
    ("the_cow", "restaurant", "subjects"),
    ("the_cow_pizza_kitchen_bar", "restaurant", "subjects"),
    ("korean", "cuisine", "calls"),
]
NUMBER = {name: number for number, (name, _, _) in enumerate(ENTITIES)}
WORDS = (
    "_EOS_",
    "_UNK_",
    *"the cow pizza kitchen bar north american asian oriental is and ,".split(),
)
WORDS += tuple(name for name in NUMBER if name not in WORDS)
ID = {word: id for id, word in enumerate(WORDS, 1)}
FACTS = [("prezzo", "R_cuisine", "thai"), ("prezzo", "R_location", "west")]
FACTS += [("zizzi", "R_cuisine", "thai"), ("zizzi", "R_location", "east")]


def make_domain(candidates=("is", "thai"), entities=ENTITIES):
    return Domain(Vocabulary(WORDS), list(candidates), FACTS, list(entities))


@pytest.mark.parametrize(
    ("entities", "types", "opened"),
    [
        (ENTITIES, ["cuisine", "price", "restaurant"], {"cuisine": 1}),
        (
            [*ENTITIES, ("gratis", "price", "calls")],
            ["cuisine", "price", "restaurant"],
            {"cuisine": 1, "price": 2},
        ),
        (ENTITIES[:-1], ["cuisine", "price", "restaurant"], {}),
        (
            [("x", "zone", "knowledge"), ("z", "bar", "subjects"), ("y", "area", "calls")],
            ["zone", "area", "bar"],
            {},
        ),
        ([], [], {}),
    ],
)
def test_open_types_have_more_than_eight_values_and_ids_after_the_words(entities, types, opened):
    domain = make_domain(entities=entities)
    assert domain.types == types
    assert domain.open_types == {type: len(WORDS) + number for type, number in opened.items()}


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        (
            "the cow pizza kitchen bar is cheap",
            [("the cow pizza kitchen bar", [17]), ("is", []), ("cheap", [8])],
        ),
        ("the_cow_pizza_kitchen_bar", [("the_cow_pizza_kitchen_bar", [17])]),
        ("the cow pizza kitchen", [("the cow", [16]), ("pizza", []), ("kitchen", [])]),
        ("the the cow", [("the", []), ("the cow", [16])]),
        ("asian oriental asian", [("asian oriental", [4]), ("asian", [3])]),
        (
            "asian_oriental and north american",
            [("asian_oriental", [4]), ("and", []), ("north american", [5])],
        ),
        ("north , american", [("north", []), (",", []), ("american", [])]),
        ("korean moon", [("korean", [18]), ("moon", [])]),
        ("", []),
    ],
)
def test_link_takes_the_longest_entity_at_each_word(sentence, parts):
    assert (NUMBER["cheap"], NUMBER["the_cow"], NUMBER["korean"]) == (8, 16, 18)
    assert make_domain().link(sentence.split()) == [
        (words.split(), numbers) for words, numbers in parts
    ]


def test_link_finds_all_entities_of_one_name():
    entities = [
        ("rome", "town", "knowledge"),
        ("rome", "restaurant", "subjects"),
        ("a_b", "x", "knowledge"),
    ]
    domain = make_domain(
        entities=[*entities, ("a b", "y", "calls")]
    )  # names as a file can have them
    assert domain.link(["rome"]) == [(["rome"], [0, 1])]
    assert domain.template("in rome a b") == "in {town} {x}"
    assert make_domain(entities=[]).link(["thai"]) == [(["thai"], [])]


def test_encode_types_what_is_open_alone():
    towns = [(f"town{i}", "town", "knowledge") for i in range(9)]
    domain = make_domain(entities=[*ENTITIES, *towns])
    cuisine, town = len(WORDS) + 1, len(WORDS) + 3
    texts = (
        "north american and cheap",
        "the cow moon",
        "asian_oriental asian , korean",
        "thai town3 town5",
    )
    encoded = domain.encode([text.split() for text in texts])
    assert encoded.words.lists() == [
        [ID["north"], ID["american"], ID["and"], ID["cheap"]],
        [ID["the"], ID["cow"], ID["_UNK_"]],
        [ID["asian_oriental"], ID["asian"], ID[","], ID["korean"]],
        [ID["thai"], ID["_UNK_"], ID["_UNK_"]],
    ]
    assert encoded.typed_words.lists() == [
        # two words, one entity; word by word beside the plain ones
        [cuisine, 0, ID["and"], ID["cheap"]],
        [ID["the"], ID["cow"], ID["_UNK_"]],  # there are two restaurants: few
        [cuisine, cuisine, ID[","], cuisine],
        [cuisine, town, town],
    ]
    assert encoded.entities.lists() == [
        [NUMBER["north_american"] + 1, NUMBER["cheap"] + 1],
        [NUMBER["the_cow"] + 1],
        [NUMBER["asian_oriental"] + 1, NUMBER["asian"] + 1, NUMBER["korean"] + 1],
        [NUMBER["thai"] + 1, len(ENTITIES) + 4, len(ENTITIES) + 6],
    ]
    assert (
        encoded.typed_words.lists([1])
        == make_domain(["the cow moon"]).encoded_candidates.typed_words.lists()
    )


def test_match_groups_are_values_of_one_type_in_a_candidate():
    candidates = [
        "is",
        "thai",
        "the cow is cheap",
        "cheap thai",
        "greek and thai and dear",
        "thai and greek",
        "korean",
    ]
    members, types, groups = make_domain(candidates).match_groups
    group = [
        (int(type), tuple(m for m in row if m))
        for type, row in zip(types, members.tolist(), strict=True)
    ]
    found = [{group[g - 1] for g in row if g} for row in groups.tolist()]
    thai, greek, cheap, dear = (NUMBER[name] + 1 for name in ("thai", "greek", "cheap", "dear"))
    assert found == [
        set(),
        {(0, (thai,))},
        {(1, (cheap,))},  # restaurants have no match type
        {(0, (thai,)), (1, (cheap,))},
        {(0, (thai, greek)), (1, (dear,))},
        {(0, (thai, greek))},
        set(),  # what only calls name has none either
    ]
    assert members.shape == (4, 2) and types.shape == (4,)  # each group once
    assert {array.dtype for array in (members, types, groups)} == {np.dtype("int32")}
    assert [array.shape for array in make_domain(entities=[]).match_groups] == [
        (0, 1),
        (0,),
        (2, 1),
    ]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("api_call thai west", FACTS[:2]),
        ("api_call thai R_location R_price", FACTS),
        ("api_call thai north", [("api_call", "no", "result")]),
        ("api_call tuscan R_location", [("api_call", "no", "result")]),
    ],
)
def test_search_gives_all_facts_of_what_has_every_value(call, found):
    assert make_domain([call]).search(call) == [" ".join(fact) for fact in found]
    assert make_domain().search(call) == []  # no candidate


@pytest.mark.parametrize("name", ["memma", "entity-memma"])
def test_put_into_gives_a_model_the_candidates(prepared_dialog, name):
    dataset = load_dataset(prepared_dialog)
    domain, entity_model = dataset.domain, name == "entity-memma"
    settings = {"embedding_dim": 6, "heads": 2, "hops": 1, "match_types": not entity_model}
    model = MODELS[name].build(
        MODELS[name].config(**domain.required_fields, max_words=32, **settings)
    )
    before = {layer.name: layer.get_weights() for layer in model.layers}
    domain.put_into(model)
    weights = {layer.name: layer.get_weights() for layer in model.layers}
    [words], [rows] = weights["candidate_words"], weights["candidate_rows"]
    found = [words[rows == row].tolist() for row in range(477)]
    assert len(words) == domain.required_fields["candidates"][1]
    if entity_model:
        assert found == domain.encoded_candidates.typed_words.lists()
        assert words.max() > len(dataset.vocabulary)  # types have ids after those of the words
        trained, table = "entity_pointer", [[*row] for row in weights["entity_pointer"][1].tolist()]
        assert [
            [id for id in row if id] for row in table
        ] == domain.encoded_candidates.entities.lists()
    else:
        assert found == [domain.vocabulary.encode(text.split()) for text in domain.candidates]
        trained, tables = "match_types", weights["match_types"][1:]
        assert len(tables[0]) > 100 and tables[2].max() == len(tables[0])
        for table, expected in zip(tables, domain.match_groups, strict=True):
            np.testing.assert_array_equal(table, expected)
    np.testing.assert_array_equal(weights[trained][0], before[trained][0])  # what was trained stays


# === Files ===


def test_load_dataset(prepared_dialog):
    dataset = load_dataset(str(prepared_dialog))
    assert dataset.name == "sample-task1" and dataset.vocabulary is dataset.domain.vocabulary
    assert dataset.metadata() == {"path": str(prepared_dialog.resolve()), "name": "sample-task1"}
    sizes = {"train": 26, "dev": 7, "dev-oov": 0, "test": 7, "test-oov": 0}
    assert {name: len(split) for name, split in dataset.splits.items()} == sizes
    several = (
        f"{prepared_dialog.parent} holds several tasks: give one of them, such as {prepared_dialog}"
    )
    assert refusal(load_dataset, prepared_dialog.parent) == several


def test_a_conversation_is_that_of_the_file(prepared_dialog):
    raw = (prepared_dialog.parents[1] / "raw" / "dialog-babi-task1-sample-tst.txt").read_text()
    dataset = load_dataset(prepared_dialog)
    split, words = dataset.splits["test"], dataset.vocabulary.words
    expected, answers = [], []
    for line in raw.partition("\n\n")[0].split("\n"):
        first, *bot = line.partition(" ")[2].split("\t")
        expected += [("user" if bot else "fact", first), *(("bot", text) for text in bot)]
        answers += bot
    found = dataset.conversation(split, split.dialogs[0])
    known = [
        (speaker, [w if w in words else "_UNK_" for w in text.split()])
        for speaker, text in expected
    ]
    assert [(each["speaker"], each["text"].split()) for each in found] == known
    assert [dataset.domain.candidates[answer] for answer in split.dialogs[0]["answers"]] == answers


def test_phrases_are_the_most_frequent_user_sentences(prepared_dialog):
    dataset = load_dataset(prepared_dialog)
    counts = collections.Counter()
    for dialog in dataset.splits["train"].dialogs:
        said = dataset.conversation(dataset.splits["train"], dialog)
        users = (
            each["text"]
            for each in said
            if each["speaker"] == "user" and each["text"] != "<SILENCE>"
        )
        counts.update(map(dataset.domain.template, users))
    phrases = dataset.phrases(5)
    assert [counts[dataset.domain.template(text)] for text in phrases] == sorted(counts.values())[
        :-6:-1
    ]
    assert len(set(map(dataset.domain.template, phrases))) == 5
