"""`data.sequences` against loops from the definitions."""

import numpy as np
import pytest

from data.sequences import Sequences, document_frequency


@pytest.mark.parametrize("width", (1, 2, 3, 5, 7, 11))
def test_padded_matches_loops(width):
    rng = np.random.default_rng(1)
    lists = [rng.integers(1, 97, length).tolist() for length in (3, 0, 7, 1, 5, 0)]
    index = rng.integers(-1, len(lists), (2, 3, 5))
    found = Sequences.of(lists).padded(index, width)
    assert found.dtype == np.int32 and found.shape == (2, 3, 5, width)
    for at in np.ndindex(index.shape):
        last = lists[index[at]][-width:] if index[at] >= 0 else []
        assert found[at].tolist() == last + [0] * (width - len(last))


def test_padded_of_empty_lists_is_zero():
    found = Sequences.of([[], []]).padded(np.array([0, -1, 1]), 2)
    assert found.tolist() == [[0, 0]] * 3 and found.dtype == np.int32


@pytest.mark.parametrize("lists", [[[4, 5], [], [6], []], [[]], []])
def test_lists_are_those_it_was_made_of(lists):
    assert Sequences.of(lists).lists() == lists


def test_document_frequency_matches_loops():
    rng = np.random.default_rng(2)
    lists = [rng.integers(0, 11, rng.integers(0, 7)).tolist() for _ in range(53)]
    for part in Sequences.of(lists).parts(7):
        documents = part.lists()
        assert part.owners().tolist() == [number for number, ids in enumerate(documents) for _ in ids]
        found = document_frequency(part.owners(), part.flat(), 13)
        assert found.tolist() == [sum(id in ids for ids in documents) for id in range(13)]
