"""`tasks.selection.data`: a prepared directory as a pickle or as arrays, and what is refused."""

import json
import pickle
import shutil

import numpy as np
import pytest

from base.files import UserError
from data import pickles
from data.samples.selection import write_smn
from tasks.selection import prepare as prepare_module
from tasks.selection.data import load_dataset, path_of, read_split
from tasks.selection.prepare import Settings, prepare

SMALL = {"name": "sample", "dimension": 5, "word2vec_epochs": 1}
WHITESPACE = {"tokenizer": "whitespace", "lower": False}
LISTS = {"y": [1, 0], "c": [[3, 9, 4, 9], [3, 9, 4, 9]], "r": [[5], [6, 7]]}
WORDS = 1000


@pytest.fixture
def directory(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "prepared")


@pytest.fixture
def release(tmp_path):
    """A directory of the files that DAM's release has: no vocabulary, no facts."""
    write(tmp_path / "data.pkl", (LISTS, LISTS, {"y": [], "c": [], "r": []}))
    write(tmp_path / "word_embedding.pkl", np.zeros((10, 3)).tolist())
    return tmp_path


def write(path, value):
    path.write_bytes(pickle.dumps(value, protocol=2))


def change_facts(directory, without=(), **changes):
    facts = {**json.loads((directory / "dataset.json").read_text()), **changes}
    (directory / "dataset.json").write_text(json.dumps({k: v for k, v in facts.items() if k not in without}))


def as_lists(split):
    contexts, responses = split.texts(range(len(split)), 1)
    return contexts, responses, split.label.tolist()


def test_reads_what_prepare_wrote(prepared, directory):
    dataset = load_dataset(prepared)
    assert dataset.vectors.shape == (len(dataset.vocabulary) + 1, 7)
    for name, split in dataset.splits.items():
        lines = (prepared.parent / "raw" / f"{name}.txt").read_text().splitlines()
        assert split.label.tolist() == [int(line[0]) for line in lines]
        assert split.responses.lengths.tolist() == [len(line.split("\t")[-1].split()) for line in lines]
    facts = {"eos_id": 1, "unk_id": 2, "hashed_words": 0, "text": WHITESPACE}
    assert dataset.facts() == {"path": str(prepared.resolve()), "name": "sample", **facts}
    change_facts(directory, text={"tokenizer": "terms", "lower": True})
    assert load_dataset(directory, eos_id=1).text == {"tokenizer": "terms", "lower": True}


def test_reads_the_releases_files_with_and_without_words(release):
    with pytest.raises(UserError, match="give --eos_id"):
        load_dataset(release)
    dataset = load_dataset(release, eos_id=9)
    assert dataset.vocabulary is None and len(dataset.splits["test"]) == 0
    assert dataset.splits["train"].turns.lists() == [[3], [4]]
    assert dataset.splits["dev"].responses.lists() == [[5], [6, 7]]
    (release / "word2id").write_text("".join(f"word{id}\t{id}\n" for id in (7, 2, 4, 1, 3, 8, 5)) + "_EOS_\t9\n")
    vocabulary = load_dataset(release, eos_id=9).vocabulary
    assert (vocabulary.eos_id, vocabulary.unk_id, len(vocabulary)) == (9, 0, 9)
    assert vocabulary.encode(["word8", "word5", "_EOS_", "word6"]) == [8, 5, 0, 0]
    (release / "vocabulary.txt").write_text("".join(f"word{id}\n" for id in range(1, 9)) + "_EOS_\n")
    assert load_dataset(release, eos_id=9).vocabulary.eos_id == 9
    with pytest.raises(UserError, match=r"vocabulary\.txt: expected _EOS_ to be word 4\. Received: word 9"):
        load_dataset(release, eos_id=4)


