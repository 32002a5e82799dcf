"""`tasks.selection.data`: a prepared directory as a pickle or as arrays."""

import json
import pickle
import re
import shutil

import numpy as np
import pytest
from helpers import refusal, write_smn, written

from colloquy.data import pickles
from colloquy.tasks.selection.data import load_dataset, path_of, read_split
from colloquy.tasks.selection.prepare import Settings, prepare

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


def as_lists(split):
    contexts, responses = split.texts(range(len(split)), 1)
    return contexts, responses, split.label.tolist()


def test_reads_what_prepare_wrote(prepared, directory):
    dataset = load_dataset(prepared)
    assert dataset.vectors.shape == (len(dataset.vocabulary) + 1, 7)
    for name, split in dataset.splits.items():
        lines = (prepared.parent / "raw" / f"{name}.txt").read_text().splitlines()
        assert split.label.tolist() == [int(line[0]) for line in lines]
        assert split.responses.lengths.tolist() == [
            len(line.split("\t")[-1].split()) for line in lines
        ]
    facts = {"eos_id": 1, "unk_id": 2, "hashed_words": 0, "text": WHITESPACE}
    assert dataset.metadata() == {"path": str(prepared.resolve()), "name": "sample", **facts}
    file, text = directory / "dataset.json", {"tokenizer": "terms", "lower": True}
    written(file, json.dumps({**json.loads(file.read_text()), "text": text}))
    assert load_dataset(directory, eos_id=1).text == text


def test_reads_the_releases_files_with_and_without_words(release):
    assert "give --eos_id" in refusal(load_dataset, release)
    dataset = load_dataset(release, eos_id=9)
    assert dataset.vocabulary is None and len(dataset.splits["test"]) == 0
    assert dataset.splits["train"].turns.lists() == [[3], [4]]
    assert dataset.splits["dev"].responses.lists() == [[5], [6, 7]]
    (release / "word2id").write_text(
        "".join(f"word{id}\t{id}\n" for id in (7, 2, 4, 1, 3, 8, 5)) + "_EOS_\t9\n"
    )
    vocabulary = load_dataset(release, eos_id=9).vocabulary
    assert (vocabulary.eos_id, vocabulary.unk_id, len(vocabulary)) == (9, 0, 9)
    assert vocabulary.encode(["word8", "word5", "_EOS_", "word6"]) == [8, 5, 0, 0]
    (release / "vocabulary.txt").write_text(
        "".join(f"word{id}\n" for id in range(1, 9)) + "_EOS_\n"
    )
    assert load_dataset(release, eos_id=9).vocabulary.eos_id == 9
    assert "vocabulary.txt: expected _EOS_ to be word 4. Received: word 9" in refusal(
        load_dataset, release, 4
    )


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
    assert (
        as_lists(found) == ([[3, 1], [3, 4, 1]], [[3], [4, 5]], [1, 0])
        and found.label.dtype == np.int32
    )


def test_what_is_missing_or_contradicts_is_named(directory):
    assert "dataset.json says that the id of _EOS_ is 1. Received: 2" in refusal(
        load_dataset, directory, 2
    )
    words = len((directory / "vocabulary.txt").read_text().splitlines())
    write(directory / "word_embedding.pkl", np.zeros((words, 7), "float32"))
    expected = f"{words} words, so word_embedding.pkl should have shape ({words + 1}, dimension)."
    assert f"{expected} Received: ({words}, 7)" in refusal(load_dataset, directory)


# === Arrays ===


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus prepared as a pickle, as arrays, and as both."""
    root = tmp_path_factory.mktemp("corpus")
    write_smn(root / "raw")
    for storage in ("pickle", "arrays", "both"):
        prepare("smn", root / "raw", root / storage, Settings(**SMALL, storage=storage))
    return root


def test_arrays_hold_what_the_pickle_holds(corpus):
    pickled, flat, both = (
        load_dataset(corpus / storage) for storage in ("pickle", "arrays", "both")
    )
    assert (
        not (corpus / "arrays" / "data.pkl").exists()
        and not (corpus / "pickle" / "arrays").exists()
    )
    assert (corpus / "both" / "data.pkl").read_bytes() == (
        corpus / "pickle" / "data.pkl"
    ).read_bytes()
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
        monkeypatch.setattr("colloquy.tasks.selection.prepare.PICKLED", limit)
        prepare("smn", corpus / "raw", tmp_path / name, Settings(**SMALL))
        assert {"data.pkl", "arrays"} & {file.name for file in (tmp_path / name).iterdir()} == {
            name
        }


def put(value, at=-1):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ids", put(WORDS), rf"from 0 to {WORDS - 1}\. Received: {WORDS}"),
        (
            "ids",
            lambda array: array.astype("int64"),
            r"expected uint16 or uint32\. Received: int64",
        ),
        ("label", put(2), r"from 0 to 1\. Received: 2"),
        ("label", lambda array: array[1:], r"expected [0-9,]+ numbers\. Received: "),
        ("label", None, r"label\.npy: expected an array\. Received: No such file"),
        ("context", put(10**6), r"Received: 1000000"),
        ("context", put(0), r"expected ascending numbers"),
        ("turn_starts", put(-1), r"starts at -1"),
        ("turn_starts", put(2**63 - 1), r"starts at 9223372036854775807"),
        ("turn_lengths", put(1000), r"turn_starts.npy: expected lists in \d+ numbers"),
        ("response_lengths", put(-1, 3), r"Received: -1"),
        ("context_turns", put(100), r"context_start.npy: expected lists in \d+ numbers"),
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
    assert re.search(rf"train\..*{message}", refusal(read_split, arrays, "train", WORDS))
