"""data/selection_dataset.py: what a prepared directory must hold."""

import json
import pickle
import shutil

import numpy as np
import pytest

from base.files import UserError
from tasks.selection.dataset import load_dataset


@pytest.fixture
def directory(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "prepared")


def write(path, value):
    with open(path, "wb") as file:
        pickle.dump(value, file, protocol=2)


def test_reads_what_prepare_wrote(prepared):
    dataset = load_dataset(prepared)
    assert dataset.name == "sample"
    assert (dataset.eos_id, dataset.unk_id) == (1, 2)
    assert dataset.vectors.shape == (len(dataset.vocabulary) + 1, 7)
    for name, split in dataset.splits.items():
        lines = (prepared.parent / "raw" / f"{name}.txt").read_text().splitlines()
        assert split.label.tolist() == [int(line[0]) for line in lines]
        assert split.responses.lengths.tolist() == [len(line.split("\t")[-1].split()) for line in lines]
    assert dataset.facts() == {
        "path": str(prepared.resolve()),
        "name": "sample",
        "eos_id": 1,
        "unk_id": 2,
        "text": {"tokenizer": "whitespace", "lower": False},
    }


def test_says_how_texts_become_words(directory):
    facts = json.loads((directory / "dataset.json").read_text())
    for text in ({"tokenizer": "terms", "lower": True}, {"tokenizer": "whitespace", "lower": False}):
        (directory / "dataset.json").write_text(json.dumps({**facts, "text": text}))
        assert load_dataset(directory).text == text
    del facts["text"]  # as earlier ones
    (directory / "dataset.json").write_text(json.dumps(facts))
    assert load_dataset(directory).text == {"tokenizer": "whitespace", "lower": False}
    for text in (
        "terms",
        {"tokenizer": "terms"},
        {"tokenizer": "x", "lower": True},
        {"tokenizer": "terms", "lower": 1},
    ):
        (directory / "dataset.json").write_text(json.dumps({**facts, "text": text}))
        with pytest.raises(UserError, match=r"dataset.json: expected text with a known tokenizer and lower"):
            load_dataset(directory)


def test_reads_the_releases_files_which_have_no_vocabulary(tmp_path):
    split = {"y": [1, 0], "c": [[3, 9, 4, 9], [3, 9, 4, 9]], "r": [[5], [6, 7]]}
    write(tmp_path / "data.pkl", (split, split, {"y": [], "c": [], "r": []}))
    write(tmp_path / "word_embedding.pkl", np.zeros((10, 3)).tolist())
    with pytest.raises(UserError, match="give --eos_id"):
        load_dataset(tmp_path)
    dataset = load_dataset(tmp_path, eos_id=9)
    assert dataset.vocabulary is None
    assert dataset.splits["train"].turns.lists() == [[3], [4]]
    assert dataset.splits["dev"].responses.lists() == [[5], [6, 7]]
    assert len(dataset.splits["test"].label) == 0


def test_a_missing_file_is_named(directory):
    (directory / "data.pkl").unlink()
    with pytest.raises(UserError, match=r"data\.pkl"):
        load_dataset(directory)
    with pytest.raises(UserError, match="is no directory"):
        load_dataset(directory / "nowhere")


@pytest.mark.parametrize("eos_id", [-5, 0, 10])
def test_an_id_that_cannot_end_a_turn_is_refused(tmp_path, eos_id):
    split = {"y": [1], "c": [[3, 9]], "r": [[5]]}
    write(tmp_path / "data.pkl", (split, split, split))
    write(tmp_path / "word_embedding.pkl", np.zeros((10, 3)).tolist())
    with pytest.raises(UserError, match=f"an id of _EOS_ from 1 to 9. Received: {eos_id}"):
        load_dataset(tmp_path, eos_id)


def test_an_eos_id_that_the_dataset_contradicts_is_refused(directory):
    assert load_dataset(directory, eos_id=1).eos_id == 1
    with pytest.raises(UserError, match=r"dataset\.json says that the id of _EOS_ is 1. Received: 2"):
        load_dataset(directory, eos_id=2)


def test_embedding_and_vocabulary_of_different_sizes_name_both(directory):
    words = len((directory / "vocabulary.txt").read_text().splitlines())
    write(directory / "word_embedding.pkl", np.zeros((words, 7), "float32"))
    with pytest.raises(
        UserError, match=rf"{words} words, .* shape \({words + 1}, dimension\)\. Received: \({words}, 7\)"
    ):
        load_dataset(directory)


def test_ids_beyond_the_embedding_are_refused(directory):
    split = {"y": [1], "c": [[3, 1]], "r": [[100000]]}
    write(directory / "data.pkl", (split, split, split))
    with pytest.raises(UserError, match=r"train holds ids from 100000 to 100000, but .*rows 0 to"):
        load_dataset(directory)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{}, {}], r"expected a tuple \(train, dev, test\)"),
        ([{}, {}, {}], "expected train to be a dict with y, c and r"),
        ([{"y": [1], "c": [], "r": []}] * 3, "equally long. Received: 1, 0, 0"),
        ([{"y": [7], "c": [[3]], "r": [[3]]}] * 3, "labels of train to be 0 or 1"),
        ([{"y": [1], "c": ["ab"], "r": [[3]]}] * 3, "expected lists of ids in train"),
        ([{"y": 1, "c": [], "r": []}] * 3, "expected lists of ids in train"),
        ([{"y": [1], "c": [[2**40]], "r": [[3]]}] * 3, "expected lists of ids in train"),
        ([{"y": [1], "c": [[3]], "r": [[3]]}] * 3, "expected contexts of train to hold the id of _EOS_"),
    ],
)
def test_malformed_data_is_refused(directory, data, message):
    write(directory / "data.pkl", tuple(data))
    with pytest.raises(UserError, match=message):
        load_dataset(directory)


@pytest.mark.parametrize("vectors", [[[0.0, float("nan")]], [1.0, 2.0], [["a"]], []])
def test_malformed_vectors_are_refused(directory, vectors):
    write(directory / "word_embedding.pkl", vectors)
    with pytest.raises(UserError, match=r"word_embedding\.pkl: expected"):
        load_dataset(directory)


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"task": "reading"})])
def test_malformed_facts_are_refused(directory, text):
    (directory / "dataset.json").write_text(text)
    with pytest.raises(UserError, match=r"dataset\.json: expected"):
        load_dataset(directory)
