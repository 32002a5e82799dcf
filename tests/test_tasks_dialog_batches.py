"""`tasks.dialog.batches` and `tasks.dialog.dataset`: dialogs in memory, their batches, and the world they are about."""

import json
import pathlib
import pickle
import shutil

import numpy as np
import pytest

from base.files import UserError
from data.vocabulary import Vocabulary
from tasks.dialog.batches import DialogSplit, Sentences, stack
from tasks.dialog.dataset import World, load_dataset
from tasks.dialog.prepare import Settings, prepare

BABI = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data" / "babi-dialog"
FIELDS = ["words", "typed_words", "sentences", "speakers", "times", "turns", "mentions"]
E = 7  # entities


# === Dialogs and batches ===


def test_stack_pads_at_the_end():
    np.testing.assert_array_equal(stack([[5], [], [7, 8, 9]]), [[5, 0, 0], [0, 0, 0], [7, 8, 9]])
    assert stack([[], []]).shape == (2, 1) and stack([]).shape == (0, 1)
    assert stack([[5]]).dtype == np.int32


PLAIN = [[11, 12, 13], [14], [15, 16, 17, 18, 19], [20, 21]]
TYPED = [[11, 12, 13], [91], [15, 16, 92, 19], [20, 21]]
MENTIONED = [[], [1, 7], [3], []]
DIALOGS = [
    {"sentences": [3, 1], "speakers": [1, 2], "times": [0, 0], "turns": [0], "answers": [6]},
    {
        "sentences": [0, 1, 3, 3, 2, 1],
        "speakers": [3, 1, 2, 1, 2, 3],
        "times": [0, 0, 0, 1, 1, 1],
        "turns": [1, 3],
        "answers": [5, 0],
    },
    {
        "sentences": [1, 2, 0],
        "speakers": [1, 2, 1],
        "times": [0, 0, 1],
        "turns": [0, 2],
        "answers": [2, 6],
    },
]


@pytest.fixture
def split():
    return DialogSplit(Sentences(stack(PLAIN), stack(TYPED), stack(MENTIONED)), DIALOGS)


def test_split_knows_its_responses(split):
    assert len(split) == 3
    assert split.answers.tolist() == [6, 5, 0, 2, 6]
    assert split.dialog.tolist() == [0, 1, 1, 2, 2]
    assert split.sizes.tolist() == [[2, 1], [6, 2], [3, 2]]
    assert split.sentences.lengths.tolist() == [3, 1, 5, 2]


def test_an_absent_split_is_empty(split):
    empty = DialogSplit(split.sentences, [])
    assert len(empty) == 0
    assert empty.answers.shape == empty.dialog.shape == (0,)
    assert empty.sizes.shape == (0, 2)


@pytest.mark.parametrize("rows", [[0], [1], [2, 0], [0, 1, 2]])
@pytest.mark.parametrize("multiple", [1, 5])
def test_collate_matches_loops(split, rows, multiple):
    inputs, answers = split.collate(rows, FIELDS, E, multiple)
    chosen = [DIALOGS[row] for row in rows]

    def size(longest):
        return next(n for n in range(longest, 99) if n % multiple == 0)

    B, M = len(rows), size(max(len(dialog["sentences"]) for dialog in chosen))
    T = size(max(len(dialog["turns"]) for dialog in chosen))
    W = size(max(len(PLAIN[sentence]) for dialog in chosen for sentence in dialog["sentences"]))
    expected = {
        "words": np.zeros((B, M, W), np.int32),
        "typed_words": np.zeros((B, M, W), np.int32),
        "speakers": np.zeros((B, M), np.int32),
        "times": np.zeros((B, M), np.int32),
        "turns": np.zeros((B, T), np.int32),
        "mentions": np.zeros((B, M, E), np.uint8),
    }
    right = np.full((B, T), -1, np.int32)
    for b, dialog in enumerate(chosen):
        for m, sentence in enumerate(dialog["sentences"]):
            for w, word in enumerate(PLAIN[sentence]):
                expected["words"][b, m, w] = word
            for w, word in enumerate(TYPED[sentence]):
                expected["typed_words"][b, m, w] = word
            for entity in MENTIONED[sentence]:
                expected["mentions"][b, m, entity - 1] = 1
            expected["speakers"][b, m] = dialog["speakers"][m]
            expected["times"][b, m] = dialog["times"][m]
        for t, turn in enumerate(dialog["turns"]):
            expected["turns"][b, t] = turn
            right[b, t] = dialog["answers"][t]
    assert list(inputs) == FIELDS
    distinct = {sentence for dialog in chosen for sentence in dialog["sentences"]}
    S = next(n for n in range(len(distinct) + 1, 99) if n % (4 * multiple) == 0)  # sentence 0 is empty
    numbers = inputs.pop("sentences")
    assert numbers.dtype == np.int32 and set(numbers.ravel()) - {0} == set(range(1, len(distinct) + 1))
    for name in ("words", "typed_words"):
        assert inputs[name].shape == (S, W) and not inputs[name][0].any()
        inputs[name] = inputs[name][numbers]
    for name, values in expected.items():
        assert inputs[name].dtype == values.dtype, name
        np.testing.assert_array_equal(inputs[name], values, err_msg=name)
    np.testing.assert_array_equal(answers, right)
    assert answers.dtype == np.int32


