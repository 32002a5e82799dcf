"""`metrics.ranking` against loops from the definitions, and against the DAM release's scripts."""

import numpy as np
import pytest

from colloquy.metrics.ranking import METRICS, TIES, ranking_metrics


def metrics_of_order(labels):
    """The definitions, for labels of one context in ranked order."""
    positives = sum(labels)
    precisions = []
    for i, label in enumerate(labels):
        if label:
            precisions.append(sum(labels[: i + 1]) / (i + 1))
    return {
        "R10@1": sum(labels[:1]) / positives,
        "R10@2": sum(labels[:2]) / positives,
        "R10@5": sum(labels[:5]) / positives,
        "MAP": sum(precisions) / positives,
        "MRR": 1 / (labels.index(1) + 1),
        "P@1": float(labels[0]),
    }


def metrics_in_loops(scores, labels, groups, ties):
    rows = []
    for group in dict.fromkeys(groups):
        lines = [i for i in range(len(groups)) if groups[i] == group]
        positives = [i for i in lines if labels[i] == 1]
        negatives = [i for i in lines if labels[i] == 0]
        if not positives or not negatives:
            continue
        if ties == "loss":
            ranked = sorted(lines, key=lambda i: (-scores[i], labels[i]))
        else:
            ranked = sorted(lines, key=lambda i: -scores[i])
        row = metrics_of_order([int(labels[i]) for i in ranked])

        positive = positives[0]
        negative = negatives[0]
        is_hit = scores[positive] > scores[negative]
        if scores[positive] == scores[negative]:
            is_hit = ties == "release" and positive < negative
        row["R2@1"] = float(is_hit)
        rows.append(row)
    return {name: np.mean([row[name] for row in rows]) for name in METRICS}


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", range(3))
def test_ranking_matches_definitions(ties, seed):
    # Contexts of 1 to 7 lines, with few different scores and any number of positives.
    rng = np.random.default_rng(seed)
    groups = np.repeat(rng.permutation(41) - 3, rng.integers(1, 8, 41))
    scores = rng.integers(0, 4, len(groups)) / 7
    labels = rng.integers(0, 2, len(groups))
    metrics = ranking_metrics(scores, labels, groups, ties=ties).metrics
    assert list(metrics) == list(METRICS)
    assert metrics == pytest.approx(metrics_in_loops(scores, labels, groups, ties), abs=1e-12)

    without_ties = rng.normal(size=len(groups))
    metrics = ranking_metrics(without_ties, labels, groups, ties=ties).metrics
    assert metrics == pytest.approx(metrics_in_loops(without_ties, labels, groups, "release"))


@pytest.mark.parametrize(("ties", "expected"), [("loss", 0), ("release", 1)])
@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_zeros_of_both_signs_are_ties(ties, expected, zeros):
    metrics = ranking_metrics(zeros, [1, 0], [0, 0], ties=ties).metrics
    for name in ("R2@1", "R10@1", "P@1"):
        assert metrics[name] == expected


def test_ranking_leaves_out_and_counts_contexts_of_one_label():
    scores = [0.9, 0.8, 0.2, 0.4, 0.3, 0.7, 0.1, 0.6]
    labels = [0, 0, 1, 0, 1, 1, 1, 0]
    groups = [3, 3, 5, 5, 5, 6, 6, 8]
    result = ranking_metrics(scores, labels, groups)
    assert result.counts == {"contexts": 4, "without_positive": 2, "without_negative": 1}
    assert result.metrics == ranking_metrics([0.2, 0.4, 0.3], [1, 0, 1], [5, 5, 5]).metrics
    assert {type(value) for value in result.metrics.values()} == {float}
    assert {type(value) for value in result.counts.values()} == {int}


GOOD = {"scores": [0.2, 0.1, 0.5, 0.4], "labels": [1, 0, 1, 0], "groups": [0, 0, 1, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [0.2, 0.1, np.nan, np.inf]}, "scores.*finite.* nan in line 2"),
        ({"scores": [], "labels": [], "groups": []}, "both.* 0 contexts"),
        ({"labels": [0, 0, 1, 1]}, "both.* 2 contexts, 1 of them without a positive"),
        ({"ties": "win"}, "loss, release.* 'win'"),
    ],
)
def test_ranking_rejects(change, message):
    with pytest.raises(ValueError, match=message):
        ranking_metrics(**{**GOOD, **change})
