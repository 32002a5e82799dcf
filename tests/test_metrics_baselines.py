"""`metrics.baselines` against loops, and against the known scores of a real corpus."""

import gzip
import itertools
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from metrics import tfidf
from metrics.baselines import constant_scores, random_scores, tfidf_scores
from metrics.ranking import group_by_size, ranking_metrics

UBUNTU_IRC = Path(__file__).resolve().parents[2] / "shared" / "data" / "ubuntu-irc"


def in_loops(train, contexts, responses, ignore=(), end_of_turn=None):
    no_words = {0, end_of_turn, *ignore}
    documents = []
    for document in train:
        utterance = set()
        for token in [*document, end_of_turn]:
            if token == end_of_turn:
                documents.append(utterance)
                utterance = set()
            elif token not in no_words:
                utterance.add(token)
    documents = [words for words in documents if words]
    frequency = Counter(itertools.chain(*documents))

    def vector(text):
        counts = Counter(token for token in text if token not in no_words)
        return {w: c * math.log((1 + len(documents)) / (1 + frequency[w])) for w, c in counts.items()}

    scores = []
    for context, response in zip(contexts, responses, strict=True):
        a, b = vector(context), vector(response)
        dot = sum(weight * b.get(word, 0) for word, weight in a.items())
        norm = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
        scores.append(dot / norm if norm else 0.0)
    return scores


def random_texts(seed):
    """Ragged lists of ids, some empty: 0..16 in training, 0..22 after, so that some are unseen."""
    rng = np.random.default_rng(seed)

    def texts(n, ids):
        return [rng.integers(0, ids, length).tolist() for length in rng.integers(0, 13, n)]

    return texts(31, 17), texts(53, 23), texts(53, 23)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [{}, {"ignore": [3, 5]}, {"end_of_turn": 2}])
@pytest.mark.parametrize("block", [1 << 16, 7])
def test_tfidf_matches_loops(seed, options, block, monkeypatch):
    monkeypatch.setattr(tfidf, "BLOCK", block)
    texts = random_texts(seed)
    expected = in_loops(*texts, **options)
    assert np.count_nonzero(expected) > 20
    np.testing.assert_allclose(tfidf_scores(*texts, **options), expected, atol=1e-12)


def test_tfidf_by_hand():
    # three documents, df(1) = 2, df(2) = df(3) = 1: the idf are ln(4/3), ln(4/2), unseen ln(4/1)
    train = [[1, 2], [1, 1], [3]]
    one, two, unseen = math.log(4 / 3), math.log(2), math.log(4)
    expected = 2 * one * one / (math.hypot(2 * one, two) * math.hypot(one, unseen))
    found = tfidf_scores(train, [[1, 2, 1], [2]], [[1, 7], [3]])
    np.testing.assert_allclose(found, [expected, 0.0], atol=1e-12)


def test_tfidf_parts_documents_at_the_end_of_turn():
    contexts, responses = [[1, 2, 9, 3], [2]], [[1, 3], [2, 2, 1]]
    separated = tfidf_scores([[1, 2, 9, 3, 9], [2]], contexts, responses, end_of_turn=9)
    given = tfidf_scores([[1, 2], [3], [2]], contexts, responses, ignore=[9])
    np.testing.assert_array_equal(separated, given)
    whole = tfidf_scores([[1, 2, 9, 3, 9], [2]], contexts, responses, ignore=[9])
    assert abs(separated[0] - whole[0]) > 0.01


def test_tfidf_ignores_padding_and_takes_generators_and_arrays():
    train, contexts, responses = [[1, 2], [3]], [[1, 2, 3], [2]], [[1, 3], [2, 3]]
    padded = np.array([[0, 1, 2, 3], [2, 0, 0, 0]]), np.array([[1, 3, 0], [0, 2, 3]])
    np.testing.assert_array_equal(tfidf_scores((d for d in train), *padded), tfidf_scores(train, contexts, responses))


def test_tfidf_scores_nothing_in_common_and_nothing_at_all_as_zero():
    found = tfidf_scores([[1], [2]], [[1], [], [1], [0, 0]], [[2], [1], [], []])
    np.testing.assert_array_equal(found, np.zeros(4))
    assert tfidf_scores([[1]], [], []).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1]], [[1]], [[1], [2]]), r"Received: len\(contexts\)=1, len\(responses\)=2"),
        (([[1]], [[1, -3]], [[1]]), "negative. Received: id=-3"),
        (([], [[1]], [[1]]), "training document with a word is needed. Received: n=0"),
        (([[0, 0], []], [[1]], [[1]]), "training document with a word is needed. Received: n=0"),
    ],
)
def test_tfidf_rejects(arguments, message):
    with pytest.raises(ValueError, match=message):
        tfidf_scores(*arguments)


def test_random_scores_follow_the_seed():
    np.testing.assert_array_equal(random_scores(7, seed=1), random_scores(7, seed=1))
    assert not np.array_equal(random_scores(7, seed=1), random_scores(7, seed=2))
    scores = random_scores(50_000, seed=0)
    assert scores.min() >= 0
    assert scores.max() < 1
    found = ranking_metrics(scores, np.tile([1] + [0] * 9, 5_000), group_by_size(50_000)).metrics
    assert found["R10@1"] == pytest.approx(0.1, abs=0.015)  # 3.5 standard deviations
    assert found["R2@1"] == pytest.approx(0.5, abs=0.025)


def test_constant_scores_are_one_tie():
    scores = constant_scores(20)
    np.testing.assert_array_equal(scores, np.zeros(20))
    labels = np.tile([1] + [0] * 9, 2)
    assert ranking_metrics(scores, labels, group_by_size(20)).metrics["R10@5"] == 0.0


@pytest.mark.skipif(not UBUNTU_IRC.is_dir(), reason=f"needs the ubuntu-irc corpus at {UBUNTU_IRC}")
def test_tfidf_on_ubuntu_irc_has_the_known_scores():
    ids = defaultdict(itertools.count(2).__next__)
    end_of_turn = 1

    def read(name, labels):
        with gzip.open(UBUNTU_IRC / name, "rt", encoding="utf-8") as file:
            for line in file:
                label, *turns = line.rstrip("\n").split("\t")
                if label in labels:
                    turns = [[ids[word] for word in turn.split()] + [end_of_turn] for turn in turns]
                    yield int(label), list(itertools.chain(*turns[:-1])), turns[-1]

    train = (text for _, *pair in read("train.txt.gz", "1") for text in pair)
    labels, contexts, responses = zip(*read("dev.txt.gz", "01"), strict=True)
    scores = tfidf_scores(train, contexts, responses, end_of_turn=end_of_turn)
    result = ranking_metrics(scores, labels, group_by_size(len(labels)))
    assert result.counts == {"contexts": 1219, "without_positive": 0, "without_negative": 0}
    found = [round(result.metrics[name], 4) for name in ("R10@1", "R10@2", "R10@5")]
    assert found == [0.5209, 0.6464, 0.7990]
