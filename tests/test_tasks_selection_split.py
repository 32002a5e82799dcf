"""`tasks.selection.split` against loops from the definitions."""

import types

import numpy as np
import pytest

from base.files import UserError
from tasks.selection import split as module
from tasks.selection.split import SelectionSplit, training_batches
from tasks.selection.task import Training

EOS = 1
SIZES = types.SimpleNamespace(max_turns=3, max_words=4)


def split_in_loops(context):
    """DAM's release: one turn per `_EOS_`; what follows the last is a turn if it has a word."""
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


# === SelectionSplit ===


def test_split_of_matches_loops_and_equal_contexts_of_consecutive_lines_are_one():
    c, r, y = corpus(2)
    split = SelectionSplit.of(c, r, y, EOS)
    turns = split.turns.lists()
    assert [turns[split.turns_of(number)] for number in split.context] == [split_in_loops(context) for context in c]
    assert split.responses.lists() == r
    assert split.label.tolist() == y and split.label.dtype == np.int32
    split = SelectionSplit.of([[5, 1], [5, 1], [6, 1], [5, 1], [], []], [[7]] * 6, [1] * 6, EOS)
    assert split.context.tolist() == [0, 0, 1, 2, 3, 3]
    assert split.context_turns.tolist() == [1, 1, 1, 0]
    assert split.context_start.tolist() == [0, 1, 2, 3]
    assert split.turns.lists() == [[5], [6], [5]]


@pytest.mark.parametrize(("max_turns", "max_words"), [(2, 3), (9, 50)])
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
            *(max_turns, max_words, multiple),
        )
        assert {name: ids.tolist() for name, ids in found.items()} == expected
        assert all(ids.dtype == np.int32 for ids in found.values())


# === Training ===


def make_split(sizes=(2, 3, 2), positives=1):
    """A context for each of `sizes`, its number of lines, of which the first `positives` are positive."""
    rng = np.random.default_rng(0)
    texts = [[*rng.integers(3, 90, 3 + i % 3), EOS, *rng.integers(3, 90, 2), EOS] for i in range(len(sizes))]
    contexts = [texts[i] for i, size in enumerate(sizes) for _ in range(size)]
    responses = [rng.integers(3, 90, rng.integers(1, 6)).tolist() for _ in contexts]
    return SelectionSplit.of(contexts, responses, [int(j < positives) for size in sizes for j in range(size)], EOS)


def batches_of(split, seed=1, **training):
    return training_batches(split, SIZES, Training(batch_size=7, **training), np.random.default_rng(seed))


def drawn(split, **options):
    """`{(lines of the candidates): (context, labels)}` of all examples of an epoch."""
    return {
        tuple(lines): (int(context), labels.tolist())
        for batch in batches_of(split, **options)
        for context, lines, labels in zip(*batch, strict=True)
    }


def test_negatives_of_the_file():
    every_line = {(0,): (0, [1]), (1,): (0, [0]), (2,): (1, [1]), (3,): (1, [0]), (4,): (1, [0]), (5,): (2, [1])}
    assert drawn(make_split()) == {**every_line, (6,): (2, [0])}
    split = make_split(sizes=(2, 3, 2, 1))  # the last context has nothing to compare
    with_positive = {(0, 1): (0, [1, 0]), (2, 3, 4): (1, [1, 0, 0]), (5, 6): (2, [1, 0])}
    assert drawn(split, loss="softmax") == with_positive


def test_fresh_negatives_are_other_lines_positives_of_other_words_and_differ_by_epoch():
    split = make_split(sizes=(2,) * 40)
    options = {"negatives": "fresh", "negatives_per_positive": 3, "loss": "softmax"}
    found = drawn(split, **options)
    assert sorted(lines[0] for lines in found) == list(range(0, 80, 2))
    assert all(line % 2 == 0 and line != lines[0] for lines in found for line in lines[1:])
    assert all(found[lines] == (lines[0] // 2, [1, 0, 0, 0]) for lines in found)
    assert drawn(split, **options) == found != drawn(split, seed=2, **options)
    split = SelectionSplit.of([[3, EOS], [4, EOS], [5, EOS], [6, EOS]], [[7], [7], [7], [8]], [1] * 4, EOS)
    lines = np.array([0] * 50)
    found = split.draw_negatives(lines, lines[:1], 1, np.random.default_rng(0))
    assert found.tolist() == [[0]] * 50  # only line 0 is in the pool: there are no other words
    found = split.draw_negatives(np.arange(4), np.arange(4), 1, np.random.default_rng(0))
    assert found[:3, 0].tolist() == [3, 3, 3] and found[3, 0] in (0, 1, 2)


@pytest.mark.parametrize(
    ("split", "training", "message"),
    [
        (make_split(positives=0), {"negatives": "fresh"}, "no line with label 1"),
        (make_split(sizes=(1, 1)), {"loss": "softmax"}, "contexts with both labels"),
    ],
)
def test_a_split_without_something_to_compare_is_refused(split, training, message):
    with pytest.raises(UserError, match=message):
        batches_of(split, **training)


@pytest.mark.parametrize("loss, negatives", [("pointwise", "file"), ("softmax", "file"), ("softmax", "fresh")])
def test_an_epoch_has_every_example_once_and_any_batch_of_it_alone(monkeypatch, loss, negatives):
    monkeypatch.setattr(module, "POOL", 3)
    split = make_split(sizes=(2, 3) * 19)

    def epoch(seed=5):
        return batches_of(split, seed, loss=loss, negatives=negatives)

    every = list(epoch())
    lines = np.concatenate([responses[:, 0] for _, responses, _ in every])
    expected = range(95) if loss == "pointwise" else np.flatnonzero(split.label == 1)
    assert sorted(lines) == list(expected) and lines.tolist() != sorted(lines)
    assert len(epoch()) == len(epoch(6)) == len(every) > 3
    for at in (len(every) - 1, 0, 4):
        np.testing.assert_equal(epoch()[at], every[at])
    assert lines.tolist() != np.concatenate([responses[:, 0] for _, responses, _ in epoch(6)]).tolist()
