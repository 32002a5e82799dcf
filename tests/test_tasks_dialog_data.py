"""`tasks.dialog.domain` and `data`: what a bot knows, and prepared datasets.

Batches are asserted by `test_models_contract.test_matches_its_article`: models of dialogs read
them, however padded.
"""

import pytest
from helpers import refusal

from colloquy.data.corpora.babi_dialog import Fact, Turn
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.dialog.data import load_dataset
from colloquy.tasks.dialog.domain import Domain, Entity
from colloquy.tasks.dialog.users import Users, learn_users

# === The domain ===

CUISINES = "thai greek basque asian asian_oriental north_american tuscan indian".split()
PRICES = "cheap moderate dear free low high fair steep".split()  # eight are still closed
ENTITIES = [(name, "cuisine", "knowledge") for name in CUISINES]
ENTITIES += [(name, "price", "knowledge") for name in PRICES]
ENTITIES += [
    ("the_cow", "restaurant", "subjects"),
    ("the_cow_pizza_kitchen_bar", "restaurant", "subjects"),
    ("korean", "cuisine", "calls"),
]
NUMBER = {name: number for number, (name, _, _) in enumerate(ENTITIES, 1)}
WORDS = "_EOS_ _UNK_ the cow pizza kitchen bar north american asian oriental is and ,".split()
WORDS += [name for name in NUMBER if name not in WORDS]
ID = {word: id for id, word in enumerate(WORDS, 1)}
FACTS = [
    ("prezzo", "R_cuisine", "thai"),
    ("prezzo", "R_location", "west"),
    ("zizzi", "R_cuisine", "thai"),
    ("zizzi", "R_location", "east"),
]


def make_domain(candidates=("is", "thai"), entities=ENTITIES):
    facts = [Fact(*fields) for fields in FACTS]
    entities = [Entity(*fields) for fields in entities]
    return Domain(Vocabulary(tuple(WORDS)), list(candidates), facts, entities)


@pytest.mark.parametrize(
    ("entities", "types", "open_types"),
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
def test_open_types_have_more_than_eight_values_and_ids_after_the_words(
    entities, types, open_types
):
    domain = make_domain(entities=entities)
    assert domain.types == types
    assert domain.open_types == {name: len(WORDS) + n for name, n in open_types.items()}


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("the cow pizza kitchen bar is cheap", "the_cow_pizza_kitchen_bar - cheap"),
        ("the_cow_pizza_kitchen_bar", "the_cow_pizza_kitchen_bar"),
        ("the cow pizza kitchen", "the_cow - -"),
        ("the the cow", "- the_cow"),
        ("asian oriental asian", "asian_oriental asian"),
        ("asian_oriental and north american", "asian_oriental - north_american"),
        ("north , american", "- - -"),
        ("", ""),
    ],
)
def test_link_takes_the_longest_entity_at_each_word(sentence, names):
    pairs = make_domain().names.link(sentence.split())
    numbers = [[] if name == "-" else [NUMBER[name]] for name in names.split()]
    assert [entities for _, entities in pairs] == numbers
    words = []
    for part, _ in pairs:
        words += part
    assert words == sentence.split()
    entities = [("rome", "town", "knowledge"), ("rome", "restaurant", "subjects")]
    assert make_domain(entities=entities).names.link(["rome"]) == [(["rome"], [1, 2])]


def test_encode_types_what_is_open_alone():
    towns = [(f"town{number}", "town", "knowledge") for number in range(9)]
    domain = make_domain(entities=[*ENTITIES, *towns])
    cuisine_id = domain.open_types["cuisine"]
    town_id = domain.open_types["town"]
    texts = ["north american and cheap", "the cow moon", "asian_oriental , korean", "thai town3"]
    encoded = domain.encode([text.split() for text in texts])
    assert encoded.words.lists() == [
        [ID["north"], ID["american"], ID["and"], ID["cheap"]],
        [ID["the"], ID["cow"], ID["_UNK_"]],
        [ID["asian_oriental"], ID[","], ID["korean"]],
        [ID["thai"], ID["_UNK_"]],
    ]
    assert encoded.typed_words.lists() == [
        # Two words are one entity: the second is 0.
        [cuisine_id, 0, ID["and"], ID["cheap"]],
        # There are only two restaurants.
        [ID["the"], ID["cow"], ID["_UNK_"]],
        [cuisine_id, ID[","], cuisine_id],
        [cuisine_id, town_id],
    ]
    assert encoded.entities.lists() == [
        [NUMBER["north_american"], NUMBER["cheap"]],
        [NUMBER["the_cow"]],
        [NUMBER["asian_oriental"], NUMBER["korean"]],
        [NUMBER["thai"], len(ENTITIES) + 4],
    ]


@pytest.mark.parametrize(
    ("call", "facts"),
    [
        ("api_call thai west", FACTS[:2]),
        ("api_call thai R_location R_price", FACTS),
        ("api_call thai north", [("api_call", "no", "result")]),
        ("thai west", []),  # no call
    ],
)
def test_search_gives_all_facts_of_what_has_every_value(call, facts):
    assert make_domain([call]).search(call) == [" ".join(fact) for fact in facts]
    assert make_domain().search(call) == []  # no candidate


# === Datasets ===


def test_load_dataset(prepared_dialog):
    dataset = load_dataset(str(prepared_dialog))
    assert dataset.vocabulary is dataset.domain.vocabulary
    assert dataset.metadata() == {"path": str(prepared_dialog.resolve()), "name": "sample-task1"}
    sizes = {"train": 26, "dev": 7, "dev-oov": 0, "test": 7, "test-oov": 0}
    assert {name: len(split) for name, split in dataset.splits.items()} == sizes
    parent = prepared_dialog.parent
    message = f"{parent} holds datasets: give one of them, such as {prepared_dialog}"
    assert refusal(load_dataset, parent) == message


def test_users_are_learnt_from_train(prepared_dialog):
    dataset = load_dataset(prepared_dialog)
    train = dataset.splits["train"]
    words = set()
    for dialog in train.dialogs:
        for speaker, text in dataset.conversation(train, dialog):
            if speaker == "user" and text != "<SILENCE>":
                words.update(text.split())
    users = learn_users(dataset)
    assert set(users.words) == words and users.opening == ""
    assert len({dataset.domain.template(text) for text in users.phrases}) == 12


def test_an_opening_begins_every_dialog_of_train():
    class Split:
        dialogs = ({"answers": [1]}, {"answers": [1]})

    class Data:
        splits = {"train": Split}
        domain = make_domain(["bye", "welcome"])
        first = "<SILENCE>"

        def conversation(self, split, dialog):
            return [Turn("user", self.first), Turn("bot", "welcome"), Turn("user", "thai")]

    data = Data()
    assert learn_users(data) == Users(words=["thai"], phrases=["thai"], opening="welcome")
    data.first = "hi"
    assert learn_users(data).opening == ""
