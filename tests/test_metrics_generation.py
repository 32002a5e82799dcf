"""Metrics of replies by hand; BLEU is sacrebleu's, so its tests are about what it is given."""

import math
import random

import pytest

from colloquy.metrics.generation import (
    METRICS,
    baselines_of,
    bleu,
    distinct,
    generation_metrics,
    perplexity,
)


@pytest.mark.parametrize(
    ("replies", "references", "n", "expected"),
    [
        (["a,b C"], [["a,b c"]], 1, 1 / 2),  # tokens as they are
        # the k-th precision of zero counts as one of 2 ** k
        (["a b c d"], [["a x c y"]], 3, (1 / 2 * 1 / (2 * 3) * 1 / (4 * 2)) ** (1 / 3)),
        (["", ""], [["a b"], ["c"]], 4, 0.0),
        (["a b", ""], [["a b"], ["c"]], 1, math.exp(1 - 3 / 2)),
        # Papineni et al. 2002: `a` counts twice, as in the third reference; the closest lengths are
        # 4 and 3
        (
            ["a a a b", "c"],
            [["a b", "b b b b", "a a c c c"], ["c d e"]],
            1,
            4 / 5 * math.exp(1 - 7 / 5),
        ),
        (
            ["a a a b", "c"],
            [["a b", "b b b b", "a a c c c"], ["c d e"]],
            2,
            (4 / 5 * 2 / 3) ** 0.5 * math.exp(1 - 7 / 5),
        ),
    ],
)
def test_bleu_by_hand(replies, references, n, expected):
    assert bleu(replies, references)[f"BLEU-{n}"] == pytest.approx(expected)


def test_distinct_counts_over_all_replies():
    replies = ["a b a b a", "b a", "c"]
    assert [distinct(replies, n) for n in (1, 2, 3, 5, 6)] == [3 / 8, 2 / 5, 2 / 3, 1.0, 0.0]
    assert distinct(iter(replies), 2) == 2 / 5 and distinct([], 1) == distinct([""], 1) == 0.0


def test_perplexity_is_the_number_of_equally_likely_tokens():
    for words, tokens in ((7, 3), (11, 5)):
        assert perplexity(tokens * math.log(words), tokens) == words
    assert perplexity(math.log(2) + math.log(32), 2) == pytest.approx(8.0)
    assert perplexity(0.0, 5) == 1.0 and perplexity(1e6, 5) == math.inf


def test_generation_metrics_has_all_metrics():
    replies, references = ["a b a c", "b a"], [["a b c"], ["b", "c a"]]
    found = generation_metrics(replies, references)
    assert ("perplexity", *found) == METRICS
    assert found == bleu(replies, references) | {
        "distinct-1": 3 / 6,
        "distinct-2": 3 / 4,
        "length": 3,
    }


SOURCES = ["p", "q", "p", "r", "q", "p"]
TARGETS = ["a b c d", "b c", "a b d d", "c", "b c", "d a b c"]
TRAIN = ["c", "b c", "a b", "c", "b c", "a b c"]


def test_baselines_are_frequent_and_random_targets_of_train_and_what_people_said():
    found = baselines_of(TRAIN, SOURCES, TARGETS, seed=3)
    # source `q` has the same target twice, which counts once
    human = "human, 1 sources with several targets"
    # the first by its letters of equal count
    assert list(found) == ["constant, b c", "random reply of train", human]
    references, rng = [[target] for target in TARGETS], random.Random(3)
    assert found["constant, b c"] == generation_metrics(["b c"] * 6, references)
    assert found["constant, b c"]["length"] == 2 and found["constant, b c"]["distinct-1"] == 2 / 12
    assert found["random reply of train"] == generation_metrics(
        [rng.choice(TRAIN) for _ in TARGETS], references
    )
    assert found[human] == generation_metrics(["a b c d"], [["a b d d", "d a b c"]])
    assert list(baselines_of(TRAIN, SOURCES[:2], TARGETS[:2])) == [
        "constant, b c",
        "random reply of train",
    ]
    together = baselines_of(TRAIN, SOURCES, TARGETS, several=True)["constant, b c"]
    assert together == generation_metrics(
        ["b c"] * 3, [["a b c d", "a b d d", "d a b c"], ["b c"], ["c"]]
    )
