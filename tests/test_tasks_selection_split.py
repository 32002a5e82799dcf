"""`tasks.selection.split` against loops from the definitions."""

import numpy as np
import pytest

from data.sequences import Sequences
from tasks.selection.split import SelectionSplit

EOS = 1


def split_in_loops(context):
    """DAM's release: one turn an `_EOS_`, what follows the last is a turn if it has a word."""
    turns, turn = [], []
    for word in context:
        if word == EOS:
            turns.append(turn)
            turn = []
        else:
            turn.append(word)
    return [*turns, turn] if turn else turns


def padded_in_loops(lists, width):
    return [ids[-width:] + [0] * (width - len(ids[-width:])) for ids in lists]


def collate_in_loops(contexts, candidates, max_turns, max_words, multiple):
    """Batch of contexts (lists of turns) and candidates (lists of responses, None: none)."""
    kept = [turns[-max_turns:] for turns in contexts]
    candidates = [[ids or [] for ids in row] for row in candidates]
    T = max([1, *(len(turns) for turns in kept)])

    def width(lists):
        longest = max([1, *(len(ids) for ids in lists)])
        while longest % multiple:
            longest += 1
        return min(longest, max_words)

    K = width([turn for turns in kept for turn in turns])
    J = width([ids for row in candidates for ids in row])
    return {
        "turns": [padded_in_loops(turns + [[]] * (T - len(turns)), K) for turns in kept],
        "responses": [padded_in_loops(row, J) for row in candidates],
    }


def corpus(seed, contexts=13, longest=29, share_of_eos=0.3):
    """`c, r, y` of a `data.pkl`: consecutive lines share a context, some texts are empty."""
    rng = np.random.default_rng(seed)
    c, r, y = [], [], []
    for _ in range(contexts):
        words = rng.integers(2, 97, rng.integers(0, longest))
        context = np.where(rng.random(len(words)) < share_of_eos, EOS, words).tolist()
        for _ in range(rng.integers(1, 4)):
            c.append(list(context))
            r.append(rng.integers(2, 97, rng.integers(0, 11)).tolist())
            y.append(int(rng.integers(2)))
    return c, r, y


# === Turns ===


@pytest.mark.parametrize(
    "context, turns",
    [
        ([], []),
        ([5], [[5]]),
        ([5, 1], [[5]]),
        ([5, 1, 1], [[5], []]),
        ([1, 5], [[], [5]]),
        ([5, 6, 1, 1, 7, 1], [[5, 6], [], [7]]),
        ([1], [[]]),
        ([1, 1], [[], []]),
    ],
)
def test_a_context_loses_one_empty_turn_at_the_end(context, turns):
    split = SelectionSplit.of([context], [[7]], [1], EOS)
    assert split.turns.lists() == turns == split_in_loops(context)
    assert split.context_turns.tolist() == [len(turns)]


def test_any_id_may_end_a_turn():
    assert SelectionSplit.of([[28270, 1, 28270]], [[7]], [1], 28270).turns.lists() == [[], [1]]


# === Sequences ===


@pytest.mark.parametrize("width", (1, 2, 3, 5, 7, 11))
def test_sequences_padded_matches_loops(width):
    rng = np.random.default_rng(1)
    lists = [rng.integers(1, 97, length).tolist() for length in (3, 0, 7, 1, 5, 0)]
    index = rng.integers(-1, len(lists), (2, 3, 5))
    found = Sequences.of(lists).padded(index, width)
    assert found.dtype == np.int32 and found.shape == (2, 3, 5, width)
    for at in np.ndindex(index.shape):
        chosen = lists[index[at]] if index[at] >= 0 else []
        assert [found[at].tolist()] == padded_in_loops([chosen], width)


def test_sequences_padded_keeps_the_tail():
    assert Sequences.of([[4, 5, 6, 7]]).padded(np.array([0]), 3).tolist() == [[5, 6, 7]]


def test_sequences_padded_of_empty_lists_is_zero():
    found = Sequences.of([[], []]).padded(np.array([0, -1, 1]), 2)
    assert found.tolist() == [[0, 0]] * 3 and found.dtype == np.int32


@pytest.mark.parametrize("lists", [[[4, 5], [], [6], []], [[]], []])
def test_sequences_lists_are_those_it_was_made_of(lists):
    assert Sequences.of(lists).lists() == lists


