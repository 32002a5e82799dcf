"""`tasks.selection.data`: a prepared directory is read, or refused."""

import json
import shutil

import numpy as np
import pytest
from helpers import written

from colloquy.tasks.selection.data import load_dataset, path_of, read_split, write_split
from colloquy.tasks.selection.split import SelectionSplit

WHITESPACE = {"tokenizer": "whitespace", "lower": False}


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
        assert isinstance(split.turns.ids.base, np.memmap) and split.turns.ids.dtype == np.uint16
    metadata = {"eos_id": 1, "unk_id": 2, "hashed_words": 0, "text": WHITESPACE}
    expected = {"path": str(prepared.resolve()), "name": "sample", **metadata}
    assert dataset.metadata() == expected

    file = directory / "dataset.json"
    text = {"tokenizer": "terms", "lower": True}
    written(file, json.dumps({**json.loads(file.read_text()), "text": text}))
    assert load_dataset(directory).text.to_json() == text


def test_the_arrays_of_a_split_build_it_again(tmp_path):
    contexts = [[5, 6, 1, 1, 7, 1], [5, 6, 1, 1, 7, 1], [3, 1]]
    split = SelectionSplit.of(contexts, [[8], [], [9, 9]], [1, 0, 1], eos_id=1)
    write_split(split, tmp_path, "dev", 2**16 + 1)
    assert np.load(path_of(tmp_path, "dev", "turn_ids")).dtype == np.uint32
    assert np.load(path_of(tmp_path, "dev", "context_lines")).tolist() == [2, 1]
    built = read_split(tmp_path, "dev", 10)
    assert built.turns.lists() == split.turns.lists() == [[5, 6], [], [7], [3]]
    assert built.responses.lists() == [[8], [], [9, 9]]
    assert built.context_turns.tolist() == split.context_turns.tolist() == [3, 1]
    assert built.context_start.tolist() == split.context_start.tolist() == [0, 3]
    assert built.context.tolist() == split.context.tolist() == [0, 0, 1]
    assert built.label.tolist() == [1, 0, 1]