def test_collate_rounds_sizes_up_to_four(split):
    inputs, answers = split.collate([1], FIELDS, E)
    assert {name: values.shape for name, values in inputs.items()} == {
        "words": (16, 8),  # four sentences differ
        "typed_words": (16, 8),
        "sentences": (1, 8),
        "speakers": (1, 8),
        "times": (1, 8),
        "turns": (1, 4),
        "mentions": (1, 8, 7),
    }
    assert answers.shape == (1, 4)


def test_collate_makes_what_is_asked_for(split):
    inputs, _ = split.collate([0], ["turns", "words"])
    assert list(inputs) == ["turns", "words"]
    with pytest.raises(ValueError, match=r"fields must be known\. Received: 'word'$"):
        split.collate([0], ["turns", "word"])


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


# === Reading a dataset ===


def test_load_dataset(prepared_dialog):
    dataset = load_dataset(str(prepared_dialog))
    assert dataset.name == "sample-task1"
    assert dataset.facts() == {"path": str(prepared_dialog.resolve()), "name": "sample-task1"}
    assert dataset.vocabulary is dataset.world.vocabulary
    assert list(dataset.splits) == ["train", "dev", "dev-oov", "test", "test-oov"]
    assert [len(split) for split in dataset.splits.values()] == [26, 7, 0, 7, 0]


def test_a_loaded_dialog_is_that_of_the_file(prepared_dialog):
    raw = (prepared_dialog.parents[1] / "raw" / "dialog-babi-task1-sample-tst.txt").read_text()
    lines = [line.partition(" ")[2] for line in raw.partition("\n\n")[0].split("\n")]
    dataset = load_dataset(prepared_dialog)
    split, candidates, words = dataset.splits["test"], dataset.world.candidates, (None, *dataset.vocabulary.words)
    dialog = split.dialogs[0]
    texts = [" ".join(words[id] for id in split.sentences.words[row] if id) for row in dialog["sentences"]]
    speakers = dialog["speakers"].tolist()
    told = [
        f"{text}\t{texts[place + 1]}" if speaker == 1 else text
        for place, (text, speaker) in enumerate(zip(texts, speakers, strict=True))
        if speaker != 2
    ]
    read = [[[w if w in words else "_UNK_" for w in field.split()] for field in line.split("\t")] for line in lines]
    assert [[field.split() for field in line.split("\t")] for line in told] == read
    assert [candidates[answer] for answer in dialog["answers"]] == [
        line.split("\t")[1] for line in lines if "\t" in line
    ]