# === SelectionSplit ===


def test_split_of_matches_loops():
    c, r, y = corpus(2)
    split = SelectionSplit.of(c, r, y, EOS)
    turns = split.turns.lists()
    for line, (context, response, label) in enumerate(zip(c, r, y, strict=True)):
        start = split.context_start[split.context[line]]
        count = split.context_turns[split.context[line]]
        assert turns[start : start + count] == split_in_loops(context)
        assert split.responses.lists()[line] == response
        assert split.label[line] == label
    assert split.label.dtype == np.int32


def test_split_of_shares_equal_contexts_of_consecutive_lines_alone():
    c = [[5, 1], [5, 1], [6, 1], [5, 1], [], []]
    split = SelectionSplit.of(c, [[7]] * 6, [1] * 6, EOS)
    assert split.context.tolist() == [0, 0, 1, 2, 3, 3]
    assert split.context_turns.tolist() == [1, 1, 1, 0]
    assert split.context_start.tolist() == [0, 1, 2, 3]
    assert split.turns.lists() == [[5], [6], [5]]


@pytest.mark.parametrize("max_turns, max_words", [(1, 1), (2, 3), (3, 2), (9, 50)])
@pytest.mark.parametrize("multiple", (1, 4, 7))
def test_collate_matches_loops(max_turns, max_words, multiple):
    for seed in range(7):
        c, r, y = corpus(seed)
        split = SelectionSplit.of(c, r, y, EOS)
        rng = np.random.default_rng(seed)
        lines = rng.integers(0, len(c), 5)
        responses = rng.integers(-1, len(r), (5, 3))
        found = split.collate(split.context[lines], responses, max_turns, max_words, multiple)
        expected = collate_in_loops(
            [split_in_loops(c[line]) for line in lines],
            [[r[i] if i >= 0 else None for i in row] for row in responses],
            max_turns,
            max_words,
            multiple,
        )
        assert {name: ids.tolist() for name, ids in found.items()} == expected
        assert all(ids.dtype == np.int32 for ids in found.values())


def test_collate_keeps_the_last_turns_and_words():
    split = SelectionSplit.of([[2, 1, 3, 4, 5, 1, 6, 1]], [[7, 8, 9]], [1], EOS)
    batch = split.collate(np.array([0]), np.array([[0]]), max_turns=2, max_words=2)
    assert batch["turns"].tolist() == [[[4, 5], [6, 0]]]
    assert batch["responses"].tolist() == [[[8, 9]]]


def test_collate_keeps_empty_turns():
    split = SelectionSplit.of([[1, 3, 1, 1, 4, 1, 1], [5, 1]], [[7]] * 2, [1, 0], EOS)
    batch = split.collate(np.array([0, 1]), np.array([[0], [1]]), max_turns=9, max_words=50)
    assert batch["turns"].tolist() == [[[0], [3], [0], [4], [0]], [[5], [0], [0], [0], [0]]]


def test_collate_of_contexts_without_a_turn_gives_one_empty_turn():
    split = SelectionSplit.of([[], [5, 1]], [[7], []], [1, 0], EOS)
    batch = split.collate(np.array([0]), np.array([[1, -1]]), max_turns=9, max_words=50)
    assert batch["turns"].tolist() == [[[0]]] and batch["responses"].tolist() == [[[0], [0]]]


def test_collate_of_a_split_without_a_turn_gives_one_empty_turn():
    split = SelectionSplit.of([[]], [[7]], [1], EOS)
    batch = split.collate(np.array([0]), np.array([[0]]), max_turns=9, max_words=50)
    assert batch["turns"].tolist() == [[[0]]] and batch["responses"].tolist() == [[[7]]]


@pytest.mark.parametrize("multiple, max_words, width", [(1, 50, 5), (4, 50, 8), (5, 50, 5), (4, 7, 7), (4, 3, 3)])
def test_collate_rounds_widths_up_to_a_multiple(multiple, max_words, width):
    split = SelectionSplit.of([[2, 3, 4, 5, 6, 1, 7, 1]], [[8] * 5, [9] * 30], [1, 0], EOS)
    batch = split.collate(np.array([0]), np.array([[0, -1]]), 9, max_words, multiple)
    assert batch["turns"].shape == (1, 2, width)
    assert batch["responses"].shape == (1, 2, width)  # the long response is not in this batch
