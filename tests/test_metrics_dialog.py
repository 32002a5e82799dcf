"""`metrics.baselines` and `metrics.dialog` against loops and by hand."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from colloquy.metrics import baselines, dialog
from colloquy.metrics.baselines import tfidf_scores
from colloquy.metrics.dialog import (
    dialog_metrics,
    nearest_neighbour,
    reachable_by_types,
    tfidf_match,
)

# === Cosines of TF-IDF ===


def vectors_in_loops(documents, no_words=(0,)):
    """Function of a text: its TF-IDF vector as a dict, by the document frequencies of
    `documents`.
    """
    documents = [words for words in (set(text) - {*no_words} for text in documents) if words]
    frequency = Counter(itertools.chain(*documents))

    def vector(text):
        counts = Counter(word for word in text if word not in no_words)
        return {
            w: c * math.log((1 + len(documents)) / (1 + frequency[w])) for w, c in counts.items()
        }

    return vector


def cosine_in_loops(a, b):
    norm = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return sum(weight * b.get(word, 0) for word, weight in a.items()) / norm if norm else 0.0


def texts(rng, n, ids, longest):
    """Ragged lists of ids, some empty, some with padding."""
    return [rng.integers(0, ids, length).tolist() for length in rng.integers(0, longest, n)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("options", [{}, {"ignore": [3, 5]}])
@pytest.mark.parametrize("block", [1 << 16, 7])
def test_tfidf_matches_loops(seed, options, block, monkeypatch):
    monkeypatch.setattr(baselines, "BLOCK", block)
    rng = np.random.default_rng(seed)
    train, contexts, responses = (
        texts(rng, n, ids, 13) for n, ids in ((31, 17), (53, 23), (53, 23))
    )
    vector = vectors_in_loops(train, {0, *options.get("ignore", ())})
    expected = [
        cosine_in_loops(vector(c), vector(r)) for c, r in zip(contexts, responses, strict=True)
    ]
    assert np.count_nonzero(expected) > 20
    np.testing.assert_allclose(
        tfidf_scores(train, contexts, responses, **options), expected, atol=1e-12
    )


# === Dialogs ===

NEAR = 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_dialog_metrics_match_loops(seed):
    rng = np.random.default_rng(seed)
    # in any order
    gold, numbers = rng.integers(0, 5, 97), rng.choice([31, 2, 17, 11, 5, 23, 3], 97)
    predicted = np.where(
        np.isin(numbers, [17, 3]) | (rng.random(97) < 0.7), gold, rng.integers(0, 5, 97)
    )
    wrong = Counter(d for p, g, d in zip(predicted, gold, numbers, strict=True) if p != g)
    expected = {"per_response": 1 - wrong.total() / 97, "per_dialog": 1 - len(wrong) / 7}
    assert 2 / 7 <= expected["per_dialog"] < expected["per_response"] < 1
    found = dialog_metrics(predicted, gold.tolist(), numbers)
    assert found == pytest.approx(expected, abs=1e-12) and tuple(found) == dialog.METRICS
    assert {type(value) for value in found.values()} == {float}


# words 1, 2, 3 are cuisines, 4 and 5 places, 6 to 9 have no type
TYPE_OF = {1: 0, 2: 0, 3: 0, 4: 1, 5: 1}
CANDIDATES = [
    [6, 7],
    [8, 1, 4],
    [8, 2, 5],
    [8, 4, 2],
    [9, 2],
    [8, 2, 5, 7],
    [0, 8, 3, 4, 0],
    [6, 9],
]


@pytest.mark.parametrize(
    ("gold", "context", "reachable"),
    [
        (0, set(), True),  # seen, and no type in it
        (2, {2, 5}, True),  # the form of 1, both entities here
        (2, {2, 5, 1, 4}, True),  # others here too: the model may choose
        (2, {2, 4}, False),  # one entity is missing
        (3, {2, 4}, False),  # the types in another order are another form
        (4, {2, 9}, False),  # never seen after 9
        (5, {2, 5, 7}, False),  # longer than 1
        (6, {3, 4}, True),  # padding is no word of the form, nor asked for in the context
        (7, {6, 9}, False),  # no type: only as seen
    ],
)
def test_reachable_by_types(gold, context, reachable):
    found = reachable_by_types([0, 1, 0], [gold, 0], CANDIDATES, TYPE_OF, [context, set()])
    assert found.dtype == bool and found.tolist() == [reachable, True]


@pytest.fixture(params=[(1 << 11, 1 << 22), (7, 5)])
def blocks(request, monkeypatch):
    """Numbers of texts and of scores that are computed at once."""
    monkeypatch.setattr(baselines, "BLOCK", request.param[0])
    monkeypatch.setattr(dialog, "BLOCK", request.param[1])


@pytest.mark.parametrize("seed", range(3))
def test_tfidf_match_matches_loops(seed, blocks):
    rng = np.random.default_rng(seed)
    train, contexts = texts(rng, 31, 13, 7), texts(rng, 53, 17, 11)  # 13..16 are not in training
    once = texts(rng, 23, 19, 5)
    candidates = [*once, *(text[::-1] for text in once)]  # each twice: ties go to the lowest
    vector, expected = vectors_in_loops(train), []
    for context in contexts:
        scores = [cosine_in_loops(vector(context), vector(candidate)) for candidate in candidates]
        expected.append(next(i for i, score in enumerate(scores) if score > max(scores) - NEAR))
    found = tfidf_match(train, contexts, candidates)
    assert len(set(expected)) > 7 and found.dtype == np.int64 and found.tolist() == expected


@pytest.mark.parametrize("seed", range(3))
def test_nearest_neighbour_matches_loops(seed, blocks):
    rng = np.random.default_rng(seed)
    train, inputs, gold = (
        texts(rng, 97, 7, 5),
        texts(rng, 53, 11, 7),
        (3 * rng.integers(5, 18, 97)).tolist(),
    )
    vector, expected = vectors_in_loops(train), []
    for text in inputs:
        scores = [cosine_in_loops(vector(text), vector(other)) for other in train]
        votes = Counter(
            g for g, score in zip(gold, scores, strict=True) if score > max(scores) - NEAR
        )
        expected.append(min(votes, key=lambda g: (-votes[g], g)))
    found = nearest_neighbour(train, gold, inputs)
    assert len(set(expected)) > 7 and found.dtype == np.int64 and found.tolist() == expected
