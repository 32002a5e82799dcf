"""Metrics of replies by hand; BLEU is sacrebleu's, so its tests are about what it is given."""

import math
import random

import pytest

from colloquy.metrics.generation import (
    baselines_of,
    bleu,
    distinct,
    generation_metrics,
    perplexity,
)


def test_bleu_takes_tokens_as_they_are():
    assert bleu(["a,b C"], [["a,b c"]])["BLEU-1"] == pytest.approx(1 / 2)


def test_distinct_counts_over_all_replies():
    replies = ["a b a b a", "b a", "c"]
    assert distinct(replies, 1) == 3 / 8
    assert distinct(replies, 2) == 2 / 5
    assert distinct(replies, 3) == 2 / 3
    assert distinct(replies, 5) == 1.0
    assert distinct(replies, 6) == 0.0
    assert distinct([], 1) == 0.0
    assert distinct([""], 1) == 0.0


def test_perplexity_is_the_number_of_equally_likely_tokens():
    assert perplexity(3 * math.log(7), 3) == 7
    assert perplexity(5 * math.log(11), 5) == 11
    assert perplexity(math.log(2) + math.log(32), 2) == pytest.approx(8.0)
    assert perplexity(0.0, 5) == 1.0
    assert perplexity(1e6, 5) == math.inf


SOURCES = ["p", "q", "p", "r", "q", "p"]
TARGETS = ["a b c d", "b c", "a b d d", "c", "b c", "d a b c"]
TRAIN = ["c", "b c", "a b", "c", "b c", "a b c"]
CONSTANT = "constant, b c"  # as frequent as "c", and before it in the alphabet
RANDOM = "random reply of train"


def test_baselines_are_frequent_and_random_targets_of_train_and_what_people_said():
    metrics = baselines_of(TRAIN, SOURCES, TARGETS)
    # Source `q` has the same target twice, which counts once.
    human = "human, 1 sources with several targets"
    assert list(metrics) == [CONSTANT, RANDOM, human]
    references = [[target] for target in TARGETS]
    assert metrics[CONSTANT] == generation_metrics(["b c"] * 6, references)
    assert metrics[CONSTANT]["length"] == 2
    assert metrics[CONSTANT]["distinct-1"] == 2 / 12
    rng = random.Random(1)
    drawn = [rng.choice(TRAIN) for _ in TARGETS]
    assert metrics[RANDOM] == generation_metrics(drawn, references)
    assert metrics[human] == generation_metrics(["a b c d"], [["a b d d", "d a b c"]])


def test_several_compares_a_reply_with_all_targets_of_its_source():
    metrics = baselines_of(TRAIN, SOURCES, TARGETS, several=True)
    references = [["a b c d", "a b d d", "d a b c"], ["b c"], ["c"]]
    assert metrics[CONSTANT] == generation_metrics(["b c"] * 3, references)
