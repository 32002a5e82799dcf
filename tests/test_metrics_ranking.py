"""`metrics.ranking` against loops from the definitions, and against the DAM release's scripts."""

import numpy as np
import pytest

from colloquy.metrics.ranking import METRICS, TIES, ranking_metrics


def metrics_of_order(order):
    """The definitions, for labels of one context in ranked order."""
    total = sum(order)
    precisions = [sum(order[: i + 1]) / (i + 1) for i, label in enumerate(order) if label]
    hits = {f"R10@{k}": sum(order[:k]) / total for k in (1, 2, 5)}
    return {
        **hits,
        "MAP": sum(precisions) / total,
        "MRR": 1 / (order.index(1) + 1),
        "P@1": float(order[0]),
    }


def in_loops(scores, labels, groups, ties):
    rows = []
    for group in dict.fromkeys(groups):
        lines = [(s, y) for s, y, g in zip(scores, labels, groups, strict=True) if g == group]
        if len({y for _, y in lines}) < 2:
            continue
        ranked = sorted(lines, key=lambda line: (-line[0], line[1] * (ties == "loss")))
        row = metrics_of_order([label for _, label in ranked])
        (at_p, s_p), (at_n, s_n) = (
            next((i, s) for i, (s, y) in enumerate(lines) if y == label) for label in (1, 0)
        )
        row["R2@1"] = float(s_p > s_n or (s_p == s_n and ties == "release" and at_p < at_n))
        rows.append(row)
    return {name: np.mean([row[name] for row in rows]) for name in METRICS}


def ragged(seed):
    """Contexts of 1 to 7 lines, few score levels (many ties), any number of positives."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(rng.permutation(41) - 3, rng.integers(1, 8, 41))
    return rng.integers(0, 4, len(groups)) / 7, rng.integers(0, 2, len(groups)), groups


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", range(3))
def test_ranking_matches_definitions(ties, seed):
    scores, labels, groups = ragged(seed)
    found = ranking_metrics(scores, labels, groups, ties=ties).metrics
    assert list(found) == list(METRICS)
    assert found == pytest.approx(in_loops(scores, labels, groups, ties), abs=1e-12)
    untied = np.random.default_rng(seed).normal(size=len(labels))
    expected = in_loops(untied, labels, groups, "release")
    assert ranking_metrics(untied, labels, groups, ties=ties).metrics == pytest.approx(expected)


@pytest.mark.parametrize(("ties", "expected"), [("loss", 0), ("release", 1)])
def test_zeros_of_both_signs_are_ties(ties, expected):
    for zeros in ((0.0, -0.0), (-0.0, 0.0)):
        found = ranking_metrics(zeros, [1, 0], [0, 0], ties=ties).metrics
        assert [found[name] for name in ("R2@1", "R10@1", "P@1")] == [expected] * 3


def test_ranking_release_is_the_ubuntu_script():
    """Positive first of ten; a hit where the k-th highest of m scores is `<=` the positive's."""
    scores = np.random.default_rng(0).integers(0, 5, 70) / 4
    labels, contexts = np.tile([1] + [0] * 9, 7), scores.reshape(7, 10)
    found = ranking_metrics(scores, labels, np.arange(70) // 10, ties="release").metrics
    for m, k in ((2, 1), (10, 1), (10, 2), (10, 5)):
        hits = [sorted(context[:m], reverse=True)[k - 1] <= context[0] for context in contexts]
        assert found[f"R{m}@{k}"] == pytest.approx(np.mean(hits))


def test_ranking_leaves_out_and_counts_contexts_of_one_label():
    kept = [0.2, 0.4, 0.3], [1, 0, 1], [5, 5, 5]
    scores, labels, groups = (
        [0.9, 0.8, *kept[0], 0.7, 0.1, 0.6],
        [0, 0, *kept[1], 1, 1, 0],
        [3, 3, *kept[2], 6, 6, 8],
    )
    result = ranking_metrics(scores, labels, groups)
    assert result.counts == {"contexts": 4, "without_positive": 2, "without_negative": 1}
    assert (
        result.metrics == pytest.approx(in_loops(*kept, "loss"))
        and result.metrics == ranking_metrics(*kept).metrics
    )
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
        ranking_metrics(**GOOD | change)
