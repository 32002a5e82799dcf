"""Turns of a context as its candidates: in training, and beside the true response."""

import numpy as np
import pytest

from colloquy.models.dam import DAMConfig
from colloquy.tasks.selection.echoes import echo_rows
from colloquy.tasks.selection.split import SelectionSplit, training_batches
from colloquy.tasks.selection.training import Training

EOS = 1
CONTEXTS = [[5, 6, EOS, 7, 8, 9, 10, 11, 12, 13, EOS], [14, EOS], [15, 16, EOS, 17, 18, EOS]]
RESPONSES = [[20], [21, 22], [17, 18]]
NEGATIVES = [[30], [31], [32]]


@pytest.fixture
def split():
    contexts = [context for context in CONTEXTS for _ in range(2)]
    responses = [ids for pair in zip(RESPONSES, NEGATIVES, strict=True) for ids in pair]
    return SelectionSplit.of(contexts, responses, [1, 0] * 3, EOS)


def texts(padded):
    return [[id for id in row if id] for row in padded.tolist()]


def test_drawn_echoes_are_turns_of_the_context_whole_or_with_words_left_out(split):
    turns = [[[5, 6], [7, 8, 9, 10, 11, 12, 13]], [[14]], [[15, 16], [17, 18]]]
    drawn = split.draw_echoes(np.arange(3), 200, 6, np.random.default_rng(0))
    for own_turns, candidates in zip(turns, drawn, strict=True):
        inputs = split.collate(np.array([0]), candidates[None], 6, 9)
        words = texts(inputs["responses"][0])
        for ids in words:
            assert any(set(ids) <= set(turn) and ids == sorted(ids) for turn in own_turns)
        for turn in own_turns:
            assert turn in words
    last_turns = np.isin(drawn[0] - len(split), [1, 1 + len(split.turns)])
    assert 0.6 < last_turns.mean() < 0.8  # of two turns, the last one is drawn with 1 / sqrt(2)
    assert any(1 < len(ids) < 7 for ids in split.shortened_turns.lists())


def test_echoes_of_a_context_are_cut_to_the_turns_that_the_model_reads(split):
    drawn = split.draw_echoes(np.array([0]), 50, 1, np.random.default_rng(0))
    assert set(((drawn - len(split)) % len(split.turns)).ravel()) == {1}


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_negatives_of_a_training_batch_are_echoes(split, share):
    config = DAMConfig(vocabulary_size=40, embedding_dim=2)
    training = Training(
        negatives="fresh", negatives_per_positive=100, echo_negatives=share, batch_size=3
    )
    for contexts, candidates, labels in training_batches(
        split, config, training, np.random.default_rng(0)
    ):
        is_echo = candidates >= len(split)
        assert not is_echo[:, 0].any() and labels[:, 0].all() and not labels[:, 1:].any()
        assert abs(is_echo[:, 1:].mean() - share) < 0.1
        turns = (candidates - len(split)) % len(split.turns)
        own = np.searchsorted(split.context_start, turns, side="right") - 1
        assert (own == contexts[:, None])[is_echo].all()


def test_echoes_need_fresh_negatives():
    with pytest.raises(ValueError, match="negatives=fresh"):
        Training(echo_negatives=0.5)


def test_rows_compare_the_true_response_with_each_turn_that_differs_from_it(split):
    # The score of a candidate is its smallest id: turns 7.. and 14 lose to responses 20 and 21.
    def score(lines):
        return np.array([min(ids) for ids in lines.responses.lists()], float)

    last, before = echo_rows(split, -score(split), lambda lines: -score(lines))
    # Context 2 says its last turn again: it is left out there.
    assert last == {
        "group": "last turn",
        "examples": 2,
        "metrics": {"R10@1": 1.0, "R11@1": 0.0, "echo above": 1.0},
    }
    assert before["examples"] == 2
    scores = score(split)
    last, before = echo_rows(split, scores, score)
    assert last["metrics"] == {"R10@1": 0.0, "R11@1": 0.0, "echo above": 0.0}
