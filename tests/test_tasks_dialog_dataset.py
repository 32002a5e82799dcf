"""`tasks.dialog.dataset`: what it reads, and what it refuses."""

import json
import pathlib
import pickle
import shutil

import numpy as np
import pytest

from base.files import UserError
from tasks.dialog.dataset import World, load_dataset
from tasks.dialog.prepare import Settings, prepare

BABI = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data" / "babi-dialog"


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
