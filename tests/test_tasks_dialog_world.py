"""`tasks.dialog.dataset.World`: entities, how sentences mention them, and the match types of candidates."""

import numpy as np
import pytest

from data.vocabulary import Vocabulary
from tasks.dialog.dataset import World

# === The world ===

CUISINES = ("thai", "greek", "basque", "asian", "asian_oriental", "north_american", "tuscan", "indian", "korean")
PRICES = ("cheap", "moderate", "dear", "free", "low", "high", "fair", "steep")  # eight are still closed
ENTITIES = [
    *((name, "cuisine", "knowledge") for name in CUISINES[:-1]),
    *((name, "price", "knowledge") for name in PRICES),
    ("the_cow", "restaurant", "subjects"),
    ("the_cow_pizza_kitchen_bar", "restaurant", "subjects"),
    ("korean", "cuisine", "calls"),
]
NUMBER = {name: number for number, (name, _, _) in enumerate(ENTITIES)}
WORDS = ("_EOS_", "_UNK_", *"the cow pizza kitchen bar north american asian oriental is and ,".split())
WORDS += tuple(name for name in NUMBER if name not in WORDS)
ID = {word: id for id, word in enumerate(WORDS, 1)}


def make_world(candidates=("is", "thai"), entities=ENTITIES):
    return World(Vocabulary(WORDS), list(candidates), [("the_cow", "R_price", "cheap")], list(entities))


def test_open_types_have_more_than_eight_values():
    world = make_world()
    assert world.types == ["cuisine", "price", "restaurant"]
    assert world.open_types == ["cuisine"]
    assert world.typed_vocabulary_size == len(WORDS) + 3
    assert make_world(entities=[*ENTITIES, ("gratis", "price", "calls")]).open_types == ["cuisine", "price"]
    assert make_world(entities=ENTITIES[:-1]).open_types == []


def test_types_of_subjects_stand_last():
    facts = [("x", "zone", "knowledge"), ("y", "area", "knowledge"), ("z", "bar", "subjects")]
    assert make_world(entities=facts).types == ["area", "zone", "bar"]


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("the cow pizza kitchen bar is cheap", [("the cow pizza kitchen bar", [17]), ("is", []), ("cheap", [8])]),
        ("the_cow_pizza_kitchen_bar", [("the_cow_pizza_kitchen_bar", [17])]),
        ("the cow pizza kitchen", [("the cow", [16]), ("pizza", []), ("kitchen", [])]),
        ("the the cow", [("the", []), ("the cow", [16])]),
        ("asian oriental asian", [("asian oriental", [4]), ("asian", [3])]),
        ("asian_oriental and north american", [("asian_oriental", [4]), ("and", []), ("north american", [5])]),
        ("north , american", [("north", []), (",", []), ("american", [])]),
        ("korean", [("korean", [18])]),
        ("moon", [("moon", [])]),
        ("", []),
    ],
)
def test_link_takes_the_longest_entity_at_each_word(sentence, parts):
    assert (NUMBER["cheap"], NUMBER["the_cow"], NUMBER["korean"]) == (8, 16, 18)
    assert make_world().link(sentence.split()) == [(words.split(), numbers) for words, numbers in parts]


def test_link_finds_all_things_of_one_name():
    entities = [("rome", "town", "knowledge"), ("rome", "restaurant", "subjects"), ("a_b", "x", "knowledge")]
    world = make_world(entities=[*entities, ("a b", "y", "calls")])  # names as a file can have them
    assert world.link(["rome"]) == [(["rome"], [0, 1])]


def test_encode_types_what_is_open_alone():
    world = make_world()
    cuisine = len(WORDS) + 1
    encoded = world.encode(["north american and cheap", ["the", "cow", "moon"], "asian_oriental asian , korean"])
    assert encoded.words.tolist() == [
        [ID["north"], ID["american"], ID["and"], ID["cheap"]],
        [ID["the"], ID["cow"], ID["_UNK_"], 0],
        [ID["asian_oriental"], ID["asian"], ID[","], ID["korean"]],
    ]
    assert encoded.typed_words.tolist() == [
        [cuisine, 0, ID["and"], ID["cheap"]],  # two words, one entity; word by word beside the plain ones
        [ID["the"], ID["cow"], ID["_UNK_"], 0],  # there are two restaurants: few
        [cuisine, cuisine, ID[","], cuisine],
    ]
    assert encoded.entities.tolist() == [
        [NUMBER["north_american"] + 1, NUMBER["cheap"] + 1, 0],
        [NUMBER["the_cow"] + 1, 0, 0],
        [NUMBER["asian_oriental"] + 1, NUMBER["asian"] + 1, NUMBER["korean"] + 1],
    ]
    assert encoded.lengths.tolist() == [4, 3, 4]


def test_each_open_type_has_its_own_id():
    towns = [(f"town{i}", "town", "knowledge") for i in range(9)]
    world = make_world(entities=[*ENTITIES, *towns])
    assert world.types == ["cuisine", "price", "town", "restaurant"]
    typed = world.encode(["thai town3 town5 cheap"]).typed_words.tolist()
    assert typed == [[len(WORDS) + 1, len(WORDS) + 3, len(WORDS) + 3, ID["cheap"]]]


def test_encoded_candidates_keep_their_order():
    world = make_world(["is", "the cow is cheap", "thai , greek"])
    assert world.encoded_candidates.words[:, 0].tolist() == [ID["is"], ID["the"], ID["thai"]]
    assert world.encoded_candidates.entities.tolist() == [[0, 0], [17, 9], [1, 2]]


def test_match_groups_are_values_of_one_type_in_a_candidate():
    candidates = ["is", "thai", "the cow is cheap", "cheap thai", "greek and thai and dear", "thai and greek", "korean"]
    members, types, groups = make_world(candidates).match_groups
    found = [
        {(int(types[g - 1]), tuple(m for m in members[g - 1].tolist() if m)) for g in row if g}
        for row in groups.tolist()
    ]
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


def test_a_world_without_entities():
    world = make_world(entities=[])
    members, types, groups = world.match_groups
    assert (members.shape, types.shape, groups.shape) == ((0, 1), (0,), (2, 1))
    assert world.types == world.open_types == []
    assert world.link(["thai"]) == [(["thai"], [])]