def test_a_run_gets_the_files_of_a_world(prepared_dialog, tmp_path):
    world = World.load(prepared_dialog)
    world.save(prepared_dialog, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {
        *("vocabulary.txt", "candidates.txt", "knowledge.txt", "entities.txt")
    }
    assert World.load(tmp_path) == world


def fails(path, message):
    with pytest.raises(UserError, match=message) as caught:
        load_dataset(path)
    assert str(caught.value).startswith(str(path))


def test_load_dataset_rejects_other_directories(prepared_dialog, tmp_path):
    fails(tmp_path / "absent", r"absent is no directory; prepare\.py makes one$")
    fails(prepared_dialog.parent, r"prepared holds several tasks: give one of them, as .*/task1$")
    fails(tmp_path, r"dataset\.json: expected a readable JSON file\. .*No such file")


@pytest.fixture
def damaged(prepared_dialog, tmp_path):
    """A copy to damage."""
    return shutil.copytree(prepared_dialog, tmp_path / "damaged")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"dataset\.json: expected JSON in UTF-8\. Expecting"),
        ('["dialog"]', r'dataset\.json: expected an object with "task": "dialog"'),
        (json.dumps({"task": "selection"}), r'dataset\.json: expected an object with "task": "dialog"'),
        ("[" * 100_000, r"dataset\.json: expected JSON in UTF-8\. Received: brackets nested too deep"),
        (json.dumps({"task": "dialog", "name": [7]}), r"dataset\.json: expected name to be a text\. Received: list"),
    ],
)
def test_load_dataset_rejects_other_facts(damaged, content, message):
    (damaged / "dataset.json").write_text(content)
    fails(damaged, message)


@pytest.mark.parametrize("name", ["vocabulary.txt", "candidates.txt", "knowledge.txt", "entities.txt", "dialogs.pkl"])
def test_load_dataset_names_a_missing_file(damaged, name):
    (damaged / name).unlink()
    fails(damaged, rf"{name}: expected .*No such file")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("candidates.txt", b"th\xe8re\n", r"line 1: expected UTF-8\. Received: b'th\\xe8re'"),
        ("candidates.txt", b"", "expected candidates. Received: an empty file"),
        ("candidates.txt", b"ok\n" * 2**10 + b"a " * 2**17, "expected candidates of similar lengths"),
        ("entities.txt", b"_" * 101 + b"\tcuisine\tknowledge\n", "expected names of at most 100 parts"),
        ("entities.txt", b"thai\tcuisine\tknowledge\nrome\ttown\n", "line 2: expected three fields, .*Received: 2$"),
        (
            "knowledge.txt",
            "\u2028\tR_x\t\x85\nask\tR_x\ty\tz\n".encode(),
            "line 2: expected three fields, separated by tabs. Received: 4$",
        ),
        ("dialogs.pkl", b"", "expected a pickle. Received: an empty file"),
        ("dialogs.pkl", pickle.dumps([1], 2), r"expected a dict with sentences and splits\. Received: <class 'list'>"),
        ("dialogs.pkl", pickle.dumps({"splits": {}}, 2), "expected a dict with sentences and splits"),
    ],
)
def test_load_dataset_names_a_bad_file(damaged, name, content, message):
    (damaged / name).write_bytes(content)
    fails(damaged, rf"{name}(: |, ){message}")


def change(name, edit):
    def change_dialog(data):
        dialog = data["splits"]["dev"][2]
        dialog[name] = edit(dialog[name])

    return change_dialog


def no_answers(data):
    del data["splits"]["dev"][2]["answers"]


def unknown_word(data):
    data["sentences"][5] = [412]


def list_of_splits(data):
    data["splits"] = [data["splits"]]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change("answers", lambda values: [*values[:-1], 477]), r"answers must be from 0 to 476$"),
        (change("answers", lambda values: [*values[:-1], -1]), r"answers must be from 0 to 476$"),
        (change("answers", lambda values: [*values[:-1], 2**40]), "greater than maximum"),
        (change("turns", lambda values: [*values[:-1], 99]), r"turns must be from 0 to \d\d$"),
        (change("sentences", lambda values: [10**6, *values[1:]]), r"sentences must be from 0 to \d+$"),
        (change("sentences", lambda values: values[1:]), "sentences, speakers and times differ in length"),
        (change("times", lambda values: values[1:]), "sentences, speakers and times differ in length"),
        (change("speakers", lambda values: values[1:]), "sentences, speakers and times differ in length"),
        (change("answers", lambda values: values[1:]), "turns and answers differ in length, or are none"),
        (change("turns", lambda values: ["x" for _ in values]), "'str' object cannot be interpreted as an integer"),
        (no_answers, "answers"),
        (unknown_word, "words must be from 1 to 411"),
        (change("times", lambda values: [0.9, *values[1:]]), "'float' object"),
        (change("times", lambda values: [-1, *values[1:]]), r"times must be from 0 to \d+$"),
        (change("speakers", lambda values: [4, *values[1:]]), "speakers must be from 0 to 3"),
        (change("turns", lambda values: [[0], *values[1:]]), "'list' object"),
        (change("turns", lambda values: 10**400), "lists of ids are needed. Received: int"),
        (list_of_splits, "no attribute 'get'"),
    ],
)
def test_load_dataset_rejects_dialogs_that_contradict_the_other_files(damaged, edit, message):
    data = pickle.loads((damaged / "dialogs.pkl").read_bytes())
    edit(data)
    (damaged / "dialogs.pkl").write_bytes(pickle.dumps(data, 2))
    fails(damaged, r"dialogs\.pkl: expected what prepare\.py writes for these words and candidates\. .*" + message)


