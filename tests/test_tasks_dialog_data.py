"""`tasks.dialog.data` and `tasks.dialog.dataset`: dialogs in memory, their batches, and the world they are about."""

import numpy as np
import pytest

from tasks.dialog.data import DialogSplit, Sentences, stack

FIELDS = ["words", "typed_words", "sentences", "speakers", "times", "turns", "mentions"]
E = 7  # entities


# === Dialogs and batches ===


def test_stack_pads_at_the_end():
    np.testing.assert_array_equal(stack([[5], [], [7, 8, 9]]), [[5, 0, 0], [0, 0, 0], [7, 8, 9]])
    assert stack([[], []]).shape == (2, 1) and stack([]).shape == (0, 1)
    assert stack([[5]]).dtype == np.int32


PLAIN = [[11, 12, 13], [14], [15, 16, 17, 18, 19], [20, 21]]
TYPED = [[11, 12, 13], [91], [15, 16, 92, 19], [20, 21]]
MENTIONED = [[], [1, 7], [3], []]
DIALOGS = [
    {"sentences": [3, 1], "speakers": [1, 2], "times": [0, 0], "turns": [0], "answers": [6]},
    {
        "sentences": [0, 1, 3, 3, 2, 1],
        "speakers": [3, 1, 2, 1, 2, 3],
        "times": [0, 0, 0, 1, 1, 1],
        "turns": [1, 3],
        "answers": [5, 0],
    },
    {
        "sentences": [1, 2, 0],
        "speakers": [1, 2, 1],
        "times": [0, 0, 1],
        "turns": [0, 2],
        "answers": [2, 6],
    },
]


@pytest.fixture
def split():
    return DialogSplit(Sentences(stack(PLAIN), stack(TYPED), stack(MENTIONED)), DIALOGS)


def test_split_knows_its_responses(split):
    assert len(split) == 3
    assert split.answers.tolist() == [6, 5, 0, 2, 6]
    assert split.dialog.tolist() == [0, 1, 1, 2, 2]
    assert split.sizes.tolist() == [[2, 1], [6, 2], [3, 2]]
    assert split.sentences.lengths.tolist() == [3, 1, 5, 2]


def test_an_absent_split_is_empty(split):
    empty = DialogSplit(split.sentences, [])
    assert len(empty) == 0
    assert empty.answers.shape == empty.dialog.shape == (0,)
    assert empty.sizes.shape == (0, 2)


@pytest.mark.parametrize("rows", [[0], [1], [2, 0], [0, 1, 2]])
@pytest.mark.parametrize("multiple", [1, 5])
def test_collate_matches_loops(split, rows, multiple):
    inputs, answers = split.collate(rows, FIELDS, E, multiple)
    chosen = [DIALOGS[row] for row in rows]

    def size(longest):
        return next(n for n in range(longest, 99) if n % multiple == 0)

    B, M = len(rows), size(max(len(dialog["sentences"]) for dialog in chosen))
    T = size(max(len(dialog["turns"]) for dialog in chosen))
    W = size(max(len(PLAIN[sentence]) for dialog in chosen for sentence in dialog["sentences"]))
    expected = {
        "words": np.zeros((B, M, W), np.int32),
        "typed_words": np.zeros((B, M, W), np.int32),
        "speakers": np.zeros((B, M), np.int32),
        "times": np.zeros((B, M), np.int32),
        "turns": np.zeros((B, T), np.int32),
        "mentions": np.zeros((B, M, E), np.uint8),
    }
    right = np.full((B, T), -1, np.int32)
    for b, dialog in enumerate(chosen):
        for m, sentence in enumerate(dialog["sentences"]):
            for w, word in enumerate(PLAIN[sentence]):
                expected["words"][b, m, w] = word
            for w, word in enumerate(TYPED[sentence]):
                expected["typed_words"][b, m, w] = word
            for entity in MENTIONED[sentence]:
                expected["mentions"][b, m, entity - 1] = 1
            expected["speakers"][b, m] = dialog["speakers"][m]
            expected["times"][b, m] = dialog["times"][m]
        for t, turn in enumerate(dialog["turns"]):
            expected["turns"][b, t] = turn
            right[b, t] = dialog["answers"][t]
    assert list(inputs) == FIELDS
    distinct = {sentence for dialog in chosen for sentence in dialog["sentences"]}
    S = next(n for n in range(len(distinct) + 1, 99) if n % (4 * multiple) == 0)  # sentence 0 is empty
    numbers = inputs.pop("sentences")
    assert numbers.dtype == np.int32 and set(numbers.ravel()) - {0} == set(range(1, len(distinct) + 1))
    for name in ("words", "typed_words"):
        assert inputs[name].shape == (S, W) and not inputs[name][0].any()
        inputs[name] = inputs[name][numbers]
    for name, values in expected.items():
        assert inputs[name].dtype == values.dtype, name
        np.testing.assert_array_equal(inputs[name], values, err_msg=name)
    np.testing.assert_array_equal(answers, right)
    assert answers.dtype == np.int32


def test_collate_rounds_sizes_up_to_four(split):
    inputs, answers = split.collate([1], FIELDS, E)
    assert {name: values.shape for name, values in inputs.items()} == {
        "words": (16, 8),  # four sentences differ
        "typed_words": (16, 8),
        "sentences": (1, 8),
        "speakers": (1, 8),
        "times": (1, 8),
        "turns": (1, 4),
        "mentions": (1, 8, 7),
    }
    assert answers.shape == (1, 4)


def test_collate_makes_what_is_asked_for(split):
    inputs, _ = split.collate([0], ["turns", "words"])
    assert list(inputs) == ["turns", "words"]
    with pytest.raises(ValueError, match=r"fields must be known\. Received: 'word'$"):
        split.collate([0], ["turns", "word"])