def test_one_list_many_times_is_stored_once(directory):
    """The same object, as in what prepare.py writes, or one list after every other."""
    first, second, response = [3, 4, 1, 5, 1], [6, 1], [3, 3, 5]
    contexts = [first, second, first, first, second] * 70
    write(directory / "data.pkl", ({"y": [1] * 350, "c": contexts, "r": [response] * 350},) * 3)
    found = load_dataset(directory).splits["train"]
    assert len(found.responses.ids) == 3 and len(found.turns.ids) == 7
    assert found.texts(range(350), 1) == (contexts, [response] * 350)
    assert found.context.tolist()[:6] == [0, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("labels", [["1", "0"], (1, 0), np.array([1, 0]), np.array([True, False])])
def test_labels_may_be_any_zeros_and_ones(directory, labels):
    contexts, responses = ([3, 1], np.array([3, 4, 1])), [(3,), np.array([4, 5], "u2")]
    write(directory / "data.pkl", ({"y": labels, "c": contexts, "r": responses},) * 3)
    found = load_dataset(directory).splits["train"]
    assert as_lists(found) == ([[3, 1], [3, 4, 1]], [[3], [4, 5]], [1, 0]) and found.label.dtype == np.int32


# === Refused ===


def lists(y=(1,), c=((3, 1),), r=((3,),)):
    """The content of a `data.pkl` with the same three lists in each split."""
    return ({"y": list(y), "c": list(c), "r": list(r)},) * 3


LABEL, IDS = "labels of train to be 0 or 1. Received: ", "expected lists of ids in train. "
BAD_DATA = [
    (({}, {}), r"expected a tuple \(train, dev, test\)"),
    (({}, {}, {}), "expected train to be a dict with y, c and r"),
    (lists(c=[], r=[]), "equally long. Received: 1, 0, 0"),
    (lists(y=[7]), LABEL + "7"),
    (lists(y=["x" * 999]), LABEL + r"'x{12}\.\.\.x{13}'$"),
    (lists(y=[[1]]), LABEL + r"\[1\]"),
    (lists(y=[10**400]), LABEL + "1000"),
    (lists(c=[[5.7]]), IDS + "'float' object"),
    (lists(c=[[[3], 1]]), IDS + "'list' object"),
    (lists(c=[{3: 1}]), IDS + "lists of ids .* Received: dict"),
    (lists(c=[b"ab"]), "lists of ids are needed. Received: bytes"),
    *((lists(c=[wrong]), IDS) for wrong in (np.ones((2, 2)), [10**400], [2**40], "ab")),
    (({"y": [1], "c": {0: [3]}, "r": [[3]]},) * 3, IDS),
    (lists(r=[[100000]]), r"train holds ids from 100000 to 100000, but .*rows 0 to"),
    (lists(c=[[3]]), "expected contexts of train to hold the id of _EOS_"),
]
BAD_VECTORS = [
    *([[0.0, float("nan")]], [1.0, 2.0], [["1.5"]], [[]], [[[1.0]]], [[1.0], [1.0, 2.0]], [[1e300]], [[10**400]]),
    *([[1.0, None]], {"a": [1.0]}, "text", np.zeros((3, 2), complex), [[0.5] * 3000] * 3000),
]
BAD_FACTS = [
    *(({"text": text}, "json: text") for text in ("terms", {"tokenizer": "x"}, {"lower": 1}, {"tokenizer": 3})),
    *(({"eos_id": id}, "json: eos_id") for id in ("1", True, 1e400)),
    *(({"eos_id": id}, r"_EOS_ from 1 to \d+\. Received: ") for id in (0, 10**400)),
    ({"eos_id": None}, "give --eos_id"),
    ({"eos_id": 2}, r"vocabulary\.txt: expected _EOS_ to be word 2"),
    *(({"unk_id": id}, "json: unk_id") for id in ("2", 0)),
    *(({"hashed_words": number}, "json: hashed_words") for number in (-1, 2**24 + 1, True, "1")),
]
NO_FACTS = ["{", json.dumps({"task": "reading"}), "[" * 100_000]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *(("data.pkl", data, message) for data, message in BAD_DATA),
        *(("word_embedding.pkl", vectors, "word_embedding.pkl: expected") for vectors in BAD_VECTORS),
        *(("dataset.json", changes, message) for changes, message in BAD_FACTS),
        *(("dataset.json", text, "dataset.json: expected") for text in NO_FACTS),
    ],
)
def test_a_malformed_file_is_refused(directory, name, content, message):
    if name != "dataset.json":
        write(directory / name, content)
    elif isinstance(content, str):
        (directory / name).write_text(content)
    else:
        change_facts(directory, **content)
    with pytest.raises(UserError, match=message):
        load_dataset(directory)


