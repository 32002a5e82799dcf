"""`tasks.selection.data`: the same examples as in `data.pkl`, and nothing that lies beyond the files."""

import shutil
import types

import numpy as np
import pytest

from base.files import UserError
from data import pickles
from data.samples.selection import write_smn
from tasks.selection import prepare as prepare_module
from tasks.selection.data import load_dataset, path_of, read_split
from tasks.selection.prepare import Settings, prepare
from tasks.selection.split import inputs_of, training_batches

SMALL = {"name": "sample", "dimension": 5, "word2vec_epochs": 1}
WORDS = 1000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus prepared as a pickle, as arrays, and as both."""
    root = tmp_path_factory.mktemp("corpus")
    write_smn(root / "raw", count=60, seed=3, held_out=11)
    for storage in ("pickle", "arrays", "both"):
        prepare("smn", root / "raw", root / storage, Settings(**SMALL, storage=storage))
    return root


@pytest.fixture
def arrays(corpus, tmp_path):
    return shutil.copytree(corpus / "arrays" / "arrays", tmp_path / "arrays")


def as_lists(split):
    contexts, responses = split.texts(range(len(split)), 1)
    return contexts, responses, split.label.tolist()


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


@pytest.mark.parametrize("negatives", ["file", "fresh"])
def test_training_takes_the_same_batches_of_arrays(corpus, negatives):
    config = types.SimpleNamespace(max_turns=3, max_words=5, masking="exact")
    training = types.SimpleNamespace(negatives=negatives, negatives_per_positive=2, loss="softmax", batch_size=7)
    batches = {}
    for storage in ("pickle", "arrays"):
        split = load_dataset(corpus / storage).splits["train"]
        epoch = training_batches(split, config, training, np.random.default_rng(2))
        batches[storage] = [(inputs_of(split, config, *batch[:2], 4), batch[2]) for batch in epoch]
    assert len(batches["pickle"]) > 5
    for (inputs, labels), (flat_inputs, flat_labels) in zip(*batches.values(), strict=True):
        np.testing.assert_array_equal(flat_labels, labels, strict=True)
        for name, ids in inputs.items():
            np.testing.assert_array_equal(flat_inputs[name], ids, strict=True)


def test_a_large_corpus_has_arrays_by_itself(corpus, tmp_path, monkeypatch):
    lines = sum(len(split) for split in load_dataset(corpus / "pickle").splits.values())
    for limit, name in ((lines, "data.pkl"), (lines - 1, "arrays")):
        monkeypatch.setattr(prepare_module, "PICKLED", limit)
        prepare("smn", corpus / "raw", tmp_path / name, Settings(**SMALL))
        assert {"data.pkl", "arrays"} & {file.name for file in (tmp_path / name).iterdir()} == {name}


def test_texts_beyond_the_cache_and_blocks_are_the_same(corpus, tmp_path, monkeypatch):
    """Words come from a file in parts, whichever these are."""
    monkeypatch.setattr("tasks.selection.ingest.CACHED", 3)
    monkeypatch.setattr("tasks.selection.ingest.BLOCK", 50)
    monkeypatch.setattr("tasks.selection.ingest.UTTERANCES", 7)
    monkeypatch.setattr("data.flat_arrays.BLOCK", 13)
    prepare("smn", corpus / "raw", tmp_path / "out", Settings(**SMALL, storage="pickle"))
    for file in (corpus / "pickle").iterdir():
        assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes()


def rewrite(directory, name, change):
    file = path_of(directory, "train", name)
    np.save(file, change(np.load(file)))


def put(value, at=-1):
    def change(array):
        array = array.copy()
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ids", put(WORDS), rf"from 0 to {WORDS - 1}\. Received: {WORDS}"),
        ("ids", lambda array: array.astype("int64"), r"expected uint16 or uint32\. Received: int64"),
        ("label", put(2), r"from 0 to 1\. Received: 2"),
        ("label", put(-1), r"from 0 to 1\. Received: -1"),
        ("label", lambda array: array[1:], r"expected [0-9,]+ numbers\. Received: "),
        ("context", put(10**6), r"Received: 1000000"),
        ("context", put(0), r"expected numbers that do not fall"),
        ("turn_starts", put(-1), r"Received: -1"),
        ("turn_starts", put(2**63 - 1), r"Received: 9223372036854775807"),
        ("turn_lengths", put(1000), r"turn_starts.npy: expected lists that end at \d+ at most"),
        ("response_lengths", put(-1, 3), r"Received: -1"),
        ("response_starts", lambda array: array[:-1], r"expected [0-9,]+ numbers"),
        ("context_turns", put(1000), r"context_start.npy: expected lists that end at \d+ at most"),
    ],
)
def test_arrays_that_contradict_each_other_are_refused(arrays, name, change, message):
    read_split(arrays, "train", WORDS)
    rewrite(arrays, name, change)
    with pytest.raises(UserError, match=rf"train\..*{message}"):
        read_split(arrays, "train", WORDS)


def test_a_missing_array_is_named(corpus, tmp_path):
    shutil.copytree(corpus / "arrays", tmp_path / "copy")
    path_of(tmp_path / "copy" / "arrays", "dev", "label").unlink()
    with pytest.raises(UserError, match=r"dev\.label\.npy: expected an array\. Received: No such file"):
        load_dataset(tmp_path / "copy")
