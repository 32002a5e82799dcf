"""`tasks.selection.data`: what a prepared directory must hold."""

import json
import pickle
import shutil

import numpy as np
import pytest

from base.files import UserError
from tasks.selection.data import load_dataset


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
        "hashed_words": 0,
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


def test_reads_the_releases_word2id_in_any_order(tmp_path):
    split = {"y": [1, 0], "c": [[3, 9, 4, 9], [3, 9, 4, 9]], "r": [[5], [6, 7]]}
    write(tmp_path / "data.pkl", (split, split, split))
    write(tmp_path / "word_embedding.pkl", np.zeros((10, 3)))
    (tmp_path / "word2id").write_text("".join(f"word{id}\t{id}\n" for id in (7, 2, 4, 1, 3, 8, 5)) + "_EOS_\t9\n")
    vocabulary = load_dataset(tmp_path, eos_id=9).vocabulary
    assert (vocabulary.eos_id, vocabulary.unk_id, len(vocabulary)) == (9, 0, 9)
    assert vocabulary.encode(["word8", "word5", "_EOS_", "word6"]) == [8, 5, 0, 0]
    (tmp_path / "vocabulary.txt").write_text("".join(f"word{id}\n" for id in range(1, 9)) + "_EOS_\n")
    assert load_dataset(tmp_path, eos_id=9).vocabulary.eos_id == 9
    with pytest.raises(UserError, match=r"vocabulary\.txt: expected _EOS_ to be word 4\. Received: word 9"):
        load_dataset(tmp_path, eos_id=4)


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
        ([{"y": [7], "c": [[3]], "r": [[3]]}] * 3, "labels of train to be 0 or 1. Received: 7"),
        ([{"y": [0.9], "c": [[3]], "r": [[3]]}] * 3, r"labels of train to be 0 or 1. Received: 0\.9"),
        (
            [{"y": ["x" * 999], "c": [[3]], "r": [[3]]}] * 3,
            r"labels of train to be 0 or 1. Received: 'x{12}\.\.\.x{13}'$",
        ),
        ([{"y": [[1]], "c": [[3]], "r": [[3]]}] * 3, r"labels of train to be 0 or 1. Received: \[1\]"),
        ([{"y": [10**400], "c": [[3]], "r": [[3]]}] * 3, "labels of train to be 0 or 1. Received: 1000"),
        ([{"y": [1], "c": [[5.7]], "r": [[3]]}] * 3, "expected lists of ids in train. 'float' object"),
        ([{"y": [1], "c": [[3]], "r": [[np.float32(5.7)]]}] * 3, "expected lists of ids in train. 'numpy.float32'"),
        ([{"y": [1], "c": [np.ones((2, 2))], "r": [[3]]}] * 3, "expected lists of ids in train."),
        ([{"y": [1], "c": [[[3], 1]], "r": [[3]]}] * 3, "expected lists of ids in train. 'list' object"),
        ([{"y": [1], "c": [{3: 1}], "r": [[3]]}] * 3, "expected lists of ids in train. lists of ids .* Received: dict"),
        ([{"y": [1], "c": {0: [3]}, "r": [[3]]}] * 3, "expected lists of ids in train. "),
        ([{"y": [1], "c": [b"ab"], "r": [[3]]}] * 3, "lists of ids are needed. Received: bytes"),
        ([{"y": [1], "c": [[10**400]], "r": [[3]]}] * 3, "expected lists of ids in train. "),
        ([{"y": [1], "c": [[3]], "r": [{3}]}] * 3, "refused the name '__builtin__.set' in it"),
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


def test_a_context_in_itself_is_refused(directory):
    context = [3, 1]
    context.append(context)
    write(directory / "data.pkl", ({"y": [1], "c": [context], "r": [[3]]},) * 3)
    with pytest.raises(UserError, match="a list that takes more after it was referred to"):
        load_dataset(directory)


def test_one_list_many_times_is_stored_once(directory):
    """The same object, as in what prepare.py writes, or one list after every other; more than that is refused."""
    first, second, response = [3, 4, 1, 5, 1], [6, 1], [3, 3, 5]
    contexts = [first, second, first, first, second] * 70
    split = {"y": [1] * 350, "c": contexts, "r": [response] * 350}
    write(directory / "data.pkl", (split, split, split))
    found = load_dataset(directory).splits["train"]
    assert len(found.responses.ids) == 3 and len(found.turns.ids) == 7
    assert found.texts(range(350), 1) == (contexts, [response] * 350)
    assert found.context.tolist()[:6] == [0, 1, 2, 2, 3, 4]
    many = [3, 1] * 15_000
    write(directory / "data.pkl", ({"y": [1] * 30_000, "c": [many] * 30_000, "r": [[3]] * 30_000},) * 3)
    with pytest.raises(UserError, match="references to more than"):
        load_dataset(directory)


@pytest.mark.parametrize("labels", [["1", "0"], (1, 0), np.array([1, 0]), np.array([True, False])])
def test_labels_may_be_any_zeros_and_ones(directory, labels):
    contexts, responses = ([3, 1], np.array([3, 4, 1])), [(3,), np.array([4, 5], "u2")]
    split = {"y": labels, "c": contexts, "r": responses}
    write(directory / "data.pkl", (split, split, split))
    found = load_dataset(directory).splits["train"]
    assert found.label.tolist() == [1, 0] and found.label.dtype == np.int32
    assert found.texts([0, 1], 1) == ([[3, 1], [3, 4, 1]], [[3], [4, 5]])


@pytest.mark.parametrize("eos_id", ["1", 1.0, True, [1], None, 10**400, 1e400])
def test_an_eos_id_of_another_kind_is_refused(directory, eos_id):
    facts = json.loads((directory / "dataset.json").read_text())
    (directory / "dataset.json").write_text(json.dumps({**facts, "eos_id": eos_id}))
    with pytest.raises(
        UserError, match="give --eos_id" if eos_id is None else r"an id of _EOS_ from 1 to \d+\. Received: "
    ):
        load_dataset(directory)


def test_vectors_in_any_order_of_axes_are_read(directory):
    vectors = load_dataset(directory).vectors
    for protocol in (2, 4, 5):
        for layout in (vectors, np.asfortranarray(vectors), vectors.T.copy().T, vectors.astype(">f8")):
            (directory / "word_embedding.pkl").write_bytes(pickle.dumps(layout, protocol))
            np.testing.assert_array_equal(load_dataset(directory).vectors, vectors, strict=True)


def same_row(count):
    row = [0.5] * count
    return [row] * count


@pytest.mark.parametrize(
    "vectors",
    [
        [[0.0, float("nan")]],
        [1.0, 2.0],
        [["a"]],
        [["1.5"]],
        [],
        [[]],
        [[[1.0]]],
        [[1.0], [1.0, 2.0]],
        [[1e300]],
        [[10**400]],
        [[1.0, None]],
        {"a": [1.0]},
        "text",
        3,
        np.zeros((3, 2), complex),
        same_row(3000),
    ],
)
def test_malformed_vectors_are_refused(directory, vectors):
    write(directory / "word_embedding.pkl", vectors)
    with pytest.raises(UserError, match=r"word_embedding\.pkl: expected"):
        load_dataset(directory)


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"task": "reading"}), "[" * 100_000])
def test_malformed_facts_are_refused(directory, text):
    (directory / "dataset.json").write_text(text)
    with pytest.raises(UserError, match=r"dataset\.json: expected"):
        load_dataset(directory)