def test_what_is_missing_or_contradicts_is_named(directory):
    with pytest.raises(UserError, match=r"dataset\.json says that the id of _EOS_ is 1. Received: 2"):
        load_dataset(directory, eos_id=2)
    words = len((directory / "vocabulary.txt").read_text().splitlines())
    write(directory / "word_embedding.pkl", np.zeros((words, 7), "float32"))
    expected = rf"{words} words, .* shape \({words + 1}, dimension\)\. Received: \({words}, 7\)"
    with pytest.raises(UserError, match=expected):
        load_dataset(directory)
    write(directory / "word_embedding.pkl", np.zeros((words + 1, 7), "float32"))
    (directory / "data.pkl").unlink()
    for path, message in ((directory, r"data\.pkl"), (directory / "nowhere", "is no directory")):
        with pytest.raises(UserError, match=message):
            load_dataset(path)


# === Arrays ===


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus prepared as a pickle, as arrays, and as both."""
    root = tmp_path_factory.mktemp("corpus")
    write_smn(root / "raw", count=60, seed=3, held_out=11)
    for storage in ("pickle", "arrays", "both"):
        prepare("smn", root / "raw", root / storage, Settings(**SMALL, storage=storage))
    return root


def test_arrays_hold_what_the_pickle_holds(corpus):
    pickled, flat, both = (load_dataset(corpus / storage) for storage in ("pickle", "arrays", "both"))
    assert not (corpus / "arrays" / "data.pkl").exists() and not (corpus / "pickle" / "arrays").exists()
    assert (corpus / "both" / "data.pkl").read_bytes() == (corpus / "pickle" / "data.pkl").read_bytes()
    np.testing.assert_array_equal(flat.vectors, pickled.vectors)
    for name, split in pickled.splits.items():
        assert as_lists(flat.splits[name]) == as_lists(split) == as_lists(both.splits[name])
        for field in ("context", "label", "context_start", "context_turns"):
            np.testing.assert_array_equal(getattr(flat.splits[name], field), getattr(split, field))
        assert flat.splits[name].turns.ids.dtype == np.uint16
        assert isinstance(flat.splits[name].turns.ids.base, np.memmap)
    train = pickles.load(corpus / "pickle" / "data.pkl")[0]
    assert as_lists(flat.splits["train"]) == (train["c"], train["r"], train["y"])


def test_a_large_corpus_has_arrays_by_default(corpus, tmp_path, monkeypatch):
    lines = sum(len(split) for split in load_dataset(corpus / "pickle").splits.values())
    for limit, name in ((lines, "data.pkl"), (lines - 1, "arrays")):
        monkeypatch.setattr(prepare_module, "PICKLED", limit)
        prepare("smn", corpus / "raw", tmp_path / name, Settings(**SMALL))
        assert {"data.pkl", "arrays"} & {file.name for file in (tmp_path / name).iterdir()} == {name}


def put(value, at=-1):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ids", put(WORDS), rf"from 0 to {WORDS - 1}\. Received: {WORDS}"),
        ("ids", lambda array: array.astype("int64"), r"expected uint16 or uint32\. Received: int64"),
        ("label", put(2), r"from 0 to 1\. Received: 2"),
        ("label", lambda array: array[1:], r"expected [0-9,]+ numbers\. Received: "),
        ("label", None, r"label\.npy: expected an array\. Received: No such file"),
        ("context", put(10**6), r"Received: 1000000"),
        ("context", put(0), r"expected ascending numbers"),
        ("turn_starts", put(-1), r"starts at -1"),
        ("turn_starts", put(2**63 - 1), r"starts at 9223372036854775807"),
        ("turn_lengths", put(1000), r"turn_starts.npy: expected lists in \d+ numbers"),
        ("response_lengths", put(-1, 3), r"Received: -1"),
        ("context_turns", put(1000), r"context_start.npy: expected lists in \d+ numbers"),
    ],
)
def test_arrays_that_lack_or_contradict_one_are_refused(corpus, tmp_path, name, change, message):
    arrays = shutil.copytree(corpus / "arrays" / "arrays", tmp_path / "arrays")
    read_split(arrays, "train", WORDS)
    file = path_of(arrays, "train", name)
    if change:
        np.save(file, change(np.load(file)))
    else:
        file.unlink()
    with pytest.raises(UserError, match=rf"train\..*{message}"):
        read_split(arrays, "train", WORDS)
