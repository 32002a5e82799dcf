import types

import pytest

from base.files import UserError
from data.vocabulary import Vocabulary
from tasks.selection.scoring import ranked_examples, render
from tasks.selection.split import SelectionSplit

WORDS = Vocabulary(("_EOS_", "_UNK_", "a", "b", "c", "d", "e"))
CONTEXTS = [[3, 1], [4, 2, 1, 5, 1], [6, 1], [7, 1, 7, 1], [3, 4, 1]]
SCORES = [0.5, 0.5, -1.0, 2.0, 3.0, 1.0, 0.0, 0.25, 4.0, 5.0]


def dataset(vocabulary=WORDS, labels=(1, 0) * 5):
    """Five contexts with two candidates each: `a b` and the context's number in words."""
    contexts = [context for context in CONTEXTS for _ in range(2)]
    responses = [ids for n in range(5) for ids in ([3, 4], [3 + n])]
    split = SelectionSplit.of(contexts, responses, list(labels), 1)
    return types.SimpleNamespace(path="some/where", vocabulary=vocabulary, splits={"dev": split})


def test_contexts_stand_at_equal_distances_and_candidates_in_order_of_score():
    found = ranked_examples(dataset(), "dev", SCORES, 3)
    assert [example["context"] for example in found] == [1, 3, 5]
    assert [c["text"] for c in found[1]["candidates"]] == ["a b", "c"]
    assert ranked_examples(dataset(), "dev", SCORES, 1)[0]["context"] == 3
    assert ranked_examples(dataset(), "dev", SCORES, 2)[0] == {
        "context": 2,
        "contexts": 5,
        "turns": ["b _UNK_", "c"],
        "candidates": [{"score": 2.0, "label": 0, "text": "b"}, {"score": -1.0, "label": 1, "text": "a b"}],
    }


def test_equal_scores_are_losses_and_few_contexts_are_all_shown():
    found = ranked_examples(dataset(), "dev", SCORES, 7)
    assert [example["context"] for example in found] == [1, 2, 3, 4, 5]
    assert [c["label"] for c in found[0]["candidates"]] == [0, 1]
    assert [example["context"] for example in ranked_examples(dataset(), "dev", SCORES[:4], 7)] == [1, 2]


def test_datasets_without_a_vocabulary_are_refused():
    with pytest.raises(UserError, match=r"^some/where has no vocabulary\.txt"):
        ranked_examples(dataset(vocabulary=None), "dev", SCORES, 3)


def test_rendering_marks_the_correct_candidates():
    labels = (1, 0, 1, 1, 0, 0, 1, 0, 1, 0)
    blocks = render(ranked_examples(dataset(labels=labels), "dev", SCORES, 5)).split("\n\n")
    assert blocks[1].splitlines() == [
        "Context 2 of 5, correct: 1, 2 of 2",
        "    b _UNK_",
        "    c",
        " 1.   2.00 * b",
        " 2.  -1.00 * a b",
    ]
    assert blocks[2].startswith("Context 3 of 5, correct: none of 2\n")
    assert blocks[3].startswith("Context 4 of 5, correct: 2 of 2\n")