def test_load_dataset_rejects_a_dialog_without_turns(damaged):
    data = pickle.loads((damaged / "dialogs.pkl").read_bytes())
    data["splits"]["dev"][2].update(turns=[], answers=[])
    (damaged / "dialogs.pkl").write_bytes(pickle.dumps(data, 2))
    fails(damaged, "turns and answers differ in length, or are none")


@pytest.mark.parametrize("name", ["vocabulary.txt", "candidates.txt"])
def test_load_dataset_rejects_files_that_were_cut(damaged, name):
    lines = (damaged / name).read_text().splitlines(keepends=True)
    (damaged / name).write_text("".join(lines[:-200]))
    fails(damaged, r"dialogs\.pkl: expected what prepare\.py writes for these words and candidates")


# === The real files ===


@pytest.fixture(scope="module")
def task5(tmp_path_factory):
    """The training dialogs of task 5."""
    if not BABI.is_dir():
        pytest.skip(f"{BABI} is not there: dialog bAbI itself is not part of the repository")
    root = tmp_path_factory.mktemp("babi")
    (root / "raw").mkdir()
    names = "dialog-babi-task5-full-dialogs-trn.txt", "dialog-babi-candidates.txt", "dialog-babi-kb-all.txt"
    for name in names:
        (root / "raw" / name).symlink_to(BABI / name)
    prepare("babi-dialog", root / "raw", root / "prepared", Settings())
    return load_dataset(root / "prepared" / "task5")


TYPES = ("cuisine", "location", "price", "rating", "phone", "address", "number")


@pytest.mark.parametrize(
    ("line", "gold", "bits", "some", "same"),
    [
        (7, "api_call italian paris six cheap", "1110001", 354, 1),
        (12, "api_call spanish madrid two cheap", "1110001", 464, 8),
        (40, "here it is resto_madrid_cheap_spanish_1stars_phone", "0000100", 470, 3),
    ],
)
def test_real_match_types_of_the_first_dialog(task5, line, gold, bits, some, same):
    world, split = task5.world, task5.splits["train"]
    dialog = split.dialogs[0]
    # A turn's line: one for each turn and fact before it, and its own.
    lines = {int(turn) - number + 1: number for number, turn in enumerate(dialog["turns"])}
    turn, answer = (dialog[name][lines[line]] for name in ("turns", "answers"))
    assert world.candidates[answer] == gold
    context = set(split.sentences.entities[dialog["sentences"][: turn + 1]].ravel()) - {0}
    members, types, groups = world.match_groups
    found = np.zeros((len(world.candidates), len(world.types)), int)
    for candidate, row in enumerate(groups):
        for group in row[row > 0] - 1:
            found[candidate, types[group]] |= bool(context & set(members[group]))
    found = found[:, [world.types.index(type) for type in TYPES]]
    assert "".join(map(str, found[answer])) == bits
    assert (found.any(axis=1).sum(), (found == found[answer]).all(axis=1).sum()) == (some, same)


def test_real_world(task5):
    world, split = task5.world, task5.splits["train"]
    assert task5.name == "babi-task5"
    assert split.sizes.sum(axis=0).tolist()[1] == len(split.answers) == 18340
    assert split.sizes[:, 0].max() == 96
    assert world.open_types == ["address", "cuisine", "location", "phone", "restaurant"]
    assert sorted(world.types[:-1]) == sorted(TYPES)
    assert (split.sentences.words != 2).all()  # no unknown word in train
    # Candidates differ by entities alone: few forms are left, and no two of them have form and entities in common.
    typed = world.encoded_candidates
    assert len(np.unique(typed.typed_words, axis=0)) < 100
    assert len(np.unique(np.concatenate([typed.typed_words, typed.entities], axis=1), axis=0)) == 4212
