"""`tasks.selection.data`: a prepared directory as a pickle or as arrays."""

import json
import pickle
import re
import shutil
from unittest.mock import patch

import numpy as np
import pytest
from helpers import refusal, write_smn, written

from colloquy.tasks.selection.data import (
    build_split,
    load_dataset,
    path_of,
    read_split,
    split_arrays,
)
from colloquy.tasks.selection.prepare import Settings, prepare
from colloquy.tasks.selection.split import SelectionSplit

SMALL = {"name": "sample", "dimension": 5, "word2vec_epochs": 1}
WHITESPACE = {"tokenizer": "whitespace", "lower": False}
WORDS = 1000


@pytest.fixture
def directory(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "prepared")


def test_reads_what_prepare_wrote(prepared, directory):
    dataset = load_dataset(prepared)
    assert dataset.vectors.shape == (len(dataset.vocabulary) + 1, 7)
    for name, split in dataset.splits.items():
        lines = (prepared.parent / "raw" / f"{name}.txt").read_text().splitlines()
        assert split.label.tolist() == [int(line[0]) for line in lines]
        lengths = [len(line.split("\t")[-1].split()) for line in lines]
        assert split.responses.lengths.tolist() == lengths
    metadata = {"eos_id": 1, "unk_id": 2, "hashed_words": 0, "text": WHITESPACE}
    expected = {"path": str(prepared.resolve()), "name": "sample", **metadata}
    assert dataset.metadata() == expected

    file = directory / "dataset.json"
    text = {"tokenizer": "terms", "lower": True}
    written(file, json.dumps({**json.loads(file.read_text()), "text": text}))
    assert load_dataset(directory).text == text


def test_vectors_have_one_row_per_word_and_one_of_padding(directory):
    words = len((directory / "vocabulary.txt").read_text().splitlines())
    vectors = np.zeros((words, 7), "float32")
    (directory / "word_embedding.pkl").write_bytes(pickle.dumps(vectors, protocol=2))
    expected = f"word_embedding.pkl should have shape ({words + 1}, dimension)"
    assert f"{words} words, so {expected}. Received: ({words}, 7)" in refusal(
        load_dataset, directory
    )


# === Arrays ===


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus prepared as a pickle and as arrays."""
    root = tmp_path_factory.mktemp("corpus")
    write_smn(root / "raw")
    prepare("smn", root / "raw", root / "pickle", Settings(**SMALL))
    with patch("colloquy.tasks.selection.prepare.LARGEST_PICKLE", 0):
        prepare("smn", root / "raw", root / "arrays", Settings(**SMALL))
    return root


def test_arrays_hold_what_the_pickle_holds(corpus):
    assert not (corpus / "arrays" / "data.pkl").exists()
    assert not (corpus / "pickle" / "arrays").exists()
    pickled = load_dataset(corpus / "pickle")
    flat = load_dataset(corpus / "arrays")
    np.testing.assert_array_equal(flat.vectors, pickled.vectors)
    for name, split in pickled.splits.items():
        other = flat.splits[name]
        assert other.texts(range(len(split)), 1) == split.texts(range(len(split)), 1)
        for field in ("context", "label", "context_start", "context_turns"):
            np.testing.assert_array_equal(getattr(other, field), getattr(split, field))
        assert other.turns.ids.dtype == split.turns.ids.dtype == np.uint16
        assert isinstance(other.turns.ids.base, np.memmap)


def test_the_arrays_of_a_split_build_it_again():
    contexts = [[5, 6, 1, 1, 7, 1], [5, 6, 1, 1, 7, 1], [3, 1]]
    split = SelectionSplit.of(contexts, [[8], [], [9, 9]], [1, 0, 1], eos_id=1)
    arrays = split_arrays(split, 2**16 + 1)
    assert arrays["turn_ids"].dtype == np.uint32
    assert arrays["turn_ids"].tolist() == [5, 6, 7, 3]
    assert arrays["turn_lengths"].tolist() == [2, 0, 1, 1]
    assert arrays["context_turns"].tolist() == [3, 1]
    assert arrays["context_lines"].tolist() == [2, 1]
    built = build_split(arrays, "split", 10)
    assert built.texts([0, 1, 2], 1) == split.texts([0, 1, 2], 1)
    assert built.context.tolist() == split.context.tolist() == [0, 0, 1]


def set_last(value):
    def change(array):
        array[-1] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("turn_ids", set_last(WORDS), rf"from 0 to {WORDS - 1}\. Received: {WORDS}"),
        ("turn_ids", lambda array: array.astype("float32"), "array of whole numbers"),
        ("turn_ids", lambda array: array[:, None], "array of whole numbers"),
        ("label", set_last(2), r"from 0 to 1\. Received: 2"),
        ("label", lambda array: array[1:], r"expected [0-9,]+, the number of label, as sum"),
        ("label", None, r"label\.npy: expected an array\. Received: No such file"),
        ("turn_lengths", set_last(1000), "the number of turn_ids, as sum of turn_lengths"),
        ("response_lengths", set_last(-1), "Received: -1"),
        ("context_turns", set_last(1000), "the number of turn_lengths, as sum"),
        ("context_lines", lambda array: np.append(array, 0), "must be equally long"),
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
    assert re.search(rf"train\W.*{message}", refusal(read_split, arrays, "train", WORDS))
