"""`metrics.baselines` against loops."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from metrics import baselines
from metrics.baselines import tfidf_scores


def vectors_in_loops(documents, no_words=(0,)):
    """Function of a text: its TF-IDF vector as a dict, by the document frequencies of `documents`."""
    documents = [words for words in (set(text) - {*no_words} for text in documents) if words]
    frequency = Counter(itertools.chain(*documents))

    def vector(text):
        counts = Counter(word for word in text if word not in no_words)
        return {w: c * math.log((1 + len(documents)) / (1 + frequency[w])) for w, c in counts.items()}

    return vector


def cosine_in_loops(a, b):
    norm = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return sum(weight * b.get(word, 0) for word, weight in a.items()) / norm if norm else 0.0


def texts(rng, n, ids, longest):
    """Ragged lists of ids, some empty, some with padding."""
    return [rng.integers(0, ids, length).tolist() for length in rng.integers(0, longest, n)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("options", [{}, {"ignore": [3, 5]}, {"end_of_turn": 2}])
@pytest.mark.parametrize("block", [1 << 16, 7])
def test_tfidf_matches_loops(seed, options, block, monkeypatch):
    monkeypatch.setattr(baselines, "BLOCK", block)
    rng, end = np.random.default_rng(seed), options.get("end_of_turn")
    train, contexts, responses = (texts(rng, n, ids, 13) for n, ids in ((31, 17), (53, 23), (53, 23)))
    runs = [itertools.groupby(document, lambda token: token == end) for document in train]
    utterances = [list(group) for groups in runs for ends, group in groups if not ends]
    vector = vectors_in_loops(utterances, {0, end, *options.get("ignore", ())})
    expected = [cosine_in_loops(vector(c), vector(r)) for c, r in zip(contexts, responses, strict=True)]
    assert np.count_nonzero(expected) > 20
    np.testing.assert_allclose(tfidf_scores(train, contexts, responses, **options), expected, atol=1e-12)


def test_without_training_words_nothing_has_a_weight():
    assert tfidf_scores([[0, 0], []], [[1], [2]], [[1], [1]]).tolist() == [0.0, 0.0]
